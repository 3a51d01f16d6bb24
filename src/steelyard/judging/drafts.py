"""Drafted questions as values: each with its spans and the reason of its rejection, and the folder they are kept in."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.checks import is_number
from steelyard.datasets import Corpus
from steelyard.errors import InputError, SteelyardError
from steelyard.evaluation import evaluate
from steelyard.evidence import Evidence
from steelyard.io.beir import document_records
from steelyard.io.datasets import read_corpus
from steelyard.io.files import read_bytes, reading, write_file
from steelyard.io.json import json_lines
from steelyard.judging.draft_checks import words
from steelyard.lazy import looked_up
from steelyard.lazy import polars as pl
from steelyard.qrels import Qrels
from steelyard.report.documents import Document, Documented, frame_table, plain_values
from steelyard.report.tables import Table
from steelyard.run import Run
from steelyard.statistics.intervals import welch
from steelyard.version import __version__
from steelyard.wording import counted

BANDS = ("low", "middle", "high")
DEPTH = 10  # Documents that a retriever returns for a question.
FEWEST = 10  # Questions on each side from which the two sides are compared.

Lists = Mapping[str, Mapping[str, Sequence[tuple[str, float]]]]
"""By retriever and question: the first documents, with their scores."""

BENCH = """\
# Retrievers compared on these questions, for every chunking: `steelyard bench bench.yaml`. Add your own.
dataset: .
evidence: evidence.jsonl
chunkers: [sentence: {tokens: [60, 120]}]
retrievers: [bm25-okapi, bm25-plus]
measures: ["R(per=target, budget=240)", RR@10]
by: overlap
"""


def band(share: float) -> str:
    """How much of a question its source contains, in thirds: low, middle or high."""
    return BANDS[min(int(3 * share), 2)]


@dataclass(frozen=True)
class Favours:
    """nDCG@10 of BM25 and of a dense retriever by `band`: rows of band, questions, bm25, dense.

    gap: how much more BM25 leads on the questions of `high` than on the others, with its interval; NaN if too few.
    """

    rows: tuple[tuple[Any, ...], ...]
    gap: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def sentence(self) -> str:
        """Whether questions that copy words of their source favour one of the two; empty if too few were compared."""
        if math.isnan(self.gap):
            return ""
        interval = f"{abs(self.gap):.2f} of nDCG@10 [{self.low:+.2f}, {self.high:+.2f}]"
        if self.low <= 0.0 <= self.high:
            return f"No sign that copied words favour a lexical or a dense retriever: {interval}."
        winner = "BM25" if self.gap > 0 else "the dense retriever"
        return f"Questions that share most words with their source favour {winner} by {interval}."


@dataclass(frozen=True)
class Draft:
    """A drafted question: its spans (doc_id, start, end, quote), and why it was rejected."""

    id: str
    kind: str
    question: str | None
    spans: tuple[Mapping[str, Any], ...]
    passages: tuple[Mapping[str, Any], ...]
    status: str = "accepted"
    reason: str = ""
    detail: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    def rejected(self, reason: str, detail: str = "") -> Draft:
        """The draft, rejected for a reason."""
        return replace(self, status="rejected", reason=reason, detail=detail)

    def to_dict(self) -> dict[str, Any]:
        """A line of drafts.jsonl; of a question over two passages, `spans` has both."""
        first = dict.fromkeys(("quote", "doc_id", "start", "end")) | dict(self.spans[0] if self.spans else {})
        first["doc_id"] = first["doc_id"] or self.passages[0]["doc_id"]
        record = {"id": self.id, "question": self.question, **first, "kind": self.kind, "status": self.status}
        record |= {"reason": self.reason, **({"detail": self.detail} if self.detail else {})}
        record |= {"spans": list(map(dict, self.spans))} if len(self.spans) > 1 else {}
        return {**record, "passages": list(map(dict, self.passages)), **self.more}

    def to_query(self) -> dict[str, Any]:
        """A line of queries.jsonl; `overlap` is low, middle or high, to slice scores by."""
        record = {"_id": self.id, "text": self.question, "kind": self.kind, "synthetic": True}
        share = self.more.get("overlap")
        record |= {} if share is None else {"overlap": band(share)}
        return record if self.spans else {**record, "answerable": False}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Draft:
        """The draft of a line of drafts.jsonl."""
        names, place = ("id", "kind", "question", "status", "reason"), ("quote", "doc_id", "start", "end")
        spans = record.get("spans") or [{name: record[name] for name in place}]
        return cls(
            **{name: record[name] for name in names},
            passages=tuple(record["passages"]),
            spans=tuple(span for span in spans if span["start"] is not None),
            detail=record.get("detail", ""),
            more={k: v for k, v in record.items() if k not in (*names, *place, "passages", "detail", "spans")},
        )


@dataclass(frozen=True, eq=False, repr=False)
class Drafts(Documented):
    """Drafted questions with the reason of each rejection: `accepted`, `rejected`, `write`."""

    drafts: tuple[Draft, ...]
    corpus: Corpus
    passed_over: Mapping[str, int] = field(default_factory=dict)
    like: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    lists: Lists = field(default_factory=dict)

    @cached_property
    def favours(self) -> Favours | None:
        """nDCG@10 of two retrievers on the accepted questions, without those that a person rejected."""
        return favours(self.drafts, self.lists)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about the drafts, as sentences."""
        return (*([self.favours.sentence] if self.favours and self.favours.sentence else []), *self.remarks)

    @cached_property
    def accepted(self) -> pl.DataFrame:
        """The accepted drafts: id, question, quote, doc_id, start, end, kind, status, reason."""
        return self._frame("accepted")

    @cached_property
    def rejected(self) -> pl.DataFrame:
        """The rejected drafts, with the reason and its detail."""
        return self._frame("rejected")

    def _frame(self, status: str | None = None) -> pl.DataFrame:
        names = ["id", "question", "quote", "doc_id", "start", "end", "kind", "status", "reason", "detail"]
        schema = {name: pl.Int64 if name in ("start", "end") else pl.String for name in names}
        rows = [{"detail": "", **draft.to_dict()} for draft in self.drafts if status in (None, draft.status)]
        return pl.DataFrame([{name: row[name] for name in names} for row in rows], schema=schema)

    @property
    def evidence(self) -> Evidence:
        """The spans of the accepted questions as evidence; an unanswerable question has none."""
        names = ("doc_id", "start", "end")
        kept = [draft for draft in self.drafts if draft.status == "accepted"]
        return Evidence({query.id: [[{n: span[n] for n in names}] for span in query.spans] or None for query in kept})

    def write(self, folder: str | Path) -> Drafts:
        """Write queries.jsonl, evidence.jsonl, corpus.jsonl and drafts.jsonl, each atomically; return what was written.

        What a person decided in this folder (approvals.jsonl) is applied. If there is no bench.yaml, one is written.
        """
        place = Path(folder)
        check_folder(place)
        place.mkdir(parents=True, exist_ok=True)
        drafts: Drafts = looked_up("steelyard.judging.approval:approved")(self, place)
        write_file(place / "drafts.jsonl", json_lines(draft.to_dict() for draft in drafts.drafts))
        write_file(place / "corpus.jsonl", json_lines(document_records(self.corpus)))
        queries = [draft.to_query() for draft in drafts.drafts if draft.status == "accepted"]
        write_file(place / "queries.jsonl", json_lines(queries))
        drafts.evidence.write(place / "evidence.jsonl")
        if not (place / "bench.yaml").exists():
            write_file(place / "bench.yaml", BENCH.encode())
        return drafts

    @classmethod
    def read(cls, folder: str | Path) -> Drafts:
        """Read a folder that `write` wrote."""
        path, corpus = Path(folder) / "drafts.jsonl", read_corpus(Path(folder) / "corpus.jsonl")[0]
        drafts = _read_drafts(path)
        with reading(path):
            wrong = [draft.id for draft in drafts if not _is_whole(draft, corpus)]
        if wrong or len({draft.id for draft in drafts}) < len(drafts):
            raise InputError(
                f"{f'the draft {wrong[0]!r} does not fit corpus.jsonl' if wrong else 'two drafts have one id'}, so a "
                "file was changed. Run `steelyard questions` again: what was answered is not asked again.",
                path,
            )
        return cls(drafts, corpus)

    @property
    def verdict(self) -> str:
        """How many drafts were accepted, and why the others were not."""
        reasons = Counter(draft.reason for draft in self.drafts if draft.status == "rejected")
        kept = len(self.drafts) - sum(reasons.values())
        why = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
        unseen = sum(draft.status == "accepted" and "by" not in draft.more for draft in self.drafts)
        seen = f" Nobody has looked at {unseen:,} of the accepted questions." if unseen else ""
        better = sum(draft.status == "accepted" and bool(draft.more.get("better")) for draft in self.drafts)
        other = f" For {better:,} of them the critic prefers another passage; look at these first." if better else ""
        accepted = f"{kept:,} of {counted(len(self.drafts), 'draft')} accepted{f'; rejected: {why}' if why else ''}."
        return f"{accepted}{other}{seen}"

    def differences(self) -> list[tuple[str, float, float]]:
        """How the accepted questions differ from the real ones of `like`: feature, real, drafted."""
        mine, real = [str(draft.question) for draft in self.drafts if draft.status == "accepted"], self.like
        if not mine or not real:
            return []
        return [(name, sum(map(of, real)) / len(real), sum(map(of, mine)) / len(mine)) for name, of in _FORM]

    def to_dict(self) -> dict[str, Any]:
        """The counts and every draft."""
        return {
            "steelyard": __version__,
            "verdict": self.verdict,
            "passed_over": dict(self.passed_over),
            "differences": [dict(zip(("feature", "real", "drafted"), row, strict=True)) for row in self.differences()],
            "favours": None if self.favours is None else plain_values(asdict(self.favours)),
            "drafts": [plain_values(draft.to_dict()) for draft in self.drafts],
            "notes": list(self.notes),
        }

    def data_table(self) -> Table:
        """Every draft."""
        return frame_table(self._frame())

    def document(self) -> Document:
        """The counts by kind, the passages passed over, and how the questions differ from real ones."""
        counts = Counter((draft.kind, draft.status, draft.reason) for draft in self.drafts)
        rows = [(*key, n) for key, n in sorted(counts.items())]
        tables = [Table(["kind", "status", "reason", "drafts"], rows, keys=3)]
        if self.passed_over:
            tables.append(Table(["passages passed over", "draws"], sorted(self.passed_over.items())))
        if self.differences():
            tables.append(Table(["questions", "real", "drafted"], self.differences()))
        if self.favours is not None:
            names = ["words in the source", "questions", "nDCG@10 bm25", "nDCG@10 dense"]
            tables.append(Table(names, list(self.favours.rows)))
        return Document("Drafted questions", self.verdict, tables, self.notes)


def favours(drafts: Sequence[Draft], lists: Lists) -> Favours | None:
    """nDCG@10 of both retrievers by how much of a question its source contains; only the source is relevant.

    Whether copied words favour BM25 is Welch's t test: its lead on the questions of the band `high`, and on the others.
    """
    asked = [draft for draft in drafts if draft.status == "accepted" and all(draft.id in of for of in lists.values())]
    if not asked or not lists:
        return None
    qrels = Qrels({draft.id: {str(span["doc_id"]): 1 for span in draft.spans} for draft in asked})
    measure, values = f"nDCG@{DEPTH}", {}
    for name, ranked in lists.items():
        scores = evaluate(qrels, Run(dict(ranked)), measure)
        values[name] = dict(zip(scores.queries, scores.values(measure).tolist(), strict=True))
    by_band: dict[str, list[str]] = {name: [] for name in BANDS}
    for draft in asked:
        by_band[band(draft.more["overlap"])].append(draft.id)
    rows = tuple(
        (name, len(ids), *(float(np.mean([of[id] for id in ids])) for of in values.values()))
        for name, ids in by_band.items()
        if ids
    )
    leads = {id: values["bm25"][id] - values["dense"][id] for id in values["bm25"]}
    high = [leads[id] for id in by_band["high"]]
    rest = [leads[id] for name, ids in by_band.items() if name != "high" for id in ids]
    if min(len(high), len(rest)) < FEWEST:
        return Favours(rows)
    gap, _, interval = welch(np.array(high), np.array(rest))
    return Favours(rows, gap, *interval)


def check_folder(folder: Path, corpus: Path | None = None) -> None:
    """Raise an error if a folder has files that `write` would replace, and that are not of drafted questions.

    corpus: where the documents are; what is written there would be among them.
    """
    if corpus is not None and folder.resolve() == corpus.resolve():
        raise InputError("has the documents; name another folder for the questions.", folder)
    if folder.exists() and not folder.is_dir():
        raise InputError("is not a folder; name one for the questions.", folder)
    names = ("drafts.jsonl", "queries.jsonl", "corpus.jsonl", "evidence.jsonl")
    there = [name for name in names if (folder / name).exists()]
    try:
        if there:
            _read_drafts(folder / "drafts.jsonl")
    except (SteelyardError, OSError):
        raise InputError(f"has a {there[0]} that is not of drafted questions; name another folder.", folder) from None


def _read_drafts(path: Path) -> tuple[Draft, ...]:
    with reading(path):
        return tuple(Draft.of(json.loads(line)) for line in read_bytes(path).split(b"\n") if line.strip())


def _is_whole(draft: Draft, corpus: Corpus) -> bool:
    """Whether a draft is as `write` wrote it: texts are texts, and what is quoted is there in its document."""
    texts = (draft.id, draft.kind, draft.status, draft.reason, draft.detail, draft.question or "")
    before, share = draft.more.get("original", {}), draft.more.get("overlap", 0.0)
    places = [*draft.passages, *draft.spans, *before.get("spans", ())]
    return (
        all(isinstance(text, str) for text in (*texts, before.get("question", "")))
        and is_number(share)
        and 0 <= share <= 1
        and len(draft.passages) > 0
        and all(_is_at(place, corpus.texts[place["doc_id"]]) for place in places)
        and (draft.status == "rejected" or (draft.status == "accepted" and bool(draft.question)))
    )


def _is_at(place: Mapping[str, Any], text: str) -> bool:
    start, end = place["start"], place["end"]
    inside = type(start) is int and type(end) is int and 0 <= start < end <= len(text)
    return inside and place.get("quote", text[start:end]) == text[start:end]


_ASKS = {"what", "which", "who", "whom", "whose", "when", "where", "why", "how"}
_FORM: tuple[tuple[str, Callable[[str], float]], ...] = (
    ("words", lambda text: len(text.split())),
    ("start with a question word", lambda text: words(text)[:1] != [] and words(text)[0] in _ASKS),
    ("end with a question mark", lambda text: text.rstrip().endswith("?")),
)
