"""Filters of a search: the documents whose metadata have given values, or a fixed share of the documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from steelyard.errors import did_you_mean
from steelyard.ids import kind_of
from steelyard.retrievers.base import RetrieverError, number

Filter: TypeAlias = float | Mapping[str, Any]


def describe_filter(given: Filter | None, label: str) -> dict[str, Any]:
    """A filter as a setting, after a check; no setting without a filter.

    >>> describe_filter(None, "dense"), describe_filter(0.1, "dense"), describe_filter({"year": 2020}, "dense")
    ({}, {'filter': 0.1}, {'filter': {'year': 2020}})
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        if not given:
            raise RetrieverError(f"{label}: `filter` is empty; expected {{field: value}}.")
        return {"filter": dict(given)}
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise RetrieverError(
            f"{label}: `filter` is {kind_of(given)}; expected {{field: value}}, or a share such as 0.1."
        )
    return {"filter": number(label, "filter", given, 0.0, 1.0)}


def passing(
    corpus: Mapping[str, str], ids: Sequence[str], given: Filter | None, label: str
) -> npt.NDArray[np.bool_] | None:
    """Per document, whether it passes the filter; None without a filter. An error if no document does.

    A document passes a share by a hash of its id, so that the same documents pass in every engine.

    >>> int(passing({}, [f"d{n}" for n in range(1000)], 0.1, "dense").sum())
    83
    """
    if given is None:
        return None
    kept = _with_values(corpus, ids, given, label) if isinstance(given, Mapping) else _share(ids, given)
    if not kept.any():
        raise RetrieverError(f"{label}: no document passes the filter {given!r}.{_fields(corpus, given)}")
    return kept


def _share(ids: Sequence[str], share: float) -> npt.NDArray[np.bool_]:
    places = [int.from_bytes(sha256(doc.encode("utf-8", "surrogatepass")).digest()[:8], "big") / 2**64 for doc in ids]
    return np.array(places) < share


def _with_values(
    corpus: Mapping[str, str], ids: Sequence[str], wanted: Mapping[str, Any], label: str
) -> npt.NDArray[np.bool_]:
    metadata = getattr(corpus, "metadata", None)
    if not isinstance(metadata, Mapping):
        raise RetrieverError(
            f"{label}: the corpus has no metadata to filter by; expected a dataset whose documents have the fields "
            f"{', '.join(map(str, wanted))}."
        )
    return np.array([_has_values(metadata[doc], wanted) for doc in ids])


def _has_values(fields: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    for field, value in wanted.items():
        found = fields.get(field)
        if found not in value if isinstance(value, list) else found != value:
            return False
    return True


def _fields(corpus: Mapping[str, str], given: Filter) -> str:
    """What the documents could be filtered by, for a message."""
    metadata = getattr(corpus, "metadata", None)
    if not isinstance(given, Mapping) or not isinstance(metadata, Mapping):
        return ""
    known = sorted({str(field) for _, fields in zip(range(1000), metadata.values(), strict=False) for field in fields})
    missing = [str(field) for field in given if str(field) not in known]
    if not missing:
        return ""
    has = f"The fields of their metadata are {', '.join(known)}." if known else "The documents have no metadata."
    return f" No document has the field {missing[0]!r}.{did_you_mean(missing[0], known)} {has}"
