"""``python -m trackway_checkpointer``: the service, with settings from the environment."""

from __future__ import annotations

from trackway_common.process import run_service

from trackway_checkpointer.service import SERVICE, run_checkpointer
from trackway_checkpointer.settings import CheckpointerSettings

if __name__ == "__main__":
    run_service(SERVICE, CheckpointerSettings, run_checkpointer)
