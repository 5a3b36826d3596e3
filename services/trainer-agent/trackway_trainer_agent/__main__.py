"""``python -m trackway_trainer_agent``: the service, with settings from the environment."""

from __future__ import annotations

import asyncio

from trackway_common.kafka_log import KafkaEventLog
from trackway_common.service import run_service
from trackway_common.telemetry import configure_logging, configure_tracing

from trackway_trainer_agent.service import SERVICE, run_trainer_agent
from trackway_trainer_agent.settings import TrainerAgentSettings


async def main(stop: asyncio.Event) -> None:
    """Run until asked to stop; ``run_service`` cancels it then."""
    settings = TrainerAgentSettings()  # type: ignore[call-arg] # fields come from the environment
    configure_logging(SERVICE, settings.telemetry.log_level)
    configure_tracing(SERVICE, settings.telemetry)
    event_log = KafkaEventLog(settings.kafka)
    try:
        await run_trainer_agent(settings, event_log)
    finally:
        await event_log.close()


if __name__ == "__main__":
    run_service(main)
