"""Generated parts of pages, as they are stored in the repository and on the site, llms.txt, and the gallery's report.

A part is between `<!-- generated: NAME -->` and `<!-- end of generated -->`. `python -m docs.generate` writes the parts
into the pages, so that they can be read in the repository; the site makes them again when it is built.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from docs.generate import atlas, notebooks, reference

import steelyard as sy

PAGES = Path(__file__).parents[1]
END = "<!-- end of generated -->"
MARKER = re.compile(r"^<!-- generated: ([\w-]+)(?: ([^>]*?))? -->$", re.MULTILINE)
REGION = re.compile(rf"{MARKER.pattern}\n.*?^{END}$", re.MULTILINE | re.DOTALL)
_IDENTIFIER = re.compile(r"^(#+ )(.*) \{ #([\w-]+) \}$", re.MULTILINE)
"""A heading with its id, as only the site understands it."""

PARTS: dict[str, Callable[[], str]] = {
    "atlas-demo": atlas.atlas_demo,
    "atlas-example": atlas.atlas_example,
    "bench-keys": reference.bench_keys,
    "command-line": reference.command_line,
    "dialect-names": reference.dialect_names,
    "dialects": reference.dialect_list,
    "formats": reference.formats,
    "measure-definitions": reference.measure_definitions,
    "measures": reference.measures,
    "notes": reference.notes,
    "policies": reference.policies,
    "retriever-settings": reference.retriever_settings,
    "retrievers": reference.retrievers,
    "verbs": reference.verbs,
    "options": reference.options,
}
"""Parts by name. `api NAME, ...` and `notebook NAME` have arguments."""

SUMMARY = (
    "Steelyard evaluates retrievers: ranking measures by any tool's definition, significance tests, benchmarks, "
    "report pages, CI gates and judging. Python package and command line; every page below is also in the "
    "repository's docs folder as Markdown."
)


def part(name: str, arguments: str = "") -> str:
    """The text of a generated part."""
    if name == "api":
        return reference.api(re.split(r",\s*", arguments))
    if name == "notebook":
        return notebooks.notebook(arguments)
    return PARTS[name]()


def filled(markdown: str) -> str:
    """A page of the site, with its generated parts."""
    return REGION.sub(lambda found: part(found[1], found[2] or ""), markdown)


def stored(markdown: str) -> str:
    """A page of the repository, with its generated parts as they are now."""

    def region(found: re.Match[str]) -> str:
        name, arguments = found[1], found[2] or ""
        if name == "api":
            text = reference.api_names(re.split(r",\s*", arguments))
        else:
            text = _IDENTIFIER.sub(r'\1<a id="\3"></a>\2', part(name, arguments))
        return f"{found[0].partition(chr(10))[0]}\n\n{text.strip()}\n\n{END}"

    return REGION.sub(region, markdown)


def first_sentence(markdown: str) -> str:
    """The first sentence of a page, without links."""
    for paragraph in re.split(r"\n\s*\n", markdown):
        if paragraph[:1].isalpha() or paragraph[:1] in "`'*[":
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
            return re.split(r"(?<=[.:?])\s", text, maxsplit=1)[0].rstrip(":.") + "."
    return ""


_SENTENCES: dict[str, str] = {}
_NAV: list[Any] = []


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """mkdocs: fill in the generated parts of a page."""
    _SENTENCES[page.file.src_uri] = first_sentence(markdown)
    return filled(markdown)


def on_post_page(output: str, **_: Any) -> str:
    """mkdocs: name the theme's search dialog, for screen readers."""
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )


def on_nav(nav: Any, **_: Any) -> None:
    """mkdocs: keep the navigation for llms.txt."""
    _NAV[:] = nav.items


def on_post_build(config: Any) -> None:
    """mkdocs: write llms.txt, the pages by section, each with its first sentence; and the report of the gallery."""
    Path(config.site_dir, "llms.txt").write_text(llms(config.site_name, _NAV), "utf-8")
    write_demo_report(Path(config.site_dir, "demo", "report.html"))


def write_demo_report(page: Path) -> None:
    """Run the bundled benchmark and keep its report page, which the gallery links to."""
    with as_file(files("steelyard.demo") / "bench.yaml") as bench, TemporaryDirectory() as folder:
        result = sy.bench(bench, Path(folder, "steelyard-demo"))
        page.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(result.folder / "report.html", page)


def llms(title: str, items: list[Any]) -> str:
    """llms.txt: what the project is, and its pages."""
    lines = [f"# {title}", "", f"> {SUMMARY}", ""]
    alone = [item for item in items if item.is_page]
    sections = [("Pages", alone), *((item.title, _pages(item)) for item in items if not item.is_page)]
    for name, pages in sections:
        if not pages:
            continue
        lines += [f"## {name}", ""]
        for page in pages:
            sentence = _SENTENCES.get(page.file.src_uri, "")
            lines.append(f"- [{page.title}]({page.url})" + (f": {sentence}" if sentence else ""))
        lines.append("")
    return "\n".join(lines)


def _pages(section: Any) -> list[Any]:
    """The pages of a section and of the sections in it."""
    return [page for child in section.children for page in ([child] if child.is_page else _pages(child))]
