"""Certificates for tests: an authority of its own, and what it issues for the loopback."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1")
_LOOPBACK = "subjectAltName=DNS:localhost,IP:127.0.0.1"


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its key, PEM."""

    certificate: Path
    key: Path

    def in_one_file(self) -> Path:
        """Both, as Java wants them."""
        both = self.certificate.with_suffix(".both.pem")
        both.write_text(self.key.read_text() + self.certificate.read_text())
        return both


class Authority:
    """Signs what it issues with its own key."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._own = self._made(name, ["-x509", "-addext", "basicConstraints=critical,CA:TRUE"])

    @property
    def certificate(self) -> Path:
        """What those who trust it are given."""
        return self._own.certificate

    def issue(self, name: str) -> Identity:
        """A certificate for the loopback with this common name; serves as a server's and as a client's."""
        signed = ["-x509", "-CA", str(self._own.certificate), "-CAkey", str(self._own.key)]
        return self._made(name, [*signed, "-addext", _LOOPBACK, "-addext", "basicConstraints=CA:FALSE"])

    def _made(self, name: str, how: list[str]) -> Identity:
        made = Identity(self._folder / f"{name}.pem", self._folder / f"{name}.key.pem")
        files = ["-keyout", str(made.key), "-out", str(made.certificate)]
        command = ["openssl", "req", *_EC, "-subj", f"/CN={name}", *how, *files]
        subprocess.run(command, check=True, capture_output=True)
        return made
