"""Skipped tests are listed by reason; in continuous integration an unlisted reason fails the session."""

from __future__ import annotations

import os
import runpy
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from needs import allowed_reasons, is_allowed

# Time limits of single examples fail on a busy machine, and test nothing.
# Neither time limits nor complaints about slow inputs: both ask the clock.
settings.register_profile(
    "steelyard", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.load_profile("steelyard")
# As in the adapter of Milvus; the tests import its package before.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--jumping-clock", action="store_true", help="run the tests with a clock that jumps")


def pytest_configure(config: pytest.Config) -> None:
    """With --jumping-clock, this process and those that it starts have a clock that jumps."""
    if config.getoption("--jumping-clock"):
        folder = str(Path(__file__).parent / "jumping_clock")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
        runpy.run_path(os.path.join(folder, "sitecustomize.py"))


def skipped_by_reason(config: pytest.Config) -> Counter[str]:
    """How many tests, or modules that were skipped whole, were skipped for each reason."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    reports = terminal.stats.get("skipped", []) if terminal else []
    return Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)


def not_allowed(config: pytest.Config) -> list[str]:
    """The reasons that make this session fail: none outside continuous integration."""
    if os.environ.get("CI", "").lower() not in ("1", "true"):
        return []
    return [reason for reason in skipped_by_reason(config) if not is_allowed(reason)]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    on_worker = hasattr(session.config, "workerinput")
    if not on_worker and session.exitstatus == pytest.ExitCode.OK and not_allowed(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skipped = skipped_by_reason(config)
    if not skipped:
        return
    failing = not_allowed(config)
    terminalreporter.section("skipped tests by reason")
    for reason, count in sorted(skipped.items(), key=lambda item: (-item[1], item[0])):
        terminalreporter.write_line(f"{count:5d}  {reason}{'  (not allowed in CI)' if reason in failing else ''}")
    if failing:
        terminalreporter.write_line(f"In CI a test may be skipped only for: {', '.join(allowed_reasons())}.", red=True)
