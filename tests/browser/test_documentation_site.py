"""The documentation site, built as `make docs` builds it: axe-core finds nothing, and the gallery's report opens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from needs import import_peer

ROOT = Path(__file__).parents[2]
PAGES = (
    "index",
    "gallery",
    "tour",
    "measures",
    "command-line",
    "report",
    "api/evaluation",
    "how-to/history",
    "engines",
    "notebooks/judging",
)
"""One page of every kind: text, pictures, console blocks, long tables, generated references, the API."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    import_peer("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(site, chromium, scheme):
    axe = import_peer("axe_playwright_python.sync_playwright").Axe()
    context = chromium.new_context(offline=True, color_scheme=scheme, reduced_motion="reduce")
    tab = context.new_page()
    found = {}
    for page in PAGES:
        tab.goto((site / f"{page}.html").as_uri())
        assert tab.evaluate("document.body.dataset.mdColorScheme") == ("slate" if scheme == "dark" else "default")
        violations = axe.run(tab).response["violations"]
        if violations:
            found[page] = [(each["id"], each["nodes"][0]["html"][:200]) for each in violations]
    context.close()
    assert found == {}


def test_the_gallery_opens_the_report_of_the_demo(site, chromium):
    context = chromium.new_context(offline=True)
    tab = context.new_page()
    tab.goto((site / "gallery.html").as_uri())
    tab.get_by_role("link", name="Open the live report of the demo").click()
    tab.wait_for_selector("html[data-ready=yes]", state="attached")
    assert tab.url == (site / "demo" / "report.html").as_uri()
    assert tab.locator("#board tbody tr").count() > 2
    context.close()
