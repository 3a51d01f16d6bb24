"""What a lexical and a dense retriever find for drafted questions.

They find passages to compare with the source, and they show whether copied words favour one of the two. Nothing here
rejects a draft: to keep the questions that a retriever answers makes that retriever win.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.evaluation import evaluate
from steelyard.judging.draft_checks import content_words
from steelyard.judging.drafts import BANDS, Draft, Favours, band
from steelyard.judging.passages import windows
from steelyard.lazy import looked_up
from steelyard.qrels import Qrels
from steelyard.run import Run

if TYPE_CHECKING:
    from steelyard.datasets import Corpus

MOST_DOCUMENTS = 10_000
"""Documents of a corpus up to which it is searched: the dense retriever takes about half a minute for as many."""
DEPTH = 10
FEWEST = 10
"""Questions on each side from which the two sides are compared."""
RETRIEVERS = {"bm25": "steelyard.retrievers.bm25:BM25", "dense": "steelyard.retrievers.dense:Dense"}

Lists = Mapping[str, Mapping[str, Sequence[tuple[str, float]]]]
"""By retriever and question: the first documents, with their scores."""


def search(corpus: Corpus, drafts: Sequence[Draft], step: Callable[[str, int, int], None] | None = None) -> Lists:
    """The first documents of both retrievers for the accepted answerable drafts; empty for a large corpus.

    step: called before each retriever with what is done next, the number of retrievers that are done, and of all.
    """
    asked = {draft.id: str(draft.question) for draft in drafts if draft.status == "accepted" and draft.spans}
    if not asked or len(corpus) > MOST_DOCUMENTS:
        return {}
    lists = {}
    for done, (name, place) in enumerate(RETRIEVERS.items()):
        if step is not None:
            step(f"searching {len(corpus):,} documents with {name}", done, len(RETRIEVERS))
        found = looked_up(place)().index(corpus).retrieve(list(asked.values()), k=DEPTH)
        lists[name] = dict(zip(asked, found, strict=True))
    return lists


def others(draft: Draft, corpus: Corpus, lists: Lists) -> list[dict[str, Any]]:
    """For each retriever its first document that is not a source of the draft: the passage with most of its words."""
    sources = {passage["doc_id"] for passage in draft.passages}
    found: dict[str, dict[str, Any]] = {}
    for name, ranked in lists.items():
        doc = next((doc for doc, _ in ranked.get(draft.id, ()) if doc not in sources), None)
        if doc is None:
            continue
        if doc not in found:
            text, asked = corpus.texts[doc], set(content_words(str(draft.question)))
            start, end = max(
                windows(text) or [(0, len(text))],
                key=lambda place: len(asked & set(content_words(text[place[0] : place[1]]))),
            )
            found[doc] = {"doc_id": doc, "start": start, "end": end, "found_by": []}
        found[doc]["found_by"].append(name)
    return list(found.values())


def favours(drafts: Sequence[Draft], lists: Lists) -> Favours | None:
    """nDCG@10 of both retrievers by how much of a question its source contains; only the source is relevant.

    Whether copied words favour BM25 is Welch's t test: its lead on the questions of the band `high`, and on the others.
    """
    asked = [draft for draft in drafts if draft.status == "accepted" and all(draft.id in of for of in lists.values())]
    if not asked or not lists:
        return None
    from scipy.stats import ttest_ind

    qrels = Qrels({draft.id: {str(span["doc_id"]): 1 for span in draft.spans} for draft in asked})
    measure = f"nDCG@{DEPTH}"
    scores = {name: evaluate(qrels, Run(dict(found)), measure) for name, found in lists.items()}
    values = {
        name: dict(zip(each.queries, each.values(measure).tolist(), strict=True)) for name, each in scores.items()
    }
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
    low, up = ttest_ind(high, rest, equal_var=False).confidence_interval()
    return Favours(rows, float(np.mean(high) - np.mean(rest)), float(low), float(up))
