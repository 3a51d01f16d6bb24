"""Rules that a result must satisfy, each a line of text.

nDCG@10 >= 0.40                                a threshold; also <=, > and <
nDCG@10 >= baseline - 0.01                     a threshold relative to a baseline
nDCG@10 not worse than baseline by 0.01        non-inferiority: the 95% interval excludes a larger loss
nDCG@10 equivalent to baseline within 0.01     equivalence: the 95% interval lies within the margin
no significant drop in nDCG@10                 a paired test against a baseline; `rise` where lower is better
nDCG@10[type=multi-hop] >= 0.30                any of them for a slice: the queries with a value in a column
ceiling(retrieve) nDCG@10 >= 0.80              any of them for a stage of a bench: a perfect order of its documents
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from steelyard.errors import InputError, nearest, problem_report
from steelyard.wording import worded

FORMS = (  # As messages show them.
    "MEASURE >= NUMBER",
    "MEASURE >= baseline - NUMBER",
    "MEASURE not worse than baseline by NUMBER",
    "MEASURE equivalent to baseline within NUMBER",
    "no significant drop in MEASURE",
    "no significant rise in MEASURE",
    "MEASURE[column=value] >= NUMBER",
    "ceiling(STAGE) MEASURE >= NUMBER",
)
TOLERANCE = 1e-12  # Two numbers whose relative difference is below this are equal up to rounding.

_TESTED = re.compile(r"no\s+significant\s+(drop|rise)\s+in\s+(.+)", re.IGNORECASE)
_MARGIN = re.compile(
    r"(.+?)\s+(?:(not\s+worse)\s+than\s+(?:the\s+)?baseline\s+by|"
    r"equivalent(?:\s+to\s+(?:the\s+)?baseline)?\s+within)\s+(.+)",
    re.IGNORECASE,
)
_COMPARED = re.compile(r"(.*?)\s*(>=|<=|>|<)\s*([^<>]*)")
_BASELINE = re.compile(r"(?:the\s+)?baseline(?:\s*([-+])\s*(.+))?", re.IGNORECASE)
_CEILING = re.compile(r"ceiling ?\(((?:[^()]|\([^()]*\))+)\) ?(\S.*)", re.IGNORECASE)
_COMMENT = re.compile(r"(^|\s)#(\s.*)?$")


@dataclass(frozen=True)
class Rule:
    """One rule. `number` is the bound, what is added to the baseline's value, or the margin.

    >>> rule = parse_rule("nDCG@10[type=multi hop] >= baseline - 0.01")
    >>> rule.kind, rule.measure, rule.operator, rule.number, rule.column, rule.value
    ('baseline', 'nDCG@10', '>=', -0.01, 'type', 'multi hop')
    """

    text: str
    kind: Literal["threshold", "baseline", "drop", "rise", "failed", "not worse", "equivalent"]
    measure: str
    operator: str = ""
    number: float = 0.0
    column: str | None = None
    value: str = ""

    @property
    def ceiling(self) -> tuple[str, str] | None:
        """The stage and the measure of a rule on the ceiling of a stage.

        >>> parse_rule("ceiling(retrieve) nDCG@10 >= 0.8").ceiling
        ('retrieve', 'nDCG@10')
        """
        match = _CEILING.fullmatch(self.measure)
        return None if match is None else (match[1].strip(), match[2])

    @property
    def needs_baseline(self) -> bool:
        """Whether the rule compares with a baseline."""
        return self.kind not in ("threshold", "failed")

    @property
    def tested(self) -> bool:
        """Whether the rule is a test of significance."""
        return self.kind in ("drop", "rise")

    @property
    def margin(self) -> bool:
        """Whether the rule is decided by the interval of the difference and a margin."""
        return self.kind in ("not worse", "equivalent")

    def kept(self, value: float, bound: float) -> bool:
        """Whether a value satisfies the bound; equal up to rounding is equal, and NaN never satisfies it."""
        if math.isnan(value) or math.isnan(bound):
            return False
        if abs(value - bound) <= TOLERANCE * max(1.0, abs(bound)):
            return self.operator in (">=", "<=")
        return value > bound if self.operator.startswith(">") else value < bound


def not_worse(low: float, high: float, margin: float, better: str) -> bool:
    """Non-inferiority: whether the interval of a difference excludes a loss of the margin or more; NaN does not."""
    return high < margin if better == "less" else low > -margin


def within_margin(low: float, high: float, margin: float) -> bool:
    """Equivalence: whether the interval of a difference lies within the margin on both sides; NaN does not."""
    return -margin < low and high < margin


def parse_rule(text: str) -> Rule:
    """The rule of a text, or an error that shows how rules are written."""
    line = " ".join(str(text).split())
    if tested := _TESTED.fullmatch(line):
        measure, column, value = _subject(tested[2], line)
        return Rule(line, "rise" if tested[1].lower() == "rise" else "drop", measure, column=column, value=value)
    if within := _MARGIN.fullmatch(line):
        measure, column, value = _subject(within[1], line)
        margin = _number(within[3], line, "a number")
        if margin <= 0:
            raise _unknown(line, f"the margin {margin:g} is not above 0")
        return Rule(line, "not worse" if within[2] else "equivalent", measure, "", margin, column, value)
    if not line:
        raise _unknown(line, "it is empty")
    compared = _COMPARED.fullmatch(line)
    if compared is None:
        # Numbers and the measure are replaced as in the forms.
        words = ["NUMBER" if re.fullmatch(r"[-+]?[\d.]+%?", word) else word for word in line.split()]
        words[-1 if words[0].lower() == "no" else 0] = "MEASURE"
        form = nearest(" ".join(words), FORMS, most=1, cutoff=0.0)[0]
        raise _unknown(line, f"it has no known form; the nearest is `{form}`")
    if compared[1].endswith("="):
        raise _unknown(line, "expected >=, <=, > or <")
    measure, column, value = _subject(compared[1], line)
    bound = compared[3].replace("−", "-").strip()
    moving = _BASELINE.fullmatch(bound)
    if moving is None:
        return Rule(line, "threshold", measure, compared[2], _number(bound, line), column, value)
    sign, offset = moving.groups()
    number = 0.0 if sign is None else _number(offset, line) * (-1 if sign == "-" else 1)
    return Rule(line, "baseline", measure, compared[2], number, column, value)


def parse_rules(texts: Iterable[str | Rule], where: str = "the rules") -> list[Rule]:
    """Every rule once, in the order given, or one report of all that cannot be parsed."""
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
        raise InputError(problem_report(f"{where}: {len(problems)} cannot be parsed:", problems))
    return list(rules.values())


def read_rules(path: str | Path) -> list[Rule]:
    """The rules of a file: one per line, `#` starts a comment."""
    try:
        lines = Path(path).read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        expected = "expected a text file with one rule per line"
        raise InputError(f"{path}: the rules cannot be read ({error}); {expected}.") from None
    rules, problems = [], []
    for number, line in enumerate(lines, 1):
        try:
            text = _COMMENT.sub("", line).strip()
            rules += [parse_rule(text)] if text else []
        except InputError as error:
            problems.append(f"line {number}: {error}")
    if problems:
        what = f"{len(problems):,} of its lines {worded(len(problems), 'is not a rule', 'are not rules')}"
        raise InputError(problem_report(f"{path}: {what}:", problems))
    if not rules:
        raise InputError(f"{path} has no rule; write one per line, as in nDCG@10 >= 0.40.")
    return rules


def _subject(text: str, line: str) -> tuple[str, str | None, str]:
    """A measure, and the column and value of its slice, if it has one."""
    measure, value, depth = text.strip(), "", 0
    column: str | None = None
    for place, character in enumerate(text):
        depth += (character in "({") - (character in ")}")
        if character == "[" and not depth:
            measure, inside = text[:place].strip(), text[place + 1 :].strip()
            column, equals, value = map(str.strip, inside[:-1].partition("="))
            if not inside.endswith("]") or not equals or not column or not value or not measure:
                raise _unknown(line, f"{text[place:]!r} is not a slice; expected MEASURE[column=value]")
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            value = value[1:-1] if quoted else value
            break
    if not measure:
        raise _unknown(line, "it names no measure")
    if re.match(r"ceiling\b", measure, re.IGNORECASE) and not _CEILING.fullmatch(measure):
        raise _unknown(line, f"{measure!r} needs a stage and a measure, as in ceiling(retrieve) nDCG@10")
    return measure, column, value


def _number(text: str, line: str, expected: str = "a number, `baseline` or `baseline - NUMBER`") -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        hint = "; a share is written 0.4, not 40%" if "%" in text else ""
        raise _unknown(line, f"{text!r} is not a number{hint}; expected {expected}")
    return number


def _unknown(line: str, why: str) -> InputError:
    return InputError(f"the rule {line!r} cannot be parsed: {why}. The forms are {', '.join(FORMS)}.")
