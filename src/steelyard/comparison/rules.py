"""Rules: what a result must keep to, as a line of text.

nDCG@10 >= 0.40                     a threshold; also <=, > and <
nDCG@10 >= baseline - 0.01          a threshold that moves with a baseline
no significant drop in nDCG@10      a paired test against a baseline; `rise` where less is better
nDCG@10[type=multi-hop] >= 0.30     any of them for a slice: the queries with a value in a column
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from steelyard.errors import InputError, problem_report
from steelyard.wording import worded

FORMS = (
    "MEASURE >= NUMBER",
    "MEASURE >= baseline - NUMBER",
    "no significant drop in MEASURE",
    "MEASURE[column=value] >= NUMBER",
)
"""The forms of a rule, as messages show them."""

TOLERANCE = 1e-12
"""Two numbers that differ by less than this share of their size differ by rounding only."""

_TESTED = re.compile(r"no\s+significant\s+(drop|rise)\s+in\s+(.+)", re.IGNORECASE)
_COMPARED = re.compile(r"(.*?)\s*(>=|<=|>|<)\s*([^<>]*)")
_BASELINE = re.compile(r"baseline(?:\s*([-+])\s*(.+))?", re.IGNORECASE)
_COMMENT = re.compile(r"(^|\s)#(\s.*)?$")
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True)
class Rule:
    """One rule. `number` is the bound, or what is added to the baseline's value to make it.

    >>> parse_rule("nDCG@10[type=multi hop] >= baseline - 0.01")
    Rule(text='nDCG@10[type=multi hop] >= baseline - 0.01', kind='baseline', measure='nDCG@10', operator='>=', number=-0.01, column='type', value='multi hop')
    """

    text: str
    kind: Literal["threshold", "baseline", "drop", "rise", "failed"]
    measure: str
    operator: str = ""
    number: float = 0.0
    column: str | None = None
    value: str = ""

    @property
    def needs_baseline(self) -> bool:
        """Whether the rule says anything without a baseline."""
        return self.kind not in ("threshold", "failed")

    @property
    def tested(self) -> bool:
        """Whether the rule is a test of significance."""
        return self.kind in ("drop", "rise")

    def kept(self, value: float, bound: float) -> bool:
        """Whether a value keeps to the bound; equal but for rounding is equal, and NaN never keeps."""
        if math.isnan(value) or math.isnan(bound):
            return False
        if abs(value - bound) <= TOLERANCE * max(1.0, abs(bound)):
            return self.operator in (">=", "<=")
        return _OPERATORS[self.operator](value, bound)


def parse_rule(text: str) -> Rule:
    """The rule that a text says, or an error that says how rules are written."""
    said = " ".join(str(text).split())
    tested = _TESTED.fullmatch(said)
    if tested:
        kind: Literal["drop", "rise"] = "rise" if tested.group(1).lower() == "rise" else "drop"
        measure, column, value = _subject(tested.group(2), said)
        return Rule(said, kind, measure, column=column, value=value)
    compared = _COMPARED.fullmatch(said)
    if compared is None:
        raise _unknown(said, "it holds no >=, <=, > or <, and is not `no significant drop in MEASURE`")
    if compared.group(1).endswith("="):
        raise _unknown(said, "expected >=, <=, > or <")
    measure, column, value = _subject(compared.group(1), said)
    bound = compared.group(3).replace("−", "-").strip()
    moving = _BASELINE.fullmatch(bound)
    if moving is None:
        return Rule(
            said, "threshold", measure, compared.group(2), _number(bound, said), column=column, value=value
        )
    sign, offset = moving.groups()
    number = 0.0 if sign is None else _number(offset, said) * (-1 if sign == "-" else 1)
    return Rule(said, "baseline", measure, compared.group(2), number, column=column, value=value)


def parse_rules(texts: Iterable[str | Rule], where: str = "the rules") -> list[Rule]:
    """Every rule once, in the order given, or one report of all that cannot be understood."""
    rules: dict[str, Rule] = {}
    problems = []
    for text in texts:
        try:
            rule = text if isinstance(text, Rule) else parse_rule(text)
            rules[rule.text] = rule
        except InputError as error:
            problems.append(str(error))
    if len(problems) == 1:
        raise InputError(problems[0])
    if problems:
        raise InputError(problem_report(f"{where}: {len(problems)} cannot be understood:", problems))
    return list(rules.values())


def read_rules(path: str | Path) -> list[Rule]:
    """The rules of a file: one a line, `#` begins a comment."""
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: the rules cannot be read ({error}); expected a text file with one rule a line."
        ) from None
    said = {number: _COMMENT.sub("", line).strip() for number, line in enumerate(lines, 1)}
    rules, problems = [], []
    for number, text in said.items():
        try:
            rules += [parse_rule(text)] if text else []
        except InputError as error:
            problems.append(f"line {number}: {error}")
    if problems:
        raise InputError(
            problem_report(
                f"{path}: {len(problems):,} of its lines "
                f"{worded(len(problems), 'is not a rule', 'are not rules')}:",
                problems,
            )
        )
    if not rules:
        raise InputError(f"{path} holds no rule; write one a line, as in nDCG@10 >= 0.40.")
    return rules


def _subject(text: str, said: str) -> tuple[str, str | None, str]:
    """A measure, and the column and value of its slice, if it has one."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character in "({") - (character in ")}")
        if character != "[" or depth:
            continue
        measure, inside = text[:place].strip(), text[place + 1 :].strip()
        column, equals, value = inside[:-1].partition("=")
        if not inside.endswith("]") or not equals or not column.strip() or not value.strip() or not measure:
            raise _unknown(said, f"{text[place:]!r} is not a slice; expected MEASURE[column=value]")
        return measure, column.strip(), _unquoted(value.strip())
    if not text.strip():
        raise _unknown(said, "it names no measure")
    return text.strip(), None, ""


def _unquoted(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted else text


def _number(text: str, said: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        hint = "; a share is written 0.4, not 40%" if "%" in text else ""
        raise _unknown(
            said, f"{text!r} is not a number{hint}; expected a number, `baseline` or `baseline - NUMBER`"
        )
    return number


def _unknown(said: str, why: str) -> InputError:
    return InputError(f"the rule {said!r} cannot be understood: {why}. Rules are {', '.join(FORMS)}.")
