"""Settings from the environment: every mistake by its variable's name, and never a value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from trackway_common.environment import read_settings
from trackway_common.errors import CommandRejected
from trackway_common.settings import ServiceSettings

from tests.support.certificates import Authority

Environment = dict[str, str]
GOOD: Environment = {"TRACKWAY_KAFKA__BOOTSTRAP": "h:1", "TRACKWAY_STORE__URL": "file:///objects"}


@pytest.fixture
def set_environment(monkeypatch: pytest.MonkeyPatch) -> Callable[[Environment], None]:
    def set_all(environment: Environment) -> None:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)

    return set_all


def refusal() -> str:
    with pytest.raises(CommandRejected) as refused:
        read_settings(ServiceSettings)
    assert refused.value.__cause__ is None
    return str(refused.value)


def test_everything_that_is_missing_is_named() -> None:
    said = refusal()
    assert "TRACKWAY_KAFKA__BOOTSTRAP is not set" in said
    assert "TRACKWAY_STORE__URL is not set" in said


def test_a_misspelt_password_is_named_and_not_shown(set_environment: Callable[[Environment], None]) -> None:
    set_environment(GOOD | {"TRACKWAY_KAFKA__SASL_PASSWRD": "quiet-harbour"})
    said = refusal()
    assert "TRACKWAY_KAFKA__SASL_PASSWRD is no setting" in said
    assert "quiet-harbour" not in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"KAFKA__SECURITY_PROTOCOL": "SASL_SSL"}, "TRACKWAY_KAFKA__SASL_PASSWORD are needed by SASL_SSL"),
        ({"KAFKA__SASL_PASSWORD": "p"}, "set TRACKWAY_KAFKA__SECURITY_PROTOCOL to SASL_SSL"),
        ({"KAFKA__CA_FILE": "CERT"}, "set TRACKWAY_KAFKA__SECURITY_PROTOCOL to SSL"),
        ({"KAFKA__CA_FILE": "/no/ca.pem"}, r"TRACKWAY_KAFKA__CA_FILE: /no/ca.pem can't be read \(No such file"),
        ({"KAFKA__SECURITY_PROTOCOL": "SSL", "KAFKA__CERT_FILE": "CERT"}, "TRACKWAY_KAFKA__KEY_FILE need each other"),
        ({"KAFKA__SECURITY_PROTOCOL": "TLS"}, "TRACKWAY_KAFKA__SECURITY_PROTOCOL: Input should be 'PLAINTEXT'"),
        ({"RPC__CERT_FILE": "CERT"}, "TRACKWAY_RPC__CERT_FILE and TRACKWAY_RPC__KEY_FILE need each other"),
        ({"RPC__CLIENT_CA_FILE": "CERT"}, "TRACKWAY_RPC__CLIENT_CA_FILE has no effect without"),
        ({"RPC__CERT_FILE": "CERT", "RPC__KEY_FILE": "FOREIGN"}, "__KEY_FILE or __CLIENT_CA_FILE can't be used"),
        ({"RPC__LISTEN": "0.0.0.0:7420"}, "TRACKWAY_RPC__ADVERTISE is needed with TRACKWAY_RPC__LISTEN=0.0.0.0:7420"),
    ],
)
def test_a_setting_without_its_effect_is_refused(
    set_environment: Callable[[Environment], None], tmp_path: Path, given: Environment, said: str
) -> None:
    authority = Authority(tmp_path)
    one, other = authority.issue("one"), authority.issue("other")
    files = {"CERT": str(one.certificate), "FOREIGN": str(other.key)}
    set_environment(GOOD | {f"TRACKWAY_{name}": files.get(value, value) for name, value in given.items()})
    with pytest.raises(CommandRejected, match=said):
        read_settings(ServiceSettings)


def test_a_secured_environment_is_read(set_environment: Callable[[Environment], None], tmp_path: Path) -> None:
    identity = Authority(tmp_path).issue("one")
    certificate, key = str(identity.certificate), str(identity.key)
    kafka = {"SECURITY_PROTOCOL": "SASL_SSL", "SASL_USERNAME": "u", "SASL_PASSWORD": "p", "CA_FILE": certificate}
    rpc = {"CERT_FILE": certificate, "KEY_FILE": key, "CLIENT_CA_FILE": certificate}
    blocks = {"KAFKA": kafka, "RPC": rpc}
    set_environment(
        GOOD | {f"TRACKWAY_{b}__{name}": value for b, block in blocks.items() for name, value in block.items()}
    )
    settings = read_settings(ServiceSettings)
    assert settings.kafka.sasl_password is not None
    assert settings.kafka.sasl_password.get_secret_value() == "p"
    assert settings.rpc.client_ca_file == identity.certificate
