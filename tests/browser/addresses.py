"""Going to another address of an open page, and waiting until the page shows it."""

from __future__ import annotations

from typing import Any

_GO_TO = """
address => new Promise(shown => {
  const before = location.hash;
  addEventListener("hashchange", () => requestAnimationFrame(shown), { once: true });
  location.hash = address;
  if (location.hash === before) shown();
})
"""
_DRAWN = "() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"


def go_to(tab: Any, address: str) -> None:
    """Change the address, and return when the page has handled it: its own listener is called before this one."""
    tab.evaluate(_GO_TO, address)


def wait_until_drawn(tab: Any) -> None:
    """Return when the browser has drawn the page again."""
    tab.evaluate(_DRAWN)
