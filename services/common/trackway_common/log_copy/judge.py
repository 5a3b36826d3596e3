"""Records of a fact topic with their verdicts; the writer and the verifier of a copy judge alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from trackway_common.acceptance import Acceptance, Accepted, Claimed, Duplicate, Rejected, Verdict
from trackway_common.codec import CorruptRecord
from trackway_common.event_log import Record
from trackway_common.events import OwnershipClaimed
from trackway_common.ids import root_key
from trackway_common.log_copy.segment import Copied, Standing, decode_envelope


@dataclass(frozen=True, slots=True)
class Judged:
    """A record, the stream that it is about, and how it stands."""

    copied: Copied
    stream: str
    first_seq: int
    claim: bool

    @property
    def root(self) -> str:
        """Run id of everything of a run, else ``{kind}/{id}``."""
        return root_key(self.stream).decode()


def judge(acceptance: Acceptance, record: Record) -> Judged:
    """Judge the next record of its partition."""
    try:
        commit = decode_envelope(record.value)
    except CorruptRecord as error:
        # Its key is all that is known of it; a run that it names is told of it.
        stream = f"poison/{record.key.decode(errors='replace') or record.topic}"
        return Judged(Copied(record=record, standing=Standing.POISON, refusal=str(error)), stream, 0, False)
    standing, refusal = _standing(acceptance.judge(record.partition, commit))
    copied = Copied(record=record, standing=standing, refusal=refusal)
    return Judged(copied, commit.stream, commit.first_seq, any(isinstance(f, OwnershipClaimed) for f in commit.facts))


def _standing(verdict: Verdict) -> tuple[Standing, str]:
    match verdict:
        case Accepted():
            return Standing.ACCEPTED, ""
        case Claimed():
            return Standing.CLAIMED, ""
        case Duplicate():
            return Standing.DUPLICATE, ""
        case Rejected():
            return Standing.REJECTED, verdict.reason
    assert_never(verdict)
