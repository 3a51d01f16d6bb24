"""What the tests of formats share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that is not there yet, under a name that says nothing of its format."""
    return tmp_path / "file"
