"""axe-core finds nothing serious: light, dark, at phone width, and with a query open."""

from __future__ import annotations

import pytest

from needs import import_peer

VIEWS = {
    "light": ("", {}),
    "dark": ("", {"color_scheme": "dark"}),
    "phone": ("", {"viewport": {"width": 390, "height": 844}}),
    "query, light": ("#query=fact-03", {}),
    "query, dark": ("#query=fact-03", {"color_scheme": "dark"}),
    "weighed": ("#weights=0,0,0,0,0,0,1&filter=lost&measure=R%4020", {}),
}


@pytest.mark.parametrize("view", VIEWS)
def test_no_serious_finding(page, opened, view):
    axe = import_peer("axe_playwright_python.sync_playwright")
    address, options = VIEWS[view]
    with opened(page, address, **options, reduced_motion="reduce", bypass_csp=True) as tab:
        if not address.startswith("#query"):
            tab.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
            for figure in tab.locator("figure.chart:visible").all():
                figure.scroll_into_view_if_needed()
                figure.locator("svg[role=img]").wait_for()
        found = axe.Axe().run(tab).response["violations"]
        serious = [
            (each["id"], each["impact"], [node["html"][:200] for node in each["nodes"][:5]])
            for each in found
            if each["impact"] in ("serious", "critical")
        ]
        assert serious == []
