"""What a page embeds: its scripts, style sheet and template, and data as JSON or packed numbers."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.io.files import write_file
from steelyard.notes import sentence

if TYPE_CHECKING:
    import jinja2

SCRIPTS = (
    *("dom.js", "text.js", "state.js", "data.js", "weights.js", "selection.js", "theme.js", "picker.js", "save.js"),
    *("leaderboard.js", "lists.js", "pool.js", "moves.js", "query.js", "bars.js", "queries.js", "openers.js"),
    *("charts.js", "main.js"),
)
"""The page's modules, each after the ones that it imports."""
SHELL_SCRIPTS = ("dom.js", "theme.js", "shell.js")  # The modules of pages of tables and drawings.
VEGA_DIGESTS = {"1.9.0.post1": "373b1f84072b31010f15ceb787be6b415c53936411aae267c8c2b2b6ccde46e7"}
"""SHA-256 of the bundle of Vega, by version of vl-convert."""

_IMPORT = re.compile(r"^import \{[^}]*\} from \"[^\"]*\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function |const |class )", re.MULTILINE)
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029", "\x7f": "\\u007f"}
_ESCAPED = re.compile("[<>&\u2028\u2029\x7f\ud800-\udfff]")
_CODE = re.compile("`([^`]*)`")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def embedded_json(data: Any) -> str:
    """JSON for a script element: it has no character that could close the element.

    >>> embedded_json({"text": "</script><b>&"})
    '{"text":"\\\\u003c/script\\\\u003e\\\\u003cb\\\\u003e\\\\u0026"}'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _ESCAPED.sub(lambda match: _UNSAFE.get(match[0]) or f"\\u{ord(match[0]):04x}", text)


def packed(values: Any, kind: str) -> str:
    """Numbers as base64 of little-endian bytes, which a browser reads much faster than JSON.

    >>> packed([1, 2], "u1")
    'AQI='
    """
    return base64.b64encode(np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()).decode()


def visible(text: str) -> str:
    """Text with control characters replaced by their Unicode pictures, which are valid in a page.

    >>> visible("a\\x00b")
    'a␀b'
    """
    return _CONTROLS.sub(lambda match: "\u2421" if match[0] == "\x7f" else chr(0x2400 + ord(match[0])), text)


def said(text: str) -> str:
    """A sentence as HTML: what is between backticks is code."""
    from markupsafe import Markup, escape

    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(visible(text)))))


def page_script(names: Iterable[str] = SCRIPTS) -> str:
    """The page's modules as one script, without the imports: they only import each other."""
    return joined_modules((files("steelyard.report.page") / "scripts" / name).read_text("utf-8") for name in names)


def joined_modules(modules: Iterable[str]) -> str:
    """Modules as one script, each after the ones that it imports, without imports and exports."""
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", module)) for module in modules)


def page_style() -> str:
    """The page's style sheet."""
    return theme_style() + (files("steelyard.report.page") / "page.css").read_text("utf-8")


def theme_style() -> str:
    """The colours and fonts that all pages have."""
    return (files("steelyard.report.page") / "theme.css").read_text("utf-8")


def script_hash(script: str) -> str:
    """The hash of a script in the content security policy of the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


@cache
def vega_script() -> str:
    """The script that draws the charts: Vega, Vega-Lite and Vega-Embed, as vl-convert bundles them.

    Bundling takes seconds, so the bundle is kept in the cache folder of the user. Whatever is in that file would run in
    every report, so it is used only if its digest is known; the bundle of another version of vl-convert is not kept.
    """
    import vl_convert

    number = version("vl-convert-python")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    kept = Path(home) / "steelyard" / f"vega-{number}.js"
    with suppress(OSError, UnicodeDecodeError):
        content = kept.read_bytes()
        if hashlib.sha256(content).hexdigest() == VEGA_DIGESTS.get(number):
            return content.decode()
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    script = re.sub(r"</(?=script)", r"<\\/", bundle.replace("\r\n", "\n"), flags=re.IGNORECASE)
    if number in VEGA_DIGESTS:
        with suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_file(kept, script.encode())
    return script


@cache
def page_template() -> jinja2.Template:
    """The template of the page; control characters in texts are made visible."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters |= {"said": said, "sentence": sentence}
    return environment.from_string((files("steelyard.report.page") / "template.html").read_text("utf-8"))
