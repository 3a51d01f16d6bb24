"""A notebook as Markdown: its texts, its code and the outputs that are stored in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"


def notebook(name: str) -> str:
    """A notebook of examples/notebooks as Markdown."""
    cells = json.loads((FOLDER / f"{name}.ipynb").read_text("utf-8"))["cells"]
    parts = [f"This page is the notebook `examples/notebooks/{name}.ipynb`; download it to run it."]
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(re.sub(r"^# .*\n*", "", source))
        else:
            parts.append(f"```python\n{source}\n```")
            parts += [_shown(output) for output in cell["outputs"]]
    return "\n\n".join(part for part in parts if part.strip())


def _shown(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text']).rstrip()}\n```"
    data = output.get("data", {})
    if "text/html" in data:
        return "".join(data["text/html"])
    return f"```text\n{''.join(data.get('text/plain', '')).rstrip()}\n```"
