"""Print pyproject.toml's dependencies pinned to the lowest versions it allows."""

from __future__ import annotations

import re
from pathlib import Path

if __name__ == "__main__":
    text = Path(__file__).resolve().parent.parent.joinpath("pyproject.toml").read_text("utf-8")
    block = re.search(r"^dependencies = \[(.*?)^\]", text, re.DOTALL | re.MULTILINE)
    assert block is not None, "pyproject.toml has no list of dependencies"
    for name, version in re.findall(r'"([\w-]+)>=([\d.]+)"', block.group(1)):
        print(f"{name}=={version}")
