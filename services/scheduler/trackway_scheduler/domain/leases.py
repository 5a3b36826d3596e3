"""When a silent agent's attempts are given up: only after a probe, and generously.

Silence alone ends nothing: a restarting agent, or a log that is away, must not cost an attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from trackway_common.events import Authority, CausalRole, Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """How long an agent may be silent."""

    probe_after_s: float
    write_off_after_s: float


class LeaseMove(Enum):
    """What to do about an agent with live attempts."""

    TRUST = "trust"
    PROBE = "probe"
    WRITE_OFF = "write off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Whether anything answers where the agent last was."""

    endpoint: str
    reachable: bool
    detail: str


def judge(terms: LeaseTerms, silence_s: float, probe: Probe | None) -> LeaseMove:
    """Judge by the silence, measured while the log was readable, and by the last probe of this silence."""
    if silence_s < terms.probe_after_s:
        return LeaseMove.TRUST
    if silence_s < terms.write_off_after_s or probe is None:
        return LeaseMove.PROBE
    return LeaseMove.PROBE if probe.reachable else LeaseMove.WRITE_OFF


def evidence(agent_id: str, silence_s: float, probe: Probe) -> tuple[Evidence, ...]:
    """What speaks for AGENT_LOST."""
    return (
        Evidence(
            source=f"lease of agent {agent_id}",
            authority=Authority.OWN_INTENT,
            role=CausalRole.INITIATING,
            excerpt=f"no heartbeat for {silence_s:.0f} s while the log was readable",
        ),
        Evidence(
            source=f"probe of {probe.endpoint or 'an unknown endpoint'}",
            authority=Authority.SUBSTRATE,
            role=CausalRole.INITIATING,
            excerpt=probe.detail,
        ),
    )
