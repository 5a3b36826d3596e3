"""``python -m trackway_scheduler``: the service, with settings from the environment."""

from __future__ import annotations

from trackway_common.process import run_service

from trackway_scheduler.service import run_scheduler
from trackway_scheduler.settings import SchedulerSettings
from trackway_scheduler.shell.scheduler import SERVICE

if __name__ == "__main__":
    run_service(SERVICE, SchedulerSettings, run_scheduler)
