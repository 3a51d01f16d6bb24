"""docs/bench.md lists every key of bench.yaml with its default."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from pydantic_core import PydanticUndefined

from steelyard.bench.config import Bench, check_bench

PAGE = (Path(__file__).parents[2] / "docs" / "bench.md").read_text("utf-8")


def test_every_key_and_its_default_is_documented():
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", PAGE, re.MULTILINE)
    documented = {key: shown for key, shown, meaning in rows if meaning.strip()}
    known = {name: _shown(field.default) for name, field in Bench.model_fields.items()}
    assert documented == known


def _shown(default: object) -> str:
    if default is PydanticUndefined:
        return "required"
    if default is None:
        return "none"
    if hasattr(default, "model_dump"):
        return f"`{{{', '.join(f'{key}: {value}' for key, value in default.model_dump().items())}}}`"
    return f"`{default}`"


def test_documented_sweep(tmp_path):
    (example,) = re.findall(r"```yaml\n(retrievers:.*?)```", PAGE, re.DOTALL)
    (tmp_path / "mine.py").write_text(
        "class CharGram:\n    def __init__(self, n): pass\n    def retrieve(self, query): pass\n"
    )
    given = {"dataset": "demo", "measures": ["RR"], **yaml.safe_load(example)}
    given["retrievers"][1]["python"]["folder"] = str(tmp_path)
    labels = [spec.label for spec in check_bench(given)[1]]
    assert labels == [
        *(f"bm25-okapi k1={k1} b={b}" for k1 in (0.9, 1.2) for b in (0.4, 0.75)),
        "chargram n=3",
        "chargram n=4",
    ]  # fmt: skip
