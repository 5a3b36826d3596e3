"""What a client reads by digest is what has that digest."""

from __future__ import annotations

import hashlib

import pytest
from trackway.client import TrackwayClient
from trackway_common.errors import NotFound, Unavailable

from tests.integration.cli_harness import fake
from tests.integration.fake_trackway import FakeTrackway

__all__ = ["fake"]

CONTENT = bytes(range(256)) * (5 << 11)
"""2.5 MiB: three messages."""


def test_a_blob_comes_back_whole(fake: FakeTrackway) -> None:
    digest = "sha256:" + hashlib.sha256(CONTENT).hexdigest()
    fake.blobs[digest] = CONTENT
    with TrackwayClient(fake.endpoint) as client:
        assert client.blob(digest) == CONTENT


def test_other_bytes_than_the_digest_says_are_told(fake: FakeTrackway) -> None:
    fake.blobs["sha256:0"] = CONTENT
    with TrackwayClient(fake.endpoint) as client, pytest.raises(Unavailable, match="sha256:0"):
        client.blob("sha256:0")


def test_a_digest_of_nothing_is_not_found(fake: FakeTrackway) -> None:
    with TrackwayClient(fake.endpoint) as client, pytest.raises(NotFound, match="sha256:1"):
        client.blob("sha256:1")
