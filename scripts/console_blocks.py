"""Run the commands of the documentation, and compare what they print with what the page shows.

    python -m scripts.console_blocks [--write] PAGE...

Commands are in blocks of the language `console`, after `$ `. A page runs in an empty folder. A block that follows a
line which starts with a file name in backticks is written to that file first. A command may end in `# exit code N`.
In a page, `...` stands for any text, and a command without output is run and not compared. `--write` replaces the
outputs that differ; those with `...` have to be changed by hand.
"""

from __future__ import annotations

import argparse
import doctest
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/how-to/*.md")
"""The pages whose commands are run. docs/judging.md needs a person and a model: see tests/judging."""

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_BLOCK = re.compile(r"^(?:`([\w./-]+)`[^\n]*\n\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROGRESS = re.compile(r"^.+: (?:.*, )?[\d.]+ (?:s|min|h) so far.*\n", re.MULTILINE)
"""Lines that long work prints on a slow machine."""
_EXIT_CODE = re.compile(r"#\s*exit code (\d+)$")


@dataclass(frozen=True)
class Command:
    """A command of a page, what the page shows, and what it printed."""

    text: str
    shown: str
    printed: str

    @property
    def same(self) -> bool:
        """Whether the page shows what was printed."""
        return not self.shown.strip() or doctest.OutputChecker().check_output(self.shown, self.printed, FLAGS)


def pages() -> list[Path]:
    """The pages whose commands are run."""
    found = [path for pattern in PAGES for path in sorted(ROOT.glob(pattern))]
    return [path for path in found if "```console\n" in path.read_text("utf-8")]


def run_page(page: Path, folder: Path) -> Iterator[Command]:
    """Run the commands of a page in a folder, one after the other."""
    for name, language, content in _BLOCK.findall(page.read_text("utf-8")):
        if language == "console":
            for text, shown in _commands(content):
                yield Command(text, shown, _printed(text, folder))
        elif name:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content, "utf-8")


def _commands(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a block as they are written, each with the output shown."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        found = re.match(r"(?:[^\n]*\\\n)*[^\n]*\n", part)
        assert found is not None
        yield found[0].rstrip("\n"), part[found.end() :]


def _printed(text: str, folder: Path) -> str:
    """What a command prints, errors included; its exit code must be the one that the page states, or 0."""
    line = text.replace("\\\n", " ")
    stated = _EXIT_CODE.search(line)
    program, *arguments = shlex.split(line, comments=True)
    known = {"steelyard": ["-m", "steelyard"], "python": []}
    done = subprocess.run(
        [sys.executable, *known[program], *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1", "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode != (int(stated[1]) if stated else 0):
        raise SystemExit(f"$ {text}\nexit code {done.returncode}\n{done.stdout}")
    return without_progress(done.stdout)


def without_progress(printed: str) -> str:
    """What a command prints, without the lines of its progress."""
    return _PROGRESS.sub("", printed)


def main() -> int:
    """Check pages, or write what their commands print into them; 1 if an output still differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, help="default: every page with commands")
    parser.add_argument("--write", action="store_true", help="replace the outputs that differ")
    given = parser.parse_args()
    left = 0
    for page in given.pages or pages():
        text = page.read_text("utf-8")
        with tempfile.TemporaryDirectory() as folder:
            for command in run_page(page, Path(folder)):
                if command.same:
                    continue
                print(f"{page}: $ {command.text}\n{command.printed}")
                written = given.write and "..." not in command.shown
                left += not written
                if written:
                    before = f"$ {command.text}\n{command.shown}"
                    text = text.replace(before, f"$ {command.text}\n{_as_shown(command.printed)}", 1)
        if given.write:
            page.write_text(text, "utf-8")
    return int(left > 0)


def _as_shown(printed: str) -> str:
    """An output as a page shows it."""
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
