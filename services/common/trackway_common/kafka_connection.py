"""How a client reaches the cluster, from the settings: the one place that knows TLS and SASL."""

from __future__ import annotations

import ssl
from typing import Any

from aiokafka.conn import collect_hosts, create_conn
from aiokafka.errors import KafkaError, SaslAuthenticationFailed, UnsupportedSaslMechanismError
from aiokafka.helpers import create_ssl_context

from trackway_common.errors import CommandRejected, Unavailable
from trackway_common.settings import KafkaSettings

TRY_LIMIT_S = 3.0
"""A host that drops packets must not hold up a start for longer; it is waited out later."""


def connection_arguments(settings: KafkaSettings) -> dict[str, Any]:
    """Return what every aiokafka client needs to reach the cluster.

    Raises:
        CommandRejected: a certificate or key can't be used.
    """
    arguments: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap,
        "security_protocol": settings.security_protocol,
    }
    if settings.speaks_tls:
        arguments["ssl_context"] = _ssl_context(settings)
    if settings.speaks_sasl:
        assert settings.sasl_password is not None
        arguments |= {
            "sasl_mechanism": settings.sasl_mechanism,
            "sasl_plain_username": settings.sasl_username,
            "sasl_plain_password": settings.sasl_password.get_secret_value(),
        }
    return arguments


async def refuse_wrong_credentials(settings: KafkaSettings) -> None:
    """Connect once, to learn whether these settings can ever work; a cluster that is away says nothing about them.

    Clients of the log can't tell: to them a broker that refuses a password is one that does not answer.

    Raises:
        CommandRejected: a broker refuses the password or the mechanism, or its certificate is not trusted; names the
            setting to correct.
    """
    arguments = connection_arguments(settings)
    for host, port, _ in collect_hosts(arguments.pop("bootstrap_servers")):
        try:
            connection = await create_conn(host, port, request_timeout_ms=int(TRY_LIMIT_S * 1000), **arguments)
        except (KafkaError, OSError, TimeoutError) as error:
            if refusal := _refusal(error, f"{host}:{port}", settings):
                raise CommandRejected(refusal, reason="KAFKA_REFUSED") from error
        else:
            connection.close()
            return


def no_answer(settings: KafkaSettings, error: Exception) -> Unavailable:
    """What a failed connection means; the protocol is named because a wrong one looks the same."""
    return Unavailable(f"the log at {settings.bootstrap} does not answer over {settings.security_protocol} ({error!r})")


def _refusal(error: Exception, address: str, settings: KafkaSettings) -> str:
    """What can't work and what to correct; empty when trying later may help."""
    match error:
        case SaslAuthenticationFailed():
            return (
                f"the log at {address} refuses user {settings.sasl_username!r} with this password "
                f"({', '.join(error.args)}); correct TRACKWAY_KAFKA__SASL_USERNAME and TRACKWAY_KAFKA__SASL_PASSWORD"
            )
        case UnsupportedSaslMechanismError():
            return (
                f"the log at {address} does not take passwords by {settings.sasl_mechanism}; "
                "correct TRACKWAY_KAFKA__SASL_MECHANISM"
            )
        case ssl.SSLCertVerificationError():
            return (
                f"the certificate of the log at {address} is not trusted ({error.verify_message}); "
                "correct TRACKWAY_KAFKA__CA_FILE, or TRACKWAY_KAFKA__BOOTSTRAP where the name does not match"
            )
    return ""


def _ssl_context(settings: KafkaSettings) -> ssl.SSLContext:
    try:
        context: ssl.SSLContext = create_ssl_context(
            cafile=settings.ca_file, certfile=settings.cert_file, keyfile=settings.key_file
        )
    except OSError as error:
        # Of three files OpenSSL does not say which one.
        raise CommandRejected(
            f"the certificates for the log can't be used ({error}); correct TRACKWAY_KAFKA__CA_FILE, "
            "TRACKWAY_KAFKA__CERT_FILE or TRACKWAY_KAFKA__KEY_FILE: PEM files that this user may read, "
            "the key the certificate's own and without a passphrase"
        ) from error
    return context
