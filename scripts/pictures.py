"""Make the pictures of the documentation from a run of the bundled benchmark.

    python -m scripts.pictures [--only terminal|page]

The report page is opened in headless Chromium; the terminal picture is what `steelyard demo` prints on a terminal of 80
columns, as an SVG in which the lines appear one after the other. docs/images/made-from.json records what the pictures
were made from: a test fails when the sources of the page or the result of the demo are not those any more. Needs the
extra `report`, Playwright and a Chromium.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path

import polars as pl
from scripts.terminal import Line, Screen

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
MADE_FROM = IMAGES / "made-from.json"
PACKAGE = ROOT / "src" / "steelyard"
SOURCES = ("report/page", "report/charts", "demo")
"""The folders of the package that the pictures of the page show."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
VIEWS = {
    "report.png": ("", {"color_scheme": "light"}),
    "report-query.png": ("#query=para-20", {"color_scheme": "light"}),
    "report-dark.png": ("", {"color_scheme": "dark"}),
}
"""The picture, the address that shows it, and how it is looked at."""

COLUMNS, ROWS = 80, 60
MOST_LINES = 34
COMMAND = "steelyard demo"


def fingerprint() -> str:
    """A hash of the sources of the page and of the demo."""
    hashed = sha256()
    for path in sorted(path for folder in SOURCES for path in (PACKAGE / folder).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            hashed.update(path.relative_to(PACKAGE).as_posix().encode())
            hashed.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return hashed.hexdigest()


def run_demo(folder: Path, command: Sequence[str] = (sys.executable, "-m", "steelyard", "demo")) -> list[Line]:
    """The lines that `steelyard demo` leaves on a terminal; the result is in folder/steelyard-demo.

    `command` runs it: a test gives one with fixed latencies, because the output names the faster of two runs.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    settings = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "CI")}
    settings |= {"PYTHONPATH": str(PACKAGE.parent), "TERM": "xterm-256color"}
    process = subprocess.Popen(command, cwd=folder, env=settings, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    screen = Screen(COLUMNS)
    screen.write(b"".join(_chunks(ours)).decode("utf-8", "replace"))
    if process.wait() != 0:
        raise SystemExit(f"{COMMAND} failed:\n{screen.text()}")
    return screen.lines()


def _chunks(descriptor: int) -> Iterator[bytes]:
    """What is written to a terminal, until it is closed."""
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:
            return
        if not chunk:
            return
        yield chunk


def demo_means(folder: Path) -> dict[str, float]:
    """The mean of every run and measure of the demo, without the times, which differ from run to run."""
    scores = pl.read_parquet(folder / "steelyard-demo" / "scores.parquet")
    means = scores.filter(pl.col("measure") != "Latency").group_by("run", "measure").agg(pl.mean("value"))
    return {f"{run} {measure}": round(value, 4) for run, measure, value in means.sort("run", "measure").rows()}


def masked(lines: list[str]) -> list[str]:
    """Lines without their numbers, some of which are times."""
    return [re.sub(r"\s+", " ", re.sub(r"\d[\d.,]*", "#", line)).strip() for line in lines]


def picture_page(page: Path) -> None:
    """Every view of the report page, as a file."""
    from playwright.sync_api import sync_playwright

    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for name, (address, options) in VIEWS.items():
            context = browser.new_context(offline=True, viewport={"width": 1280, "height": 860}, **options)
            tab = context.new_page()
            tab.goto(page.as_uri() + address)
            tab.wait_for_selector("html[data-ready=yes]", state="attached")
            tab.evaluate("() => document.fonts.ready")
            # Charts in view are drawn after the page is ready; those below are not in the picture.
            tab.wait_for_function(
                "() => [...document.querySelectorAll('figure.chart')].every((chart) => "
                "chart.getBoundingClientRect().top > innerHeight || chart.querySelector('svg'))"
            )
            tab.screenshot(path=IMAGES / name)
            context.close()
        browser.close()


# The terminal picture

CHARACTER, LEADING, MARGIN, BAR = 8.43, 19, 18, 34
STYLE = """
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
text { fill: #d8dee4; white-space: pre; }
.bold { font-weight: 700; } .dim { fill-opacity: .65; } .prompt { fill: #7ee0b0; }
.typed { animation: typed 1s steps(14) .4s backwards; } .line { animation: shown .01s backwards; }
@keyframes typed { from { clip-path: inset(0 100% 0 0); } to { clip-path: inset(0 0 0 0); } }
@keyframes shown { from { opacity: 0; } }
@media (prefers-reduced-motion: reduce) { .typed, .line { animation: none; } }
"""


def terminal_svg(lines: list[Line]) -> str:
    """The command and its output as an SVG. Without animation, and at its end, everything is visible."""
    shown = lines[:MOST_LINES]
    width = COLUMNS * CHARACTER + 2 * MARGIN
    height = BAR + (len(shown) + 1) * LEADING + MARGIN
    first = BAR + LEADING
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" role="img">',
        f"<title>{escape(COMMAND)}</title>",
        f"<desc>{escape(chr(10).join(line.text for line in shown))}</desc>",
        f"<style>{STYLE}</style>",
        f'<rect width="{width:.0f}" height="{height:.0f}" rx="8" fill="#1c2128"/>',
        *(f'<circle cx="{18 + 18 * n}" cy="17" r="5.5" fill="#444c56"/>' for n in range(3)),
        f'<text x="{MARGIN}" y="{first}" class="prompt">$</text>',
        f'<text x="{MARGIN + 2 * CHARACTER:.1f}" y="{first}" class="bold typed">{escape(COMMAND)}</text>',
    ]
    for number, line in enumerate(shown, start=1):
        if line.text.strip():
            y, delay = first + number * LEADING, 1.9 + 0.07 * number
            spans = "".join(_span(text, column, css, colour) for column, text, css, colour in line.spans())
            parts.append(f'<text class="line" y="{y}" style="animation-delay:{delay:.2f}s">{spans}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _span(text: str, column: int, css: str, colour: str) -> str:
    """A piece of a line in one style, at its column."""
    style = (f' class="{css}"' if css else "") + (f' fill="{colour}"' if colour else "")
    length = f' textLength="{len(text) * CHARACTER:.1f}"'
    return f'<tspan x="{MARGIN + column * CHARACTER:.1f}"{length}{style}>{escape(text)}</tspan>'


def main() -> None:
    """Run the bundled benchmark and make the pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=("terminal", "page"), help="make only these pictures")
    only = parser.parse_args().only
    IMAGES.mkdir(parents=True, exist_ok=True)
    made = json.loads(MADE_FROM.read_text("utf-8")) if MADE_FROM.exists() else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = run_demo(folder)
        if only != "page":
            (IMAGES / "terminal.svg").write_text(terminal_svg(lines), "utf-8")
            made["terminal"] = [line.text for line in lines[:MOST_LINES]]
        if only != "terminal":
            picture_page(folder / "steelyard-demo" / "report.html")
            made |= {"sources": fingerprint(), "means": demo_means(folder)}
    MADE_FROM.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
