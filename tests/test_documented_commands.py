"""Commands and notebooks of the documentation are run, and print what is shown."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from scripts import console_blocks

from needs import import_peer, not_on_windows

ROOT = Path(__file__).parent.parent
MARKS = {"langchain.md": pytest.mark.adapters}
"""Pages whose commands need more than the package; all others are slow."""


@not_on_windows
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=MARKS.get(page.name, pytest.mark.slow)) for page in console_blocks.pages()],
    ids=lambda page: page.name,
)
def test_the_commands_of_a_page_print_what_it_shows(page, tmp_path):
    for command in console_blocks.run_page(page, tmp_path):
        assert command.same, (
            f"{page.relative_to(ROOT)}: `make pictures` writes what this prints into the page.\n"
            f"$ {command.text}\n{command.printed}"
        )


def test_a_different_output_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("`a.py`\n\n```python\nprint(2)\n```\n\n```console\n$ python a.py\n1\n$ python a.py\n2\n```\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    assert [command.same for command in console_blocks.run_page(page, folder)] == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["app", "compare", "judging", "tour"])
def test_a_notebook_prints_what_is_stored_in_it(name):
    for module in ("nbclient", "ipykernel", *(("haystack", "langchain_core", "llama_index.core") * (name == "app"))):
        import_peer(module)
    from scripts import notebooks

    path = notebooks.FOLDER / f"{name}.ipynb"
    stored = json.loads(path.read_text("utf-8"))
    assert notebooks.texts(notebooks.executed(path)) == notebooks.texts(stored), "run `make pictures`"
    assert sys.platform != "linux" or "/tmp/" not in path.read_text("utf-8")
