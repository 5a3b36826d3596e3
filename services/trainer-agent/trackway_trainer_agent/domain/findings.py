"""A finding: what one observation, or a part of it, says about the reason."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import PurePath

from trackway_common.events import Authority, CausalRole, Evidence, Stance, TerminationReason

from trackway_trainer_agent.domain.observations import ErrorSeen, Frame

EXCERPT_CHARACTERS = 1500
"""Below the 2 KiB that evidence may have, in whatever script it is written."""
_OURS = "trackway_trainer_agent/worker"
_VAGUE = frozenset(
    {
        TerminationReason.USER_CODE_ERROR,
        TerminationReason.PROCESS_CRASH,
        TerminationReason.UNKNOWN_KILL,
        TerminationReason.UNKNOWN,
    }
)
"""What an exit status or any exception suggests; something more precise does not contradict it."""
_NOISE = re.compile(r"0x[0-9a-f]+|\d+|[0-9a-f]{8,}", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Evidence, with the reason that it speaks for if it speaks for one."""

    role: CausalRole
    authority: Authority
    source: str
    excerpt: str
    at_ms: int
    reason: TerminationReason | None = None
    suggests: TerminationReason | None = None
    """What it would be a sign of, also where something weightier decided."""
    backs: frozenset[TerminationReason] = frozenset()
    """Verdicts that it supports without suggesting them."""
    against: frozenset[TerminationReason] = frozenset()
    """Verdicts that it contradicts."""
    confidence: float = 0.0
    cause: str = ""
    """One sentence for people."""
    fingerprint: str = ""
    rank: int | None = None
    node: str | None = None
    monotonic_ns: int | None = None
    blob_digest: str | None = None
    """Where the whole of it is kept."""
    by_rule: bool = False
    """The run's own spec says so."""
    announced: bool = False
    """It was only going to happen: it explains failures of its node, and no more."""
    decisive: bool = False
    """Outranks what ranks say of themselves, whenever it happened."""

    def stance(self, verdict: TerminationReason) -> Stance:
        """What it says about a verdict; what only follows from another failure says nothing."""
        suggests = self.reason or self.suggests
        if verdict in self.against:
            return Stance.CONTRADICTS
        if suggests is verdict or verdict in self.backs:
            return Stance.SUPPORTS
        if suggests is None or suggests in _VAGUE or self.role in {CausalRole.CASCADE, CausalRole.TEARDOWN}:
            return Stance.NEUTRAL
        return Stance.CONTRADICTS

    def evidence(self, verdict: TerminationReason) -> Evidence:
        """The finding as it stands in the receipt, beside this verdict."""
        return Evidence(
            source=self.source,
            authority=self.authority,
            role=self.role,
            observed_at_ms=self.at_ms or None,
            excerpt=cut(self.excerpt),
            rank=self.rank,
            blob_digest=self.blob_digest,
            stance=self.stance(verdict),
        )


def cut(text: str) -> str:
    """Head and tail of a text that is too long for evidence."""
    if len(text) <= EXCERPT_CHARACTERS:
        return text
    half = EXCERPT_CHARACTERS // 2
    return f"{text[:half]}\n…\n{text[-half:]}"


def fingerprint(*parts: str) -> str:
    """Equal for the same failure at another time, address or rank; begins with a word that people can read."""
    normal = [_NOISE.sub("#", part) for part in parts]
    return f"{normal[0]}-{hashlib.sha256('|'.join(normal).encode()).hexdigest()[:12]}"


def error_fingerprint(error: ErrorSeen) -> str:
    """Exception type, message without numbers, and the innermost frames of the user's code."""
    frames = [f"{PurePath(frame.file).name}:{frame.function}" for frame in user_frames(error)[-3:]]
    return fingerprint(error.exception_type.rpartition(".")[2], error.message.partition("\n")[0], *frames)


def user_frames(error: ErrorSeen) -> tuple[Frame, ...]:
    """Frames that are not the launcher's own."""
    return tuple(frame for frame in error.frames if _OURS not in frame.file)
