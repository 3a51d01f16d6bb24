"""Make the README's picture of the report page: the bundled benchmark, opened in headless Chromium.

Run with `python scripts/readme_picture.py`; it needs the extra `report`, Playwright and a Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

from playwright.sync_api import sync_playwright

from steelyard.bench.folder import load_result
from steelyard.bench.runner import bench

IMAGES = Path(__file__).parent.parent / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
VIEWS = {
    "report.png": ("", {"color_scheme": "light"}),
    "report-query.png": ("#query=para-20", {"color_scheme": "light"}),
    "report-dark.png": ("", {"color_scheme": "dark"}),
}
"""The picture, the address that shows it, and how it is looked at."""


def main() -> None:
    """Run the bundled benchmark, or take a result that is there, and picture its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--result", type=Path, help="a result folder, instead of running the benchmark")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        if given.result is not None:
            load_result(given.result).to_html(page)
        else:
            with as_file(files("steelyard.demo") / "bench.yaml") as config:
                bench(config, Path(folder) / "demo").to_html(page)
        picture(page)


def picture(page: Path) -> None:
    """Every view of the page, as a file."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for name, (address, options) in VIEWS.items():
            context = browser.new_context(offline=True, viewport={"width": 1280, "height": 860}, **options)
            tab = context.new_page()
            tab.goto(page.as_uri() + address)
            tab.wait_for_selector("html[data-ready=yes]", state="attached")
            tab.wait_for_timeout(300)
            tab.screenshot(path=IMAGES / name)
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
