"""Bytes of log entries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common.checkpoint.entries import (
    MAX_ENTRY_BYTES,
    MAX_TEXT,
    Commit,
    Deleted,
    Fence,
    Head,
    HeadCommit,
    Hold,
    LogEntry,
    Quarantine,
    Release,
    Supersede,
    Tombstone,
    decode_entry,
    encode_entry,
    fitted,
    shortened,
)
from trackway_common.errors import CommandRejected, CorruptLog
from trackway_common.events import CheckpointRef, MetricValue

DIGEST = "sha256:" + "a" * 64
PATH = "data/s000001200-e0004-1a2b3c4d"
count = st.integers(0, 2**53 - 1)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)
refs = st.builds(CheckpointRef, run_id=text, step=count, epoch=count, nonce=text, manifest_digest=text, slot=count)
metrics = st.builds(MetricValue, name=text, value=st.floats(allow_nan=False, allow_infinity=False))
bodies = st.one_of(
    st.builds(Fence, epoch=count),
    st.builds(
        Commit,
        epoch=count,
        nonce=text,
        step=count,
        path=text,
        manifest_digest=text,
        parent=st.none() | refs,
        size_bytes=count,
        dataset_digests=st.lists(text, max_size=3).map(tuple),
        metrics=st.lists(metrics, max_size=3).map(tuple),
    ),
    st.builds(Hold, commit_slot=count, consumer=text, reason=text, ttl_seconds=count),
    st.builds(Release, commit_slot=count, consumer=text),
    st.builds(Supersede, commit_slot=count, by_policy=text),
    st.builds(Quarantine, commit_slot=count, why=text),
    st.builds(Tombstone, commit_slot=count),
    st.builds(Deleted, commit_slot=count, freed_bytes=count),
)
FULL_HEAD = Head(
    fence=10**9,
    commits=tuple(HeadCommit(slot=10**9 + i, path=PATH, manifest_digest=DIGEST) for i in range(8)),
)


def entry_of(body, slot=7, head=FULL_HEAD):
    return LogEntry(
        slot=slot, at_ms=1_790_000_000_000, writer="checkpointer/" + "h" * 40, token="t" * 16, body=body, head=head
    )


@given(bodies)
def test_every_entry_is_read_back(body):
    entry = entry_of(body)
    assert decode_entry(encode_entry(entry), slot=7) == entry


@given(st.builds(Fence, epoch=count), st.data())
def test_any_changed_bit_is_found(body, data):
    raw = bytearray(encode_entry(entry_of(body)))
    at = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[at // 8] ^= 1 << at % 8
    with pytest.raises(CorruptLog, match="slot 7"):
        decode_entry(bytes(raw), slot=7)


def test_every_truncation_is_found():
    raw = encode_entry(entry_of(Fence(epoch=1)))
    for size in range(len(raw)):
        with pytest.raises(CorruptLog):
            decode_entry(raw[:size], slot=7)


def test_an_entry_under_another_slot_is_found():
    raw = encode_entry(entry_of(Fence(epoch=1)))
    with pytest.raises(CorruptLog, match="holds the entry of slot 7"):
        decode_entry(raw, slot=8)


@pytest.mark.parametrize(
    "raw", [b"", b"null", b"[]", b"{", b"[" * 5000, b"\xff", b'{"format":"trackway.commit-log/2"}', b'{"a":1,"a":1}']
)
def test_other_bytes_are_refused(raw):
    with pytest.raises(CorruptLog):
        decode_entry(raw, slot=1)


def test_an_unknown_kind_is_refused(monkeypatch):
    from trackway_common.checkpoint import entries

    with monkeypatch.context() as patch:
        patch.setitem(entries._NAMES, Fence, "promote")
        raw = encode_entry(entry_of(Fence(epoch=1)))
    with pytest.raises(CorruptLog, match="kind 'promote' is not known"):
        decode_entry(raw, slot=7)


def test_a_reason_that_looks_like_a_check_sum_is_only_a_reason():
    entry = entry_of(Quarantine(commit_slot=1, why='"check":"0123456789abcdef"'))
    assert decode_entry(encode_entry(entry), slot=7) == entry


def test_the_largest_commit_fits_into_one_page():
    commit = Commit(
        epoch=10**8,
        nonce="z" * 32,
        step=10**14,
        path=PATH,
        manifest_digest=DIGEST,
        parent=CheckpointRef(run_id="r" * 36, step=1, epoch=1, nonce="n" * 32, manifest_digest=DIGEST, slot=10**9),
        size_bytes=2**53 - 1,
        world_size=10**5,
        samples_consumed=2**53 - 1,
        config_digest=DIGEST,
        dataset_digests=(DIGEST,) * 100,
        metrics=tuple(MetricValue(name="m" * 60, value=1 / 3) for _ in range(100)),
    )
    fit = fitted(commit)
    assert len(encode_entry(entry_of(fit))) <= MAX_ENTRY_BYTES
    assert len(fit.dataset_digests) >= 8
    assert fitted(fit) is fit


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_shortened_reason_always_fits(why):
    assert len(encode_entry(entry_of(Quarantine(commit_slot=1, why=shortened(why * 20))))) <= MAX_ENTRY_BYTES
    assert len(shortened(why)) <= MAX_TEXT


def test_a_reason_that_is_too_long_is_refused():
    with pytest.raises(CommandRejected, match="shorten"):
        encode_entry(entry_of(Hold(commit_slot=1, consumer="c", reason="r" * 4000)))
