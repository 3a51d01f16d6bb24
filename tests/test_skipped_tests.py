"""The hook of conftest.py: skipped tests are listed by reason, and in CI only the listed reasons are allowed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from needs import NO_BROWSER, NO_KERNEL, NO_PEER, NO_SHARED, allowed_reasons, is_allowed

TESTS = Path(__file__).parent
SOURCE = """
import pytest

def test_passes():
    pass

@pytest.mark.skip(reason={reason!r})
def test_skipped():
    pass

@pytest.mark.parametrize("n", [1, 2])
def test_no_shared_data(n):
    pytest.skip("no ../shared")
"""
MODULE = "import pytest\npytest.importorskip('no_such_module', reason={reason!r})\n"


def session(folder: Path, reason: str, *options: str, source: str = SOURCE, **environment: str) -> tuple[int, str]:
    """A pytest session of its own, with the hook: its exit code and its output."""
    (folder / "test_file.py").write_text(source.format(reason=reason), "utf-8")
    config = folder / "pytest.ini"
    config.write_text("[pytest]\n", "utf-8")
    settings = ("CI", "STEELYARD_NATIVE", "STEELYARD_LOWEST", "PYTEST_ADDOPTS")
    kept = {name: value for name, value in os.environ.items() if name not in settings}
    if not options:
        kept["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "conftest"),
            *("-c", str(config), *options, str(folder)),
        ],
        env={**kept, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("options", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)])
def test_in_ci_an_unlisted_reason_fails_the_session(tmp_path, options):
    code, output = session(tmp_path, "this machine is too slow", *options, CI="true")
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "skipped tests by reason" in output
    assert "    2  no ../shared\n" in output
    assert "    1  this machine is too slow  (not allowed in CI)\n" in output
    assert "only for: no browser, no Java, no ../shared" in output


@pytest.mark.parametrize("options", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)])
def test_in_ci_a_module_that_is_skipped_whole_counts(tmp_path, options):
    code, output = session(tmp_path, "no such package", *options, source=MODULE, CI="true")
    assert code != pytest.ExitCode.OK
    assert "    1  no such package  (not allowed in CI)\n" in output


def test_in_ci_listed_reasons_pass(tmp_path):
    code, output = session(tmp_path, f"{NO_BROWSER}: playwright install chromium", CI="true")
    assert code == pytest.ExitCode.OK
    assert "    1  no browser: playwright install chromium\n" in output
    assert "not allowed" not in output


def test_outside_ci_any_reason_passes_and_is_listed(tmp_path):
    code, output = session(tmp_path, "this machine is too slow")
    assert code == pytest.ExitCode.OK
    assert "    1  this machine is too slow\n" in output


def test_missing_peers_and_kernel_are_allowed_only_where_they_are_left_out(monkeypatch):
    monkeypatch.delenv("STEELYARD_NATIVE", raising=False)
    monkeypatch.delenv("STEELYARD_LOWEST", raising=False)
    assert allowed_reasons()[:3] == [NO_BROWSER, "no Java", NO_SHARED]
    assert not is_allowed(NO_KERNEL)
    assert not is_allowed(f"{NO_PEER}: ranx")
    monkeypatch.setenv("STEELYARD_NATIVE", "0")
    assert is_allowed(NO_KERNEL)
    assert not is_allowed(f"{NO_PEER}: ranx")
    monkeypatch.setenv("STEELYARD_NATIVE", "1")
    monkeypatch.setenv("STEELYARD_LOWEST", "1")
    assert is_allowed(NO_KERNEL)
    assert is_allowed(f"{NO_PEER}: ranx")
    assert not is_allowed("no ../shared data")
