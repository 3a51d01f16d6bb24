"""What can stand under `retrievers:` in bench.yaml: read off the registry and the classes it names."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from steelyard.listing import Listing
from steelyard.retrievers.registry import RUN, class_of, retriever_names


@dataclass(frozen=True)
class Entry:
    """One name: what it is, its settings with their defaults, the extra it needs, and all that is said of it."""

    name: str
    what: str
    settings: tuple[str, ...]
    extra: str
    about: str

    def __str__(self) -> str:
        needs = [f"Needs: pip install 'steelyard[{self.extra}]'", ""] if self.extra else []
        return "\n".join(
            [f"{self.name}: {self.what}", "", f"Settings: {', '.join(self.settings)}", "", *needs, self.about]
        ).rstrip()


def listing() -> Listing[Entry]:
    """Every retriever by name, a finished run last.

    >>> listing()["random"].settings
    ('seed=0', 'name')
    """
    entries = {name: _entry(name) for name in retriever_names()}
    entries[RUN] = Entry(
        name=RUN,
        what="A finished run, in any format that is read, joins the table.",
        settings=("path (needed)", "name"),
        extra="",
        about="path: the file, from the folder of bench.yaml.\nname: the label of its row in a table.",
    )
    return Listing(
        entries,
        ("retriever", "what", "settings", "extra"),
        lambda entry: (entry.name, entry.what, ", ".join(entry.settings), entry.extra),
    )


def _entry(name: str) -> Entry:
    cls, preset = class_of(name)
    first, _, rest = inspect.cleandoc(cls.__doc__ or "").partition("\n")
    fixed = ", ".join(f"{key}={value}" for key, value in preset.items())
    taken = [p for p in inspect.signature(cls).parameters.values() if p.name not in preset]
    return Entry(
        name=name,
        what=f"{first} Here {fixed}." if fixed else first,
        settings=tuple(map(_setting, taken)),
        extra=getattr(cls, "extra", ""),
        about=rest.partition(">>>")[0].strip(),
    )


def _setting(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return f"{parameter.name} (needed)"
    return parameter.name if parameter.default is None else f"{parameter.name}={_shown(parameter.default)}"


def _shown(default: Any) -> str:
    return f"[{', '.join(map(str, default))}]" if isinstance(default, (list, tuple)) else str(default)
