"""The options that every entry point shares: policies for the edge cases, the relevance level and the depth.

Each option is declared once, here, with its values, their meaning and its help text. `evaluate`, `compare`,
Spark, the command line, bench.yaml and the report read them from this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args, get_origin, get_type_hints

from steelyard.alignment.hits import DuplicateRule, Ordering, TieRule
from steelyard.checks import whole_number
from steelyard.errors import PolicyError, did_you_mean
from steelyard.wording import in_words

if TYPE_CHECKING:
    from steelyard.alignment.alignment import Alignment


def _option(default: Any, help: str = "", **meaning: str) -> Any:
    """An option: its default, its help text, and what each of its values means."""
    return field(default=default, metadata={"help": help, "meaning": meaning})


@dataclass(frozen=True)
class Options:
    """The options of an evaluation, each with the value in force."""

    missing: Literal["zero", "skip", "error"] = _option(
        "zero",
        "Queries that are in the qrels and not in the run (an empty list is an answer): zero, skip or error.",
        zero="a query that is not in the run scores 0",
        skip="a query that is not in the run is left out; one with an empty list is not",
        error="a query that is not in the run is an error",
    )
    no_relevant: Literal["zero", "skip"] = _option(
        "zero",
        "Queries without a relevant document: zero or skip.",
        zero="a query without a relevant document scores 0",
        skip="a query without a relevant document is left out",
    )
    ties: TieRule = _option(  # noqa: RUF009 - it returns a field
        "docid-desc",
        "Order of equal scores: docid-desc, docid-asc, stable or expected.",
        **{
            "docid-desc": "equal scores are ordered by document id, descending",
            "docid-asc": "equal scores are ordered by document id, ascending",
            "stable": "equal scores keep the order of the input",
            "expected": "the mean over all orders of equal scores",
        },
    )
    duplicates: DuplicateRule = _option(  # noqa: RUF009
        "hold",
        "A document that is repeated in a list: hold, collapse or error.",
        hold="a repeated document keeps its rank and gains nothing",
        collapse="a repeated document is removed and the ranks below it move up",
        error="a repeated document is an error",
    )
    single: bool = _option(
        False, **{"False": "scores are compared as 64-bit floats", "True": "scores are compared as 32-bit floats"}
    )
    unjudged: Literal["keep", "remove"] = _option(
        "keep",
        "Documents without a judgment: keep, or remove to measure condensed lists.",
        keep="an unjudged document keeps its rank and gains nothing",
        remove="unjudged documents (and repeats) are removed first and the ranks below them move up",
    )
    rel: float | None = _option(None, "Lowest grade that counts as relevant, where a measure does not state it.")
    depth: int | None = _option(None, "Cut every list at this depth.")

    @property
    def ordering(self) -> Ordering:
        """The options that order a list."""
        return Ordering(self.ties, self.duplicates, self.single)

    def lists(self, a: Alignment) -> Alignment:
        """The lists of an alignment as they are measured: condensed with unjudged="remove", and cut at `depth`."""
        if self.unjudged == "remove":
            return a.without_unjudged().cut(self.depth)
        if self.duplicates == "collapse" and len(a.repeats.rank):
            a = replace(a, repeats=replace(a.repeats, held=False))
        return a.cut(self.depth)

    def summary(self) -> str:
        """The options that differ from the defaults.

        >>> Options(missing="skip", rel=2, depth=1_000_000).summary()
        'missing=skip, rel=2, depth=1000000'
        """
        default = Options()
        chosen = {name: value for name, value in vars(self).items() if value != getattr(default, name)}
        return ", ".join(f"{name}={f'{value:g}' if name == 'rel' else value}" for name, value in chosen.items())

    def meanings(self) -> dict[str, tuple[str, str]]:
        """Each option in force with its value and what that means.

        >>> Options(rel=2).meanings()["rel"]
        ('2', 'lowest grade that counts as relevant, where a measure does not state it')
        """
        meanings = {
            option.name: (str(value), option.metadata["meaning"][str(value)])
            for option in fields(self)
            for value in [getattr(self, option.name)]
            if option.metadata["meaning"] and (option.name != "single" or value)
        }
        if self.rel is not None:
            text = "lowest grade that counts as relevant, where a measure does not state it"
            meanings["rel"] = (f"{self.rel:g}", text)
        if self.depth is not None:
            meanings["depth"] = (str(self.depth), "every list is cut at this depth")
        return meanings


class Policies(TypedDict, total=False):
    """The policies: keywords of `evaluate`, `compare` and `stages`, and keys of a bench. None: the dialect's value.

    >>> policies: Policies = {"missing": "skip", "rel": 2}
    >>> evaluate(qrels, run, **policies), compare(qrels, runs, **policies)  # doctest: +SKIP
    """

    missing: str | None
    no_relevant: str | None
    ties: str | None
    duplicates: str | None
    unjudged: str | None
    rel: float | None
    depth: int | None


KEYWORDS = tuple(option.name for option in fields(Options) if option.metadata["help"])
"""The options that a user may choose; the others belong to a dialect."""

POLICIES = tuple(name for name in KEYWORDS if name != "depth")
"""The options for edge cases, and the relevance level; `depth` is a setting of its own in a bench."""


def help_text(name: str) -> str:
    """What an option does, as `--help` shows it."""
    return str(Options.__dataclass_fields__[name].metadata["help"])


def resolve(defaults: Mapping[str, Any], chosen: Mapping[str, Any] | Policies) -> Options:
    """The options from a dialect's defaults and what the user chose (None: not chosen).

    >>> resolve({"missing": "skip"}, {"ties": "stable", "missing": None}).missing
    'skip'
    """
    check_names(chosen)
    values = {**defaults, **{name: value for name, value in chosen.items() if value is not None}}
    for name, allowed in policy_values().items():
        if values.get(name, allowed[0]) not in allowed:
            value = values[name]
            problem = f"{in_words(f'{name}={value!r}', f'{name} {value!r}')} is not a policy"
            raise PolicyError(f"{problem}; expected one of {', '.join(allowed)}.{did_you_mean(str(value), allowed)}")
    options = Options(**values)
    if isinstance(options.rel, str):
        raise PolicyError(f"rel is {options.rel!r}; expected a number, the lowest grade that counts as relevant.")
    if options.depth is not None:
        options = replace(options, depth=whole_number("depth", options.depth, 1, error=PolicyError))
        if options.ties == "expected":
            problem = "depth cuts through groups of tied documents, and ties=expected does not order them"
            raise PolicyError(f"{problem}; use cutoffs instead, as in nDCG@10.")
    return options


def check_names(chosen: Iterable[str], others: Iterable[str] = (), options: Sequence[str] = KEYWORDS) -> None:
    """Raise for a keyword that is not one of the options; `others` are the other keywords of the function."""
    allowed = [*others, *options]
    for name in chosen:
        if name not in options:
            near = did_you_mean(name, allowed)
            if name in ("metrics", "metric"):
                near = " Did you mean measures?"
            elif name in ("policies", "statistics"):
                near = f" Pass a dictionary as keywords: **{name}."
            raise TypeError(f"unexpected keyword argument {name!r}; expected one of: {', '.join(allowed)}.{near}")


@cache
def policy_values() -> dict[str, tuple[str, ...]]:
    """The values that each policy may take."""
    return {name: get_args(hint) for name, hint in get_type_hints(Options).items() if get_origin(hint) is Literal}
