"""Rules for the whole suite: a skip that is not listed with its reason fails the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no reason to call a slow example wrong.
settings.register_profile("trackway", deadline=None)
settings.load_profile("trackway")

ALLOWED_SKIPS = Path(__file__).parent / "allowed-skips.txt"


def allowed_skips() -> dict[str, str]:
    """Test id prefix → reason, from the lines ``<id prefix> # <reason>``."""
    lines = [line.strip() for line in ALLOWED_SKIPS.read_text().splitlines()]
    pairs = [line.partition("#") for line in lines if line and not line.startswith("#")]
    return {prefix.strip(): reason.strip() for prefix, _, reason in pairs if reason.strip()}


class SkipWatch:
    """Collects skipped tests and fails the session for those that nobody allowed."""

    def __init__(self) -> None:
        self._allowed = tuple(allowed_skips())
        self.unlisted: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if (
            report.skipped
            and not hasattr(report, "wasxfail")
            and not report.nodeid.startswith(self._allowed or ("\0",))
        ):
            self.unlisted.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that skips itself while it is imported has no test reports; of its processes xdist tells once."""
        if report.skipped and not report.nodeid.startswith(self._allowed or ("\0",)):
            self.unlisted.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.unlisted and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for nodeid in self.unlisted:
            terminalreporter.write_line(
                f"SKIPPED WITHOUT A LISTED REASON: {nodeid} (tests/allowed-skips.txt)", red=True
            )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(SkipWatch(), "skip-watch")
