"""The documentation says what the code says: generated tables, the pages of the site, links, llms.txt."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from docs.generate import atlas, hooks, reference

import steelyard as sy
from steelyard.benchmark.config import Bench
from steelyard.cli import VERBS
from steelyard.dialects.dialect import dialects
from steelyard.io import list_formats
from steelyard.measures import definitions
from steelyard.notes import wordings
from steelyard.options import POLICIES
from steelyard.retrievers.registry import retriever_names

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
MARKERS = [
    (page, name, arguments) for page in PAGES for name, arguments in hooks.MARKER.findall(page.read_text("utf-8"))
]
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))

ENTRIES = {
    "bench-keys": lambda: [f"`{name}`" for name in Bench.model_fields],
    "command-line": lambda: [f"## steelyard {verb} " for verb in VERBS],
    "dialect-names": lambda: [
        f"| `{name}` | `{meaning}` |" for each in dialects().values() for name, meaning in each.names.items()
    ],
    "dialects": lambda: [f"[{name}]" for name, each in dialects().items() if each.names],
    "formats": lambda: [f"| `{each.name}` |" for each in list_formats().values()],
    "measure-definitions": lambda: [each.headline for each in definitions().values()],
    "measures": lambda: [f"(#measure-{name})" for name in definitions()],
    "notes": lambda: [f"| `{code}` |" for code in wordings() if code != "text"],
    "policies": lambda: [f"| `{name}` |" for name in POLICIES],
    "retrievers": lambda: [f"| `{name}` |" for name in retriever_names()],
    "verbs": lambda: [f"[{verb}](#{verb})" for verb in VERBS],
}
"""What a generated part must have: every entry of its registry."""


@pytest.mark.parametrize("name", ENTRIES)
def test_a_generated_table_has_every_entry_of_its_registry(name):
    text = hooks.part(name)
    assert [entry for entry in ENTRIES[name]() if entry not in text] == []


def test_every_generated_part_is_on_one_page():
    used = [name for _, name, _ in MARKERS if name not in ("api", "notebook")]
    assert sorted(used) == sorted(hooks.PARTS)


def test_every_public_name_is_on_one_page_of_the_api():
    listed = [each for _, name, names in MARKERS if name == "api" for each in names.split(", ")]
    assert sorted(listed) == sorted(set(sy.__all__) - {"__version__"})


def test_a_note_is_shown_with_example_values():
    wording = wordings()["missing-queries"]
    row = f"| `missing-queries` | {wording.severity} | 3 queries are missing from the run and score 0 |"
    assert row in reference.notes()
    assert reference.sample("missing-queries", wording.text) == "3 queries are missing from the run and score 0"


def test_every_key_of_a_bench_has_a_description():
    assert [name for name, field in Bench.model_fields.items() if not field.description] == []


def test_every_page_is_in_the_navigation():
    def pages(items):
        for item in items:
            for value in item.values():
                yield from [value] if isinstance(value, str) else pages(value)

    listed = list(pages(SITE["nav"]))
    assert sorted(listed) == [page.relative_to(DOCS).as_posix() for page in PAGES]


def test_the_site_loads_nothing_from_the_network():
    assert SITE["theme"]["font"] is False
    assert "http" not in (ROOT / "mkdocs.yml").read_text("utf-8")
    assert "offline" not in SITE["plugins"], "it loads a script from a CDN"


def test_llms_txt_lists_the_pages_by_section():
    def page(title, uri):
        file = SimpleNamespace(src_uri=uri)
        return SimpleNamespace(title=title, url=uri.replace(".md", ".html"), file=file, is_page=True)

    hooks._SENTENCES["tour.md"] = hooks.first_sentence("# Tour\n\nFrom [queries](a.md) to a table: now. More.\n")
    section = SimpleNamespace(title="How-to", is_page=False, children=[page("Gate", "gate.md")])
    lines = hooks.llms("Steelyard", [page("Tour", "tour.md"), section]).splitlines()
    assert lines[0] == "# Steelyard"
    assert "- [Tour](tour.html): From queries to a table." in lines
    assert lines[lines.index("## How-to") + 2].startswith("- [Gate](gate.html)")


def test_the_atlas_shows_the_data_that_its_numbers_are_from():
    block = re.search(r"```python\n(qrels = .*?)```", (DOCS / "dialect-atlas.md").read_text("utf-8"), re.DOTALL)
    assert block is not None
    shown = [ast.literal_eval(each.value) for each in ast.parse(block[1]).body if isinstance(each, ast.Assign)]
    assert shown == [atlas.QRELS, atlas.RUN]


def test_the_atlas_has_the_numbers_of_evaluate():
    text = atlas.atlas_example()
    for dialect, name in (("trec_eval-9", "recip_rank"), ("llama-index", "ndcg"), ("multihop-rag", "MAP@10")):
        value = sy.evaluate(atlas.QRELS, atlas.RUN, [name], dialect=dialect)[name]
        row = next(line for line in text.splitlines() if f"{dialect} `{name}`" in line)
        assert row.startswith(f"| {value:.4f} |")
    named = set(re.findall(r"([\w-]+) `", text))
    assert named >= {name for name, each in dialects().items() if each.names} - {"leaderboard", "chroma"}


def test_no_link_leads_nowhere():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("examples/*/*.md"), *PAGES]
    dead = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert dead == []
