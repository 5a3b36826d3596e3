"""``python -m trackway_trainer_agent``: the service, with settings from the environment."""

from __future__ import annotations

from trackway_common.process import run_service

from trackway_trainer_agent.service import SERVICE, run_trainer_agent
from trackway_trainer_agent.settings import TrainerAgentSettings

if __name__ == "__main__":
    run_service(SERVICE, TrainerAgentSettings, run_trainer_agent)
