"""``python -m trackway_evaluator``: the service, with settings from the environment."""

from __future__ import annotations

import os

from trackway_common.event_log import EventLog
from trackway_common.process import run_service

from trackway_evaluator.service import SERVICE, run_evaluator
from trackway_evaluator.settings import EvaluatorSettings


async def main(settings: EvaluatorSettings, event_log: EventLog) -> None:
    """Run until cancelled."""
    await run_evaluator(settings, event_log, os.environ)


if __name__ == "__main__":
    run_service(SERVICE, EvaluatorSettings, main)
