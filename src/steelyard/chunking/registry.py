"""Chunkers by name, as bench.yaml writes them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from steelyard.chunking.chunkers import Chunker, Fixed, Recursive, Sentence, Whole
from steelyard.errors import InputError, did_you_mean

_KNOWN: dict[str, type[Any]] = {"fixed": Fixed, "sentence": Sentence, "recursive": Recursive, "whole": Whole}


def chunker_names() -> list[str]:
    """The names that `chunker` knows."""
    return list(_KNOWN)


def chunker(spec: str | Mapping[str, Any] | Chunker) -> Chunker:
    """A chunker from its name, from {name: settings} as YAML has it, or as it is.

    >>> chunker({"fixed": {"tokens": 200, "overlap": 20}}).label
    'fixed-200/20'
    """
    if not isinstance(spec, (str, Mapping)):
        if not hasattr(spec, "stretches") or not hasattr(spec, "label"):
            raise InputError(
                f"{spec!r} is not a chunker; expected a name ({', '.join(_KNOWN)}), or {{name: settings}}."
            )
        return spec
    if isinstance(spec, Mapping) and len(spec) != 1:
        raise InputError(f"a chunker is one name with its settings; got {sorted(map(str, spec))}.")
    name, settings = (spec, {}) if isinstance(spec, str) else next(iter(spec.items()))
    if name not in _KNOWN:
        raise InputError(
            f"there is no chunker {name!r}.{did_you_mean(str(name), _KNOWN)} Known: {', '.join(_KNOWN)}."
        )
    if not isinstance(settings or {}, Mapping):
        raise InputError(f"the settings of {name} are {settings!r}; expected `setting: value` pairs.")
    allowed = list(inspect.signature(_KNOWN[name]).parameters)
    for key in settings or {}:
        if key not in allowed:
            raise InputError(
                f"{name}: no setting {key!r}.{did_you_mean(str(key), allowed)} It has: {', '.join(allowed)}."
            )
    made: Chunker = _KNOWN[name](**(settings or {}))
    return made
