"""Run the notebooks of examples/notebooks and store their outputs in them.

    python -m scripts.notebooks [--check]

`--check` changes nothing and fails if an output differs from the stored one. Needs nbclient and ipykernel.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples" / "notebooks"


def executed(path: Path) -> dict[str, Any]:
    """The notebook with the outputs of running it in an empty process, and nothing that differs from run to run."""
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3")
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT / "src")})
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.execution_count = None
            # A kernel sends its two streams side by side; which arrives first differs from run to run.
            cell.outputs.sort(key=lambda output: output.get("name") != "stderr")
            for output in cell.outputs:
                if output.get("name") == "stderr":
                    output.text = _without_place(output.text)
                if output.output_type == "execute_result":
                    output.execution_count = None
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    found: dict[str, Any] = json.loads(nbformat.writes(notebook))
    return found


def _without_place(warning: str) -> str:
    """A warning without the temporary file and the line that it is from."""
    lines = re.sub(r"^\S*ipykernel_\S+:\d+: ", "", warning, flags=re.MULTILINE).splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("  "))


def texts(notebook: dict[str, Any]) -> list[str]:
    """The outputs of a notebook as text, one per cell with code."""
    return [
        "".join(_text(output) for output in cell["outputs"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def _text(output: dict[str, Any]) -> str:
    stored = output["text"] if output["output_type"] == "stream" else output["data"].get("text/plain", "")
    return "".join(stored)


def main() -> int:
    """Run every notebook; write the outputs, or compare them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail if an output differs")
    check = parser.parse_args().check
    different = []
    for path in sorted(FOLDER.glob("*.ipynb")):
        made = executed(path)
        if texts(made) != texts(json.loads(path.read_text("utf-8"))):
            different.append(path.name)
            if not check:
                path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"changed: {', '.join(different) or 'none'}")
    return int(bool(different) and check)


if __name__ == "__main__":
    sys.exit(main())
