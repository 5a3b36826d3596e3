"""Where a client begins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trackway.client.endpoints import scheduler_endpoint
from trackway.client.settings import ClientSettings, read_settings
from trackway_common.errors import CommandRejected, Unavailable


def _stack(folder: Path, endpoints: dict[str, str]) -> None:
    record = {"stack_id": "s", "folder": str(folder), "ports": {}, "endpoints": endpoints, "started_at": ""}
    (folder / "stack.json").write_text(json.dumps(record))


def test_the_given_endpoint_wins_over_the_local_stack(tmp_path: Path) -> None:
    _stack(tmp_path, {"scheduler": "127.0.0.1:7"})
    assert scheduler_endpoint("there:1", tmp_path) == "there:1"
    assert scheduler_endpoint("", tmp_path) == "127.0.0.1:7"


@pytest.mark.parametrize("address", ["host:1", "127.0.0.1:65535", "[::1]:80", "trackway.example.org:443"])
def test_addresses(address: str) -> None:
    assert scheduler_endpoint(address, None) == address


@pytest.mark.parametrize("address", ["host", "host:", ":1", "http://host:1", "host:port", "a b:1", "::1:80"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(CommandRejected, match="write host:port"):
        scheduler_endpoint(address, None)


def test_no_stack_is_an_outage_that_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="trackway up"):
        scheduler_endpoint("", tmp_path)
    _stack(tmp_path, {})
    with pytest.raises(Unavailable):
        scheduler_endpoint("", tmp_path)


def test_settings_of_the_environment(tmp_path: Path) -> None:
    assert read_settings({}) == ClientSettings()
    assert read_settings({"TRACKWAY_ENDPOINT": "", "TRACKWAY_RPC__CA_FILE": ""}) == ClientSettings()
    environment = {
        "TRACKWAY_ENDPOINT": "host:1",
        "TRACKWAY_STATE": str(tmp_path),
        "TRACKWAY_RPC__CA_FILE": "ca.pem",
        "TRACKWAY_RPC__CERT_FILE": "cert.pem",
        "TRACKWAY_RPC__KEY_FILE": "key.pem",
    }
    assert read_settings(environment) == ClientSettings(
        endpoint="host:1",
        state=tmp_path,
        ca_file=Path("ca.pem"),
        cert_file=Path("cert.pem"),
        key_file=Path("key.pem"),
    )
