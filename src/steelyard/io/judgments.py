"""Judgments files: one JSON object per line, with query_id, doc_id, grade and judge; see `steelyard.judgments`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from steelyard.errors import InputError
from steelyard.io.columns import check_roles
from steelyard.io.files import read_bytes, reading, refuse_compressed, streams_read_once
from steelyard.io.formats import Detected, Format, Shape
from steelyard.io.reading import read_qrels as read_any_qrels
from steelyard.io.text import Source
from steelyard.judgments import Judgment, Judgments, judgment_of
from steelyard.notes import Note, note
from steelyard.qrels import Qrels

_FIELDS = {"query_id", "doc_id", "grade", "judge"}


def read_judgments(path: Path, judge: str | None = None) -> Judgments:
    """The judgments of a file. `judge` names the judge of lines that name none."""
    judgments = Judgments()
    with reading(path):
        lines, judgments.notes = _parsed(read_bytes(path), path, judge)
    judgments.path = path
    judgments.lines, judges, conflicts = _in_time(lines)
    if conflicts:
        judgments.notes += (note("exports-joined", file=path.name, judges=judges, conflicts=conflicts),)
    return judgments


def open_judgments(path: Path) -> Judgments:
    """The judgments of a file to append to; a new file where there is none."""
    refuse_compressed(path)
    judgments = read_judgments(path) if path.exists() else Judgments()
    judgments.path = path
    return judgments


@streams_read_once()
def judgments_of_file(path: Path, judge: str | None = None) -> Judgments:
    """The judgments of a judgments file, or those of one judge in a qrels file of any format."""
    if is_judgments_file(path):
        return read_judgments(path, judge)
    return Judgments(read_any_qrels(path), judge=judge or path.stem)


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The qrels of a judgments file, its judges resolved as `Judgments.qrels` does."""
    check_roles(columns, (), "a judgments file")
    return read_judgments(source.path).qrels()


def is_judgments_file(path: str | Path) -> bool:
    """Whether the first line is one of a judgments file."""
    try:
        return Source(Path(path)).first_object.keys() >= _FIELDS
    except InputError:
        return False


def _parsed(content: bytes, path: Path, judge: str | None) -> tuple[list[Judgment], tuple[Note, ...]]:
    """The judgments of a file, and notes on lines that were ignored because they are not finished."""
    judgments: list[Judgment] = []
    torn: list[int] = []
    wrong: list[str] = []
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            judgments.append(judgment_of(json.loads(line), judge))
        except InputError as error:
            wrong.append(f"line {number}: {error}")
        except RecursionError:
            wrong.append(f"line {number}: nested too deeply")
        except ValueError as error:
            # The beginning of an object that was not written to its end.
            cut = isinstance(error, json.JSONDecodeError) and error.pos >= len(error.doc.rstrip())
            ended = number < len(lines) and line.rstrip().endswith(b"}") and not cut
            if line.lstrip().startswith(b"{") and not ended:
                torn.append(number)
            else:
                wrong.append(f"line {number}: not a JSON object ({error})")
    advice = "Expected one object per line with query_id, doc_id, grade and judge."
    InputError.refuse(wrong, "wrong line", "wrong lines", advice, path)
    return judgments, (note("torn-lines", file=path.name, lines=torn),) if torn else ()


def _in_time(lines: list[Judgment]) -> tuple[list[Judgment], list[str], int]:
    """The lines, joined exports in the order of `at`; whose exports were joined, and how many pairs differ.

    The order of a file counts, also if the clock was set back. Exports of one judge were joined if the judge's first
    line comes again, after one of another time. It must not count twice: one `undo` would then leave the other.
    """
    own: dict[str, list[Judgment]] = {}
    for line in lines:
        own.setdefault(line.judge, []).append(line)
    joined, conflicts = {}, 0
    for judge, every in own.items():
        again = [n for n in range(1, len(every)) if every[n] == every[0] and every[n - 1].at != every[0].at]
        if not again:
            continue
        grades: dict[tuple[str, str, str], set[float | None]] = {}
        for start, end in pairwise([0, *again, len(every)]):
            for line in Judgments(every[start:end]).current:
                grades.setdefault(line.key, set()).add(line.grade)
        conflicts += sum(len(different) > 1 for different in grades.values())
        once = {json.dumps(line.to_dict(), sort_keys=True): line for line in every}
        joined[judge] = iter(sorted(once.values(), key=lambda line: line.at or ""))
    placed = (next(joined[line.judge], None) if line.judge in joined else line for line in lines)
    return [line for line in placed if line is not None], list(joined), conflicts


def _detect(shape: Shape) -> Detected | None:
    is_judgments = shape.form == "jsonl" and shape.source.first_object.keys() >= _FIELDS
    return Detected("qrels", "judgments", "qrels") if is_judgments else None


FORMATS = (
    Format(
        name="judgments",
        description="a judgments file: query_id, doc_id, grade and judge, one JSON object per line",
        detect=_detect,
        reads={"qrels": read_qrels},
    ),
)
