"""The approval of drafted questions by a person: the judging page on drafts, and the folder by what was decided."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.checks import whole_number
from steelyard.datasets import Dataset
from steelyard.errors import InputError
from steelyard.judging.drafts import Draft, Drafts
from steelyard.judging.guidelines import Grade, Guidelines
from steelyard.judging.prompts import digest
from steelyard.judging.server import Session
from steelyard.judging.spans import marked
from steelyard.judgments import Judgment, Judgments
from steelyard.statistics.intervals import share_interval
from steelyard.wording import counted

FILE = "approvals.jsonl"
"""The judgments file of a question folder: 1 accepts a draft, 0 rejects it; `note` is the question as edited."""

GUIDELINES = Guidelines(
    "Approve questions",
    "Would somebody ask this who has not seen the passage, and does the marked text answer it? Correct the wording "
    "with e and the marked text with m.",
    (
        Grade(0, "r", "Reject", "Nobody would ask this, or the marked text does not answer it."),
        Grade(1, "a", "Accept", "A good question, with the wording and the marked text as they are now."),
    ),
)


def is_question_folder(path: Path) -> bool:
    """Whether a path is a folder that `steelyard questions` wrote."""
    return (path / "drafts.jsonl").is_file()


class Approval(Session):
    """One person's work on the accepted drafts of a folder, or on a random sample of them."""

    edit = True

    def __init__(self, folder: str | Path, judge: str, sample: int | None = None, seed: int = 0) -> None:
        self.folder, self.sample = Path(folder), sample
        self.drafts = Drafts.read(folder)
        shown = [original(draft) for draft in self.drafts.drafts if by_checks(draft)]
        if not shown:
            raise InputError("no draft was accepted by the checks, so there is nothing to approve.", self.folder)
        if sample is not None:
            chosen = np.random.default_rng(seed).permutation(len(shown))[: whole_number("--budget", sample, 1)]
            shown = [shown[place] for place in sorted(chosen.tolist())]
        self.shown = {key_of(draft): Shown.of(draft, self.drafts) for draft in shown}
        texts = {key: {"title": view.title, "text": view.text} for key, view in self.shown.items()}
        queries = {draft.id: str(draft.question) for draft in shown}
        dataset = Dataset.of(texts, queries, name=self.folder.resolve().name)
        pairs = [(draft.id, key_of(draft)) for draft in shown]
        super().__init__(pairs, dataset, self.folder / FILE, judge, GUIDELINES)

    def item(self, number: int) -> dict[str, Any]:
        """The question and its passage, with the spans that answer it."""
        spans = [{"start": start, "end": end} for start, end in self.shown[self.pairs[number][1]].spans]
        return {**super().item(number), "spans": spans}

    def finish(self) -> Drafts:
        """Write the folder by what is decided so far, and return the drafts."""
        return replace(self.drafts, drafts=tuple(map(original, self.drafts.drafts))).write(self.folder)

    def estimate(self) -> str:
        """The share of bad questions among those looked at in this session, with its interval."""
        decided = [line.grade for line in self._current() if line.grade is not None]
        if not decided:
            return "Nothing is decided yet."
        bad = decided.count(0)
        low, high = share_interval(bad, len(decided))
        drawn = " This sample is random, so the interval holds for all accepted drafts." if self.sample else ""
        return (
            f"{bad:,} of {counted(len(decided), 'question')} rejected: {bad / len(decided):.0%} "
            f"[{low:.0%}, {high:.0%}] (95% interval).{drawn}"
        )


@dataclass(frozen=True)
class Shown:
    """The text that the page shows for a draft, and the spans in it."""

    title: str
    text: str
    spans: tuple[tuple[int, int], ...]
    places: tuple[tuple[int, Mapping[str, Any]], ...]

    @classmethod
    def of(cls, draft: Draft, drafts: Drafts) -> Shown:
        """The passages of a draft as one text."""
        text = ""
        places: list[tuple[int, Mapping[str, Any]]] = []
        for passage in draft.passages:
            text += "\n\n" if places else ""
            places.append((len(text), passage))
            text += drafts.corpus.texts[passage["doc_id"]][passage["start"] : passage["end"]]
        moved = [
            (offset - passage["start"], span) for span, (offset, passage) in zip(draft.spans, places, strict=False)
        ]
        spans = tuple((by + span["start"], by + span["end"]) for by, span in moved)
        title = ", ".join(dict.fromkeys(str(passage["doc_id"]) for passage in draft.passages))
        return cls(title, text, spans, tuple(places))

    def in_document(self, start: int, end: int) -> dict[str, Any] | None:
        """A span of the text as one of its document; None if it is not within one passage."""
        for offset, passage in self.places:
            first = start - offset + passage["start"]
            if start < end and passage["start"] <= first and end - offset + passage["start"] <= passage["end"]:
                place = {"doc_id": passage["doc_id"], "start": first, "end": first + end - start}
                return {"quote": self.text[start:end], **place}
        return None


def key_of(draft: Draft) -> str:
    """What an approval is kept by: the question, its spans and its passages as they were drafted."""
    return digest(json.dumps([draft.question, draft.spans, draft.passages], sort_keys=True))[:16]


def by_checks(draft: Draft) -> bool:
    """Whether the checks accepted a draft, whatever a person decided afterwards."""
    return draft.status == "accepted" or "by" in draft.more


def original(draft: Draft) -> Draft:
    """A draft as it was before a person decided."""
    before = draft.more.get("original", {})
    more = {name: value for name, value in draft.more.items() if name not in ("by", "original")}
    spans = tuple(before.get("spans", draft.spans))
    restored = replace(draft, question=before.get("question", draft.question), spans=spans, more=more)
    return replace(restored, status="accepted", reason="", detail="") if by_checks(draft) else restored


def approved(drafts: Drafts, folder: Path) -> Drafts:
    """The drafts by what persons decided in a folder; of several decisions on a draft, the last one counts."""
    if not (folder / FILE).exists():
        return drafts
    last = {line.doc_id: line for line in Judgments.read(folder / FILE).current if line.grade is not None}
    for line in last.values():
        if line.grade not in GUIDELINES.values:
            raise InputError(
                f"the approval of {line.query_id!r} by {line.judge} has the grade {line.grade:g}; expected 0 or 1."
            )
    originals = [original(draft) for draft in drafts.drafts]
    return replace(drafts, drafts=tuple(_decided(draft, drafts, last.get(key_of(draft))) for draft in originals))


def _decided(draft: Draft, drafts: Drafts, line: Judgment | None) -> Draft:
    if line is None or draft.status != "accepted":
        return draft
    more = {**draft.more, "by": line.judge}
    if not line.grade:
        return replace(draft, more=more).rejected("rejected by a person", str(line.more.get("note") or ""))
    question = " ".join(str(line.more.get("note") or draft.question).split())
    # The spans as marked; those of the draft if nothing is marked, or something outside the passages.
    shown = Shown.of(draft, drafts)
    marks = [shown.in_document(span["start"], span["end"]) for span in marked(line)]
    kept = tuple(span for span in marks if span is not None)
    spans = kept if kept and len(kept) == len(marks) else draft.spans
    if (question, spans) != (draft.question, draft.spans):
        more["original"] = {"question": draft.question, "spans": list(map(dict, draft.spans))}
    return replace(draft, question=question, spans=spans, more=more)
