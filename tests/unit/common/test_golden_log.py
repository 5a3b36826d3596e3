"""A log segment written by release v1 must fold to the same state in every build.

`tests/golden/v1/killed_and_resumed.segment` is a real run's facts: length-prefixed commits (4 bytes, big endian) as the
broker held them. A build that reads it otherwise needs an upcaster, never a new golden file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from trackway_common.acceptance import Acceptance, Accepted
from trackway_common.canonical import digest
from trackway_common.codec import decode_commit, encode_commit, fact_fields
from trackway_common.commit import Commit, UnknownFact
from trackway_common.history.fold import fold_run, run_of
from trackway_common.history.receipt import attempt_receipt
from trackway_common.topics import CHECKPOINTS

GOLDEN = Path(__file__).parents[2] / "golden/v1"
STATE = GOLDEN / "killed_and_resumed.json"


def records() -> Iterator[bytes]:
    """Record values, in the order of each stream."""
    data = (GOLDEN / "killed_and_resumed.segment").read_bytes()
    while data:
        size = int.from_bytes(data[:4], "big")
        yield data[4 : 4 + size]
        data = data[4 + size :]


def commits() -> list[Commit]:
    """The segment's commits."""
    return [decode_commit(record) for record in records()]


def folded() -> dict[str, object]:
    """What the segment folds to: both receipts, and a digest of the whole history."""
    run_id = run_of(commits()[0])
    assert run_id is not None
    history = fold_run(run_id, commits())
    receipts = [fact_fields(attempt_receipt(history, number)) for number in (1, 2)]
    return {"receipts": receipts, "commits": len(commits()), "checkpoints": checkpoint_digest()}


def checkpoint_digest() -> str:
    """Digest of the checkpoint facts in order."""
    facts = [fact_fields(fact) for c in commits() if c.stream.startswith("checkpoints/") for fact in c.facts]
    return digest(json.loads(json.dumps(facts)))


def test_every_fact_of_v1_is_still_known():
    assert [fact for commit in commits() for fact in commit.facts if isinstance(fact, UnknownFact)] == []


def as_far_as(released: object, now: object) -> object:
    """What there is now of the members that the release had; later ones may stand beside them."""
    if isinstance(released, dict) and isinstance(now, dict):
        return {key: as_far_as(value, now.get(key)) for key, value in released.items()}
    if isinstance(released, list) and isinstance(now, list) and len(released) == len(now):
        return [as_far_as(before, after) for before, after in zip(released, now, strict=True)]
    if isinstance(released, str) and isinstance(now, str) and released.startswith(("[", "{")):
        same = as_far_as(json.loads(released), json.loads(now)) == json.loads(released)
        return released if same else now
    return now


def test_the_segment_folds_to_the_state_of_its_release():
    released = json.loads(STATE.read_text())
    assert as_far_as(released, json.loads(json.dumps(folded()))) == released


def test_what_is_read_is_written_as_it_was():
    assert [encode_commit(commit) for commit in commits()] == list(records())


def test_its_checkpoint_commits_are_accepted_in_slot_order():
    rule = Acceptance(CHECKPOINTS)
    verdicts = [rule.judge(0, commit) for commit in commits() if commit.stream.startswith("checkpoints/")]
    assert len(verdicts) > 20
    assert set(verdicts) == {Accepted()}
