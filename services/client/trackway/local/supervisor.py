"""``python -m trackway.local.supervisor --state FOLDER``: the parent of a local stack.

It holds the folder's lock as long as it lives, starts the children in the order of their dependencies, restarts what
dies and, told by SIGTERM, stops them in reverse. What it knows is in ``stack.json`` and ``status.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from trackway_common.clock import SystemClock
from trackway_common.errors import TrackwayError
from trackway_common.telemetry import configure_logging

from trackway.local.child import Child
from trackway.local.leftovers import end_leftovers
from trackway.local.lock import Held, acquire
from trackway.local.maven import ensure_jars, libs_folder
from trackway.local.processes import mark_of
from trackway.local.ray_head import temp_folder
from trackway.local.spec import ChildSpec, Plan, StackOptions, levels
from trackway.local.stack import make_plan, provide_catalogue, shared_env, stack_specs
from trackway.local.state import StackRecord, StateFolder, read_record, state_folder, write_record
from trackway.local.status import StatusBoard

log = logging.getLogger(__name__)

UNAVAILABLE = 3
"""Exit code, as the CLI's."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a stack until told to stop; return the exit code."""
    folder, options = _arguments(argv)
    configure_logging("supervisor")
    folder.create()
    try:
        with acquire(folder.lock):
            plan = _prepare(folder, options)
            asyncio.run(_supervise(plan, os.environ))
    except Held as error:
        log.info("another supervisor runs", extra={"error": str(error)})
        return UNAVAILABLE
    except TrackwayError as error:
        log.error("the stack can't be started", extra={"error": str(error)})
        return UNAVAILABLE
    return 0


def _arguments(argv: Sequence[str] | None) -> tuple[StateFolder, StackOptions]:
    parser = argparse.ArgumentParser(prog="trackway.local.supervisor")
    parser.add_argument("--state", type=Path, required=True, help="state folder; made when absent")
    parser.add_argument("--cpus", type=int, required=True, help="rank slots of the local pool")
    parser.add_argument("--only", default="", help="names of children, separated by commas")
    arguments = parser.parse_args(argv)
    only = frozenset(filter(None, arguments.only.split(","))) or None
    return state_folder(arguments.state), StackOptions(cpus=arguments.cpus, only=only)


def _prepare(folder: StateFolder, options: StackOptions) -> Plan:
    """End what an earlier supervisor left, choose ports, and write down who runs here now."""
    earlier = read_record(folder)
    if earlier is not None:
        end_leftovers(folder, earlier)
    plan = make_plan(folder, earlier, options)
    provide_catalogue(folder)
    folder.status.unlink(missing_ok=True)
    write_record(folder, _record(plan))
    return plan


def _record(plan: Plan) -> StackRecord:
    return StackRecord(
        stack_id=plan.stack_id,
        folder=str(plan.folder.root),
        ports=plan.ports,
        supervisor=mark_of(os.getpid()),
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


async def _supervise(plan: Plan, environ: Mapping[str, str]) -> None:
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    libs = libs_folder(environ)
    specs = stack_specs(plan, libs)
    if any(spec.name == "kafka" for spec in specs):
        await asyncio.to_thread(ensure_jars, libs)
    _publish_endpoints(plan, specs)
    try:
        await _run_children(plan, specs, shared_env(plan, environ), stop)
    finally:
        await asyncio.to_thread(_leave, plan)


async def _run_children(plan: Plan, specs: Sequence[ChildSpec], env: Mapping[str, str], stop: asyncio.Event) -> None:
    board = StatusBoard(plan.folder)
    children = {spec.name: Child(spec, plan.folder, env, board, SystemClock()) for spec in specs}
    async with asyncio.TaskGroup() as group:
        tasks = {
            name: group.create_task(child.run([children[need].was_ready for need in child.spec.depends_on]), name=name)
            for name, child in children.items()
        }
        await stop.wait()
        log.info("stopping")
        for level in reversed(levels(specs)):
            for name in level:
                tasks[name].cancel()
            await asyncio.wait([tasks[name] for name in level])


def _publish_endpoints(plan: Plan, specs: Sequence[ChildSpec]) -> None:
    record = read_record(plan.folder) or _record(plan)
    write_record(plan.folder, replace(record, endpoints={spec.name: spec.endpoint for spec in specs}))


def _leave(plan: Plan) -> None:
    """Everything was stopped: end what hid, and forget the endpoints."""
    record = read_record(plan.folder) or _record(plan)
    end_leftovers(plan.folder, record)
    shutil.rmtree(temp_folder(plan.stack_id), ignore_errors=True)
    write_record(plan.folder, replace(record, endpoints={}, supervisor=None))
    log.info("stopped")


if __name__ == "__main__":
    sys.exit(main())
