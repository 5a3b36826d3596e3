"""The edges: who calls, pages, refusals that fit into a trailer, probes, settings."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common.callers import ANONYMOUS, caller_of
from trackway_common.errors import CommandRejected, FieldViolation
from trackway_common.events import RunPhase
from trackway_common.rpc_errors import to_status
from trackway_scheduler.adapters.probe import probe
from trackway_scheduler.domain.clipping import clipped
from trackway_scheduler.entrypoints.messages import phase_of, wire_phase
from trackway_scheduler.entrypoints.paging import newest_first, page
from trackway_scheduler.settings import SchedulerSettings

from tests.unit.scheduler.stage import Caller


class Certified(Caller):
    def auth_context(self) -> dict:
        return {"x509_common_name": [b"build-bot"]}


class Nameless(Caller):
    def invocation_metadata(self) -> None:
        return None


def test_a_certificate_speaks_louder_than_a_claim():
    assert caller_of(Caller("ada")) == "ada"
    assert caller_of(Certified("ada")) == "build-bot"
    assert caller_of(Nameless()) == ANONYMOUS


@given(st.sets(st.text(alphabet="0123456789abc-:", min_size=1, max_size=6), max_size=30), st.integers(1, 7))
def test_pages_show_everything_once_and_in_order(names, size):
    seen: list[str] = []
    token = ""
    while True:
        shown = page(names, lambda name: (newest_first(name), name), size=size, token=token)
        seen += shown.items
        token = shown.next_token
        if not token:
            break
    assert sorted(seen) == sorted(names)
    assert seen == sorted(names, key=lambda name: (newest_first(name), name))


@pytest.mark.parametrize(("size", "token"), [(-1, ""), (1, "%%%"), (1, "bm90IGpzb24=")])
def test_pages_that_can_not_be(size, token):
    with pytest.raises(CommandRejected):
        page(["a"], lambda name: (name,), size=size, token=token)


def test_newest_first_reverses_times():
    times = ["2026-01-01T00:00:00", "2025-12-31T23:59:59", "2026-01-01T00:00:00.5"]
    assert max(times, key=newest_first) == "2025-12-31T23:59:59"


def test_a_refusal_of_anything_fits_into_grpcs_trailers():
    violations = tuple(FieldViolation(field="f" * 999, description="d" * 9_999) for _ in range(500))
    refused = clipped(CommandRejected("m" * 100_000, reason="SPEC_INVALID", violations=violations))
    assert len(to_status(refused).SerializeToString()) < 5 * 1024
    assert "488 more violations" in refused.message
    assert refused.reason == "SPEC_INVALID"


@pytest.mark.parametrize("phase", list(RunPhase))
def test_phases_travel_both_ways(phase):
    assert phase_of(wire_phase(phase)) is phase
    assert phase_of(999) is RunPhase.UNSPECIFIED


async def test_a_probe_tells_what_accepts_from_what_does_not():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert (await probe(f"127.0.0.1:{port}")).reachable
    server.close()
    await server.wait_closed()
    found = await probe(f"127.0.0.1:{port}")
    assert not found.reachable
    assert "connecting failed" in found.detail
    assert not (await probe("nowhere")).reachable


def test_settings_come_from_the_environment(monkeypatch):
    for name, value in {
        "TRACKWAY_KAFKA__BOOTSTRAP": "h:1",
        "TRACKWAY_STORE__URL": "file:///objects",
        "TRACKWAY_COMPUTE_CATALOGUE": "/c.yaml",
        "TRACKWAY_LEASE__WRITE_OFF_AFTER_S": "90",
    }.items():
        monkeypatch.setenv(name, value)
    settings = SchedulerSettings()
    assert settings.compute_catalogue == Path("/c.yaml")
    assert (settings.lease.probe_after_s, settings.lease.write_off_after_s) == (15, 90)
    assert settings.takeover_after_s == 1.5
