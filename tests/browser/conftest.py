"""A Chromium that is offline, and pages that are watched: no console error, no request but the file itself."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

import steelyard as sy
from needs import NO_BROWSER, import_peer

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/browser/" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium():
    """A browser: the one STEELYARD_CHROMIUM names, the system's, or Playwright's own."""
    playwright = import_peer("playwright.sync_api")
    path = os.environ.get("STEELYARD_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    with playwright.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        except playwright.Error:
            if path is not None:
                raise
            pytest.skip(f"{NO_BROWSER}: apt-get install chromium, or playwright install chromium")
        yield browser
        browser.close()


@dataclass
class Watched:
    """What a page did that it should not have done."""

    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def opened(chromium):
    """Open a page: `with opened(path, "#hash", viewport=...) as tab`. On the way out, nothing may have gone wrong."""

    @contextmanager
    def opening(path, address="", **options):
        context = chromium.new_context(offline=True, **{"viewport": {"width": 1280, "height": 900}, **options})
        tab = context.new_page()
        watched = Watched()
        tab.on(
            "console",
            lambda message: watched.errors.append(message.text) if message.type in ("error", "warning") else None,
        )
        tab.on("pageerror", lambda error: watched.errors.append(str(error)))
        tab.on("dialog", lambda dialog: (watched.errors.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        tab.on("request", lambda request: watched.requests.append(request.url.partition("#")[0]))
        tab.goto(path.as_uri() + address)
        tab.wait_for_selector("html[data-ready=yes]", state="attached")
        yield tab
        context.close()
        assert watched.errors == []
        assert set(watched.requests) == {path.as_uri()}

    return opening


@pytest.fixture(scope="session")
def result(tmp_path_factory):
    """A real bench over the bundled dataset."""
    bench = {
        "dataset": "demo",
        "depth": 60,
        "retrievers": ["bm25-okapi", "bm25-l", {"random": {"seed": 42}}],
        "measures": ["nDCG@10", "R@20", "DR@20", "Confusion@3", "Latency"],
        "composite": "default",
        "baseline": "bm25-okapi",
        "by": "type",
    }
    return sy.bench(bench, output=tmp_path_factory.mktemp("bench") / "result")


@pytest.fixture(scope="session")
def page(result):
    """The page that the bench wrote."""
    import_peer("altair")
    return result.folder / "report.html"
