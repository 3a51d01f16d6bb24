"""Judgments of several judges, in a file that is appended to and never rewritten.

One JSON object per line: query_id, doc_id, grade, judge, at; note, spans, model, prompt, seconds, tokens and other
fields may follow. `question` is the text of the query when it was judged, `text_hash` a hash of the document's text.
`relevant_from` is the lowest grade of the judge's scale that answers the query. A grade of null means that the judge
looked and gave no answer. A line with `"undo": true` withdraws this judge's last line for this pair: the line before
it, if there is one, counts again. Of several lines of one judge for one pair the last one counts.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, get_args

from steelyard.checks import is_number, unknown_name
from steelyard.errors import InputError, PolicyError
from steelyard.frames import as_polars, is_frame
from steelyard.lazy import looked_up
from steelyard.lazy import polars as pl
from steelyard.notes import Note, Texts, declare, note
from steelyard.qrels import Qrels
from steelyard.safe_text import utf8
from steelyard.wording import SHOWN_NAMES, counted, listed, worded

Rule = Literal["majority", "mean", "max", "min", "last"]
RULES: tuple[Rule, ...] = get_args(Rule)

FIRST_FIELDS = ("query_id", "doc_id", "grade", "judge", "at")
ASKED = "question"  # The field with the text of the query, as it was when the document was judged.
TEXT = "text_hash"  # The field with a hash of the document's text, as it was when it was judged.
_ASKED_CHARACTERS = 10_000
_SHOWN_CHARACTERS = 60
UNNAMED = "judge"  # The judge of lines that name none.


def _torn_lines(file: str, lines: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, lines[:6])) + (", ..." if len(lines) > 6 else "")
    return f"{file}: {worded(len(lines), 'line', 'lines')} {shown} ignored, not written to the end"


WARNINGS: Texts = {
    "exports-joined": "{file} joins several exports of {judges:listed}: {conflicts:,} {conflicts:pair has|pairs have} "
    "different grades in them, and the later one counts",
    "scales-differ": "the judges use different scales (the lowest relevant grade is {levels:listed}); the highest of "
    "these counts for all",
    "torn-lines": _torn_lines,
    "questions-moved": "{count:,} {count:question has|questions have} a different id than when {count:it was|they "
    "were} judged ({before} is now {after}); judgments follow the text of their question. A column of ids in the file "
    "of questions keeps ids as they are",
    "questions-changed": "{judgments:,} {judgments:judgment is|judgments are} not used, as {count:a question|{count:,} "
    "questions} changed after {count:it was|they were} judged: {query} was {before!r} and is "
    "{after:?now {after!r}|no longer asked}. Judge again, or undo the change",
    "judged-texts-changed": "{count:,} {count:document has|documents have} a different text than when {count:it was|"
    "they were} judged ({documents!r:examples}), and the judgments still count: judge again, or let a text that "
    "changes get another id (`id: hash`)",
}
INFO: Texts = {
    "graded-by": "grades by {judge}{judges:|, one of {judges} judges}",
    "judges-resolved": "{judges:count} judges ({judges:listed}) resolved by {rule}: {documents:,} "
    "{documents:document has|documents have} more than one grade",
}
declare(warning=WARNINGS, info=INFO)


@dataclass(frozen=True)
class Judgment:
    """One line of a judgments file. `grade` is None where the judge gave no answer."""

    query_id: str
    doc_id: str
    grade: float | None
    judge: str
    at: str | None = None
    undo: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        """What a later line of the same judge for the same pair replaces."""
        return self.judge, self.query_id, self.doc_id

    def to_dict(self) -> dict[str, Any]:
        """The object that is written to the file."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in FIRST_FIELDS}
        if self.grade is not None and float(self.grade).is_integer():
            fields["grade"] = int(self.grade)
        return {**fields, **({"undo": True} if self.undo else {}), **self.more}


class Judgments:
    """The judgments of one or more judges.

    >>> labels = Judgments([
    ...     {"query_id": "q1", "doc_id": "d1", "grade": 2, "judge": "ann"},
    ...     {"query_id": "q1", "doc_id": "d1", "grade": 3, "judge": "bob"},
    ...     {"query_id": "q1", "doc_id": "d2", "grade": 0, "judge": "ann"},
    ... ])
    >>> labels
    Judgments: 2 judges, 3 judgments of 2 documents
    >>> labels.qrels("max").frame["grade"].to_list()
    [3, 0]

    The source is a list of records, a frame with the columns of the file, a Qrels or a mapping of queries to
    graded documents (of the judge named by `judge`), or another Judgments.
    """

    def __init__(self, source: Any = (), *, judge: str | None = None) -> None:
        self.path: Path | None = None
        self.notes: tuple[Note, ...] = ()
        self.lines: list[Judgment] = list(_lines_of(source, judge))

    @classmethod
    def read(cls, path: str | Path, *, judge: str | None = None) -> Judgments:
        """Read a judgments file. `judge` names the judge of lines that name none.

        A last line that was not written to its end (the process was killed) is ignored and noted.
        """
        judgments: Judgments = looked_up("steelyard.io.judgments:read_judgments")(Path(path), judge)
        return judgments

    @classmethod
    def of(cls, source: Any, *, judge: str | None = None) -> Judgments:
        """Judgments as they are; a path read; anything else made into Judgments.

        A path to a qrels file in another format gives the judgments of one judge.
        """
        if isinstance(source, Judgments):
            return source
        if isinstance(source, (str, Path)):
            judgments: Judgments = looked_up("steelyard.io.judgments:judgments_of_file")(Path(source), judge)
            return judgments
        return cls(source, judge=judge)

    def append(
        self,
        query_id: str,
        doc_id: str,
        grade: float | None,
        judge: str,
        *,
        at: str | None = None,
        undo: bool = False,
        **more: Any,
    ) -> Judgment:
        """Add one judgment; with a file, write its line and wait until it is on disk."""
        first = dict(zip(FIRST_FIELDS, (query_id, doc_id, grade, judge, at or now()), strict=True))
        judgment = judgment_of({**first, "undo": undo, **more}, None)
        if self.path is not None:
            append_line(self.path, judgment)
        self.lines.append(judgment)
        for name in ("current", "frame", "judges"):
            self.__dict__.pop(name, None)
        return judgment

    def undo(self, query_id: str, doc_id: str, judge: str) -> Judgment:
        """Withdraw the judge's last line for this pair; the line before it, if any, counts again."""
        return self.append(query_id, doc_id, None, judge, undo=True)

    def for_questions(self, queries: Mapping[str, str]) -> Judgments:
        """The judgments for queries as they are asked now, by id and text; `notes` report what changed.

        A line that states its question follows it to the id that the question has now, and is left out if it is no
        longer asked. Other lines stay as they are.
        """
        ids: dict[str, list[str]] = {}
        for query, text in queries.items():
            ids.setdefault(asked(text), []).append(query)
        asking = [(line.more.get(ASKED), line.query_id) for line in self.lines]
        stated = dict.fromkeys((question, query) for question, query in asking if isinstance(question, str))
        # The judgments of a question that is asked twice stay apart: an old id gets a new one without judgments.
        free = {question: [query for query in own if (question, query) not in stated] for question, own in ids.items()}
        places = {(question, query): query for question, own in ids.items() for query in own}
        for text, query in stated:
            if text in ids and (text, query) not in places:
                places[text, query] = free[text].pop(0) if free[text] else ids[text][0]
        followed: dict[tuple[str, str, str], str | None] = {}
        moved: dict[str, str] = {}
        lost: dict[str, list[str]] = {}
        lines = []
        for line in self.lines:
            question = line.more.get(ASKED)
            place: str | None = followed.get(line.key, line.query_id) if line.undo else line.query_id
            if isinstance(question, str):
                followed[line.key] = place = places.get((question, line.query_id))
                if place is None:
                    lost.setdefault(line.query_id, []).append(question)
                elif place != line.query_id:
                    moved[line.query_id] = place
            if place is not None:
                lines.append(line if place == line.query_id else replace(line, query_id=place))
        judgments = Judgments(lines)
        judgments.path, judgments.notes = self.path, self.notes
        if moved:
            before, after = next(iter(moved.items()))
            judgments.notes += (note("questions-moved", count=len(moved), before=before, after=after),)
        if lost:
            query, texts = next(iter(lost.items()))
            values = {"judgments": sum(map(len, lost.values())), "count": len(lost), "query": query}
            shown = {"before": _in_note(texts[0]), "after": _in_note(queries[query]) if query in queries else None}
            judgments.notes += (note("questions-changed", **values, **shown),)
        return judgments

    @cached_property
    def current(self) -> tuple[Judgment, ...]:
        """The line that counts for each judge and pair, in the order in which these were first judged."""
        held: dict[tuple[str, str, str], list[Judgment]] = {}
        for line in self.lines:
            stack = held.setdefault(line.key, [])
            if not line.undo:
                stack.append(line)
            elif stack:
                stack.pop()
        return tuple(stack[-1] for stack in held.values() if stack)

    @cached_property
    def judges(self) -> list[str]:
        """The names of the judges, in the order in which they came."""
        return list(dict.fromkeys(line.judge for line in self.current))

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A polars frame: query_id, doc_id, grade, judge, at, then the other fields; one row per judge and pair.

        The grade is null where the judge gave no answer. Fields that are objects or lists are JSON text.
        """
        lines = self.current
        names = list(dict.fromkeys(name for line in lines for name in line.more))
        first = {name: [getattr(line, name) for line in lines] for name in FIRST_FIELDS}
        grades = [None if grade is None else float(grade) for grade in first.pop("grade")]
        whole = all(grade is None or grade.is_integer() for grade in grades)
        columns = {name: pl.Series(values, dtype=pl.String) for name, values in first.items()}
        columns["grade"] = pl.Series(grades, dtype=pl.Float64).cast(pl.Int64 if whole else pl.Float64)
        columns |= {name: _column(name, lines) for name in names}
        return pl.DataFrame(columns).select(*FIRST_FIELDS, *names)

    def by(self, judge: str) -> Judgments:
        """The judgments of one judge."""
        self._check_judge(judge)
        return Judgments([line for line in self.lines if line.judge == judge])

    def qrels(self, resolve: str = "majority") -> Qrels:
        """Qrels with one grade per document: by a rule, or the grades of one judge, by name.

        `majority` is the most frequent grade, of people where people and models judged a document; of several, the
        lower median of these: of 0 and 3 it is 0, of 0, 2 and 3 it is 2. `mean`, `max` and `min` are those of all
        grades; `last` is that of the last line. A document with no grade at all is not judged.
        """
        queries: dict[str, dict[str, float]] = {}
        for (query, doc), grades in self._graded(resolve).items():
            queries.setdefault(query, {})[doc] = resolved(grades, resolve)
        qrels = Qrels(queries)
        qrels.notes += (*self.notes, self.resolution(resolve))
        used = self._used(resolve)
        stated = (line.more.get("relevant_from") for line in used)
        scales = {float(level) for level in stated if level is not None and is_number(level)}
        if len(scales) > 1:
            qrels.notes += (note("scales-differ", levels=[f"{level:g}" for level in sorted(scales)]),)
        qrels.relevant_from = max(scales, default=None)
        qrels.labelled_by = self._labelled_by(resolve)
        qrels.from_judgments = bool(len(qrels))
        hashes = ((line.doc_id, line.more.get(TEXT)) for line in used)
        qrels.judged_texts = frozenset((doc, judged) for doc, judged in hashes if isinstance(judged, str))
        return qrels

    def _labelled_by(self, resolve: str) -> str:
        """A sentence on the models among the judges; none if people gave all grades."""
        used = self._used(resolve)
        of_models = [line for line in used if line.more.get("model")]
        if not of_models:
            return ""
        models = list(dict.fromkeys(str(line.more["model"]) for line in of_models))
        people = [line for line in self._used("last") if not line.more.get("model")]
        with_people = " and people" if len(of_models) < len(used) else ""
        by_people, by_models = (
            {(line.query_id, line.doc_id): float(line.grade or 0) for line in lines} for lines in (people, of_models)
        )
        shared = [pair for pair in by_people if pair in by_models]
        head = f"Judged by {listed(models, SHOWN_NAMES)}{with_people}"
        if not shared:
            return f"{head}, not checked against people."
        from steelyard.statistics.agreement import cohen_kappa, kappa_interval

        grades = [by_people[pair] for pair in shared], [by_models[pair] for pair in shared]
        kappa, (low, high) = cohen_kappa(*grades), kappa_interval(*grades, [query for query, _ in shared])
        if math.isnan(low):
            return f"{head}, checked against people on {counted(len(shared), 'document')}, too few to say how well."
        return f"{head}; kappa with people {kappa:.2f} [{low:.2f}, {high:.2f}] on {counted(len(shared), 'document')}."

    def _used(self, resolve: str) -> list[Judgment]:
        """The lines with a grade: of all judges for a rule, or of the judge of that name."""
        graded = [line for line in self.current if line.grade is not None]
        return graded if resolve in RULES else [line for line in graded if line.judge == resolve]

    def resolution(self, resolve: str = "majority") -> Note:
        """How several judges were resolved."""
        if len(self.judges) < 2 or resolve not in RULES:
            by = resolve if len(self.judges) > 1 else "".join(self.judges[:1]) or "nobody"
            return note("graded-by", judge=by, judges=len(self.judges))
        several = sum(judges > 1 for judges in Counter((a.query_id, a.doc_id) for a in self._used(resolve)).values())
        return note("judges-resolved", judges=list(self.judges), rule=resolve, documents=several)

    def _graded(self, resolve: str) -> dict[tuple[str, str], list[float]]:
        """The grades of every pair, in the order of the lines."""
        if resolve not in RULES:
            self._check_judge(resolve)
        order = {id(line): place for place, line in enumerate(self.lines)}
        used = sorted(self._used(resolve), key=lambda line: order[id(line)])
        by_people = {(line.query_id, line.doc_id) for line in used if not line.more.get("model")}
        graded: dict[tuple[str, str], list[float]] = {}
        for line in used:
            pair = (line.query_id, line.doc_id)
            if line.grade is not None and not (resolve == "majority" and line.more.get("model") and pair in by_people):
                graded.setdefault(pair, []).append(line.grade)
        return graded

    def _check_judge(self, name: str) -> None:
        if name not in self.judges:
            raise PolicyError(unknown_name("judge or rule", name, [*RULES, *self.judges]))

    def __len__(self) -> int:
        """Number of judgments that count, those without a grade included."""
        return len(self.current)

    def __repr__(self) -> str:
        documents = counted(len({(line.query_id, line.doc_id) for line in self.current}), "document")
        missing = sum(line.grade is None for line in self.current)
        size = f"{counted(len(self.judges), 'judge')}, {counted(len(self), 'judgment')} of {documents}"
        return f"Judgments: {size}" + (f", {missing:,} without a grade" if missing else "")


def asked(text: str) -> str:
    """The text of a query as a line states it."""
    return text[:_ASKED_CHARACTERS]


def text_hash(text: str) -> str:
    """A hash of a document's text as a line states it."""
    return blake2b(utf8(text).strip(), digest_size=8).hexdigest()


def changed_texts(qrels: Qrels, texts: Mapping[str, str]) -> list[Note]:
    """A note on the documents whose text is not the one that was judged; `texts` are those of now."""
    hashes = {doc: text_hash(texts[doc]) for doc, _ in qrels.judged_texts if doc in texts}
    changed = sorted({doc for doc, judged in qrels.judged_texts if hashes.get(doc, judged) != judged})
    return [note("judged-texts-changed", count=len(changed), documents=changed)] if changed else []


def _in_note(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _SHOWN_CHARACTERS else f"{words[:_SHOWN_CHARACTERS]}..."


def resolved(grades: Sequence[float], rule: str) -> float:
    """One grade for a document by a rule; see `Judgments.qrels`.

    >>> resolved([0, 3, 3, 1], "majority"), resolved([0, 3], "majority"), resolved([0, 3, 2], "majority")
    (3, 0, 2)
    """
    if rule == "mean":
        return math.fsum(grades) / len(grades)
    if rule == "majority":
        counts = Counter(grades)
        most = max(counts.values())
        modes = sorted(grade for grade, count in counts.items() if count == most)
        return modes[(len(modes) - 1) // 2]
    return {"max": max(grades), "min": min(grades)}.get(rule, grades[-1])


def now() -> str:
    """The time in UTC to the second, as in the field `at`."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")


def append_line(path: str | Path, judgment: Judgment) -> None:
    """Write one line at the end of a judgments file and wait until it is on disk.

    An unfinished last line, left by a process that was killed, is closed first.
    """
    line = json.dumps(judgment.to_dict(), ensure_ascii=False, allow_nan=False) + "\n"
    looked_up("steelyard.io.files:refuse_compressed")(Path(path))
    try:
        with open(path, "ab+") as file:
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else "\n" + line
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}).") from None


def _lines_of(source: Any, judge: str | None) -> Iterable[Judgment]:
    """The judgments of anything but a path."""
    if isinstance(source, Judgments):
        return source.lines
    if isinstance(source, (list, tuple)):
        return [record if isinstance(record, Judgment) else judgment_of(record, judge) for record in source]
    if is_frame(source) and "judge" in (frame := as_polars(source)).columns:
        # Fields that are missing in a row are left out, as NaN of pandas is.
        rows = (frame if type(source).__module__.startswith("polars") else frame.fill_nan(None)).to_dicts()
        return [judgment_of({k: v for k, v in row.items() if v is not None or k == "grade"}, judge) for row in rows]
    documents = Qrels.of(source).frame.drop_nulls("doc_id").group_by("query_id", "doc_id", maintain_order=True)
    best = documents.agg(pl.col("grade").max()).iter_rows()
    return [Judgment(query, doc, grade, judge or UNNAMED) for query, doc, grade in best]


def judgment_of(record: Any, judge: str | None) -> Judgment:
    """A record checked and made into a Judgment."""
    if not isinstance(record, Mapping):
        raise InputError(f"expected an object, found {type(record).__name__}")
    missing = [name for name in ("query_id", "doc_id", "grade") if name not in record]
    if missing:
        raise InputError(f"no {' and no '.join(missing)}")
    for name in ("query_id", "doc_id"):
        value = record[name]
        if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
            raise InputError(f"{name} is {value!r}, expected a text")
    who = record.get("judge", judge)
    if who is not None and not isinstance(who, str):
        raise InputError(f"judge is {who!r}, expected a name")
    more = {name: value for name, value in record.items() if name not in (*FIRST_FIELDS, "undo")}
    grade, at, undo, level = (record.get(name) for name in ("grade", "at", "undo", "relevant_from"))
    if grade is not None and not is_number(grade):
        raise InputError(f"grade is {grade!r}, expected a number or null")
    if undo not in (None, True, False) or type(undo) is int:
        raise InputError(f"undo is {undo!r}, expected true")
    if level is not None and not is_number(level):
        raise InputError(f"relevant_from is {level!r}, expected a number")
    ids = str(record["query_id"]), str(record["doc_id"])
    return Judgment(*ids, grade, who or UNNAMED, None if at is None else str(at), bool(undo), more)


def _column(name: str, lines: Sequence[Judgment]) -> pl.Series:
    """One of the other fields: numbers, texts or truth values as they are, anything else as JSON text."""
    values = [line.more.get(name) for line in lines]
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        kind: Any = pl.Int64 if kinds <= {int} else pl.Float64
        return pl.Series(name, [None if v is None else v if kind == pl.Int64 else float(v) for v in values], dtype=kind)
    if len(kinds) == 1 and kinds <= {str, bool}:
        return pl.Series(name, values)
    return pl.Series(name, [None if v is None else json.dumps(v, ensure_ascii=False) for v in values], dtype=pl.String)
