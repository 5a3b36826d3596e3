"""The stack's read model: chDB in a process that speaks ClickHouse's HTTP protocol."""

from __future__ import annotations

import sys

from trackway.local.probes import http_answers
from trackway.local.spec import BESIDE_TRAINING, ChildSpec, Plan

NAME = "clickhouse"
PORTS = (NAME,)


def clickhouse_spec(plan: Plan) -> ChildSpec:
    """Return how to run it."""
    url = f"http://{plan.address(NAME)}"
    module = "trackway.local.clickhouse_server"
    return ChildSpec(
        name=NAME,
        argv=(
            *(sys.executable, "-m", module),
            *("--path", str(plan.folder.clickhouse), "--port", str(plan.ports[NAME])),
        ),
        endpoint=url,
        niceness=BESIDE_TRAINING,
        answers=http_answers(f"{url}/ping"),
    )
