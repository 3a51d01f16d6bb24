"""Documents that say nearly the same, found without comparing every pair.

A document is the set of its runs of three words (in scripts without spaces, of three characters).
Two are near-duplicates where those sets overlap by at least the threshold, |A and B| / |A or B|
(Jaccard). Candidates are found by MinHash: 64 minima a document in 16 bands of four, a pair being
looked at where a band is equal; the overlap itself is then computed exactly, so every group is
real. A pair at 0.8 is missed once in 4,000 times, one at 0.7 once in 80.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from steelyard.datasets.corpus import Corpus
from steelyard.datasets.dataset import Dataset, relevant_distractors
from steelyard.datasets.fields import Finding
from steelyard.errors import InputError
from steelyard.qrels import Qrels
from steelyard.wording import counted

if TYPE_CHECKING:
    Hashes: TypeAlias = npt.NDArray[np.uint64]
    Ints: TypeAlias = npt.NDArray[np.int64]


_BANDS, _ROWS = 16, 4
# Characters taken at a time: enough to keep polars busy, few enough that the hashes stay in the cache.
_CHUNK = 1 << 20
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORDS = rf"[{_UNSPACED}]|[\w--[{_UNSPACED}]]+"


def near_duplicates(corpus: Mapping[str, str], threshold: float = 0.8) -> list[tuple[str, ...]]:
    """Groups of documents of which each nearly repeats another of its group, in corpus order.

    >>> text = "the lift at the upper station is closed for repair until the first of may"
    >>> near_duplicates({"a": text, "b": "bicycles travel free", "c": text + " this year"})
    [('a', 'c')]
    """
    if not 0 < threshold <= 1:
        raise InputError(
            f"the threshold of near-duplicates is {threshold}; expected a number above 0, at most 1."
        )
    texts = getattr(corpus, "texts", corpus)
    ids = list(corpus)
    places, keys = _band_keys(texts.values())
    pairs = _candidates(places, keys)
    groups = _joined(pairs, _shingles_of(texts, ids, pairs), threshold)
    return [tuple(ids[place] for place in group) for group in groups]


def _band_keys(texts: Iterable[str]) -> tuple[Ints, Hashes]:
    """The documents that have words, and a key for each of their bands."""
    multiply, shift = _permutations()
    places: list[Ints] = []
    keys: list[Hashes] = []
    first = 0
    for chunk in _chunks(texts):
        hashes, sizes = shingles(chunk)
        filled = np.flatnonzero(sizes)
        starts = np.cumsum(sizes[filled]) - sizes[filled]
        places.append(filled + first)
        keys.append(_bands(hashes, starts, multiply, shift))
        first += len(chunk)
    if not places:
        return np.empty(0, np.int64), np.empty((0, _BANDS), np.uint64)
    return np.concatenate(places), np.concatenate(keys)


def _permutations() -> tuple[Hashes, Hashes]:
    generator = np.random.default_rng(20)
    draw = generator.integers(0, 2**63, (2, _BANDS * _ROWS), dtype=np.uint64)
    return (draw[0] << np.uint64(1)) | np.uint64(1), draw[1]


def _bands(hashes: Hashes, starts: Ints, multiply: Hashes, shift: Hashes) -> Hashes:
    """Four minima folded into one key, for each band."""
    keys = np.zeros((len(starts), _BANDS), np.uint64)
    if not len(starts):
        return keys
    mixed = np.empty_like(hashes)
    for number in range(_BANDS * _ROWS):
        np.bitwise_xor(hashes, shift[number], out=mixed)
        np.multiply(mixed, multiply[number], out=mixed)
        band = number // _ROWS
        keys[:, band] = _mix(keys[:, band] ^ np.minimum.reduceat(mixed, starts))
    return keys


def shingles(texts: Sequence[str]) -> tuple[Hashes, Ints]:
    """A hash for every run of three words, text after text, and how many each text has.

    A text of one or two words is one run; a text without words has none.
    """
    import polars as pl

    words = pl.Series(texts, dtype=pl.String).str.to_lowercase().str.extract_all(_WORDS)
    lengths = words.list.len().to_numpy().astype(np.int64)
    hashes = words.explode().drop_nulls().hash(seed=0).to_numpy().astype(np.uint64)
    ends = np.cumsum(lengths)
    sizes = np.where(lengths > 0, np.maximum(lengths - 2, 1), 0)
    starts = ends - lengths
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    at = np.repeat(starts, sizes) + within
    last = np.repeat(ends, sizes) - 1
    run = hashes[at]
    for step in (1, 2):
        following = hashes[np.minimum(at + step, last)]
        run = _mix(run ^ np.where(at + step <= last, following, np.uint64(0)))
    return run, sizes


def _mix(values: Hashes) -> Hashes:
    """A bijection that spreads every bit over the word."""
    mixed = (values ^ (values >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    spread: Hashes = mixed ^ (mixed >> np.uint64(29))
    return spread


def _candidates(places: Ints, keys: Hashes) -> Ints:
    """Pairs of documents with an equal band: each with the first of its run, and with the one before it."""
    found: list[Ints] = []
    for band in range(_BANDS):
        order = np.argsort(keys[:, band], kind="stable")
        ordered = keys[order, band]
        equal = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
        if not len(equal):
            continue
        fresh = np.concatenate([[True], ordered[1:] != ordered[:-1]])
        heads = np.maximum.accumulate(np.where(fresh, np.arange(len(ordered)), 0))
        for other in (heads[equal], equal - 1):
            found.append(np.stack([places[order[other]], places[order[equal]]], axis=1))
    if not found:
        return np.empty((0, 2), np.int64)
    pairs: Ints = np.unique(np.concatenate(found), axis=0)
    return pairs


def _shingles_of(texts: Mapping[str, str], ids: Sequence[str], pairs: Ints) -> dict[int, Hashes]:
    """The distinct runs of every candidate."""
    wanted = np.unique(pairs).tolist()
    found: dict[int, Hashes] = {}
    remaining = iter(wanted)
    for chunk in _chunks(texts[ids[place]] for place in wanted):
        hashes, sizes = shingles(chunk)
        for runs in np.split(hashes, np.cumsum(sizes)[:-1]):
            found[next(remaining)] = np.unique(runs)
    return found


def _joined(pairs: Ints, runs: Mapping[int, Hashes], threshold: float) -> list[list[int]]:
    """Groups of the pairs that overlap enough; a pair already in one group is not looked at again."""
    leader: dict[int, int] = {}

    def head(place: int) -> int:
        while leader.setdefault(place, place) != place:
            leader[place] = leader[leader[place]]
            place = leader[place]
        return place

    for one, other in pairs.tolist():
        low, high = sorted((head(one), head(other)))
        if low != high and _overlap(runs[one], runs[other]) >= threshold:
            leader[high] = low
    groups: dict[int, list[int]] = {}
    for place in sorted(leader):
        groups.setdefault(head(place), []).append(place)
    return [group for group in groups.values() if len(group) > 1]


def _overlap(one: Hashes, other: Hashes) -> float:
    if min(len(one), len(other)) < 1:
        return 0.0
    shared = len(set(one.tolist()).intersection(other.tolist()))
    return shared / (len(one) + len(other) - shared)


def _chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for text in texts:
        chunk.append(text)
        size += len(text)
        if size >= _CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


_ORDER = {"error": 0, "warning": 1, "info": 2}


def validate_dataset(dataset: Dataset, near_duplicates: float | None = 0.8) -> list[Finding]:
    """What is wrong, odd or worth knowing: errors first, then warnings, then notes.

    `near_duplicates` is the overlap above which two documents count as nearly the same; None
    leaves that search out.

    >>> dataset = Dataset.of({"d1": "A balance.", "d2": ""}, {"q1": "weighing"}, {"q1": ["d1", "d7"]})
    >>> for finding in validate_dataset(dataset):
    ...     print(finding.severity, finding.kind, finding.items)
    error unknown-document (('q1', 'd7'),)
    warning empty-document (('d2',),)
    info unjudged-document (('d2',),)
    """
    found = [
        *dataset.findings,
        *_query_findings(dataset),
        *_judgment_findings(dataset),
        *_document_findings(dataset.corpus, dataset.qrels),
    ]
    if near_duplicates is not None:
        found += _repeats(dataset.corpus, near_duplicates)
    return sorted(found, key=lambda finding: _ORDER[finding.severity])


def _query_findings(dataset: Dataset) -> Iterator[Finding]:
    queries, qrels = dataset.queries, dataset.qrels
    judged = set(qrels.queries)
    bare = [query for query in queries if query not in judged]
    if bare:
        yield Finding.of(
            "warning",
            "unjudged-query",
            f"{counted(len(bare), 'query', 'queries')} without judgments:",
            _singles(bare),
            len(bare),
            "They count in no measure. Judge them, or read the dataset with unjudged='drop' or 'unanswerable'.",
        )
    blank = [query for query, text in queries.items() if not text.strip()]
    if blank:
        yield Finding.of(
            "error",
            "empty-query",
            f"{counted(len(blank), 'query', 'queries')} without text:",
            _singles(blank),
            len(blank),
            "Fill them in, or take them out.",
        )
    relevant = np.bincount(qrels.doc_query[qrels.grades > 0], minlength=len(qrels.queries))
    without = [query for query, count in zip(qrels.queries, relevant.tolist(), strict=True) if not count]
    if without:
        yield Finding.of(
            "info",
            "no-relevant",
            f"{counted(len(without), 'query', 'queries')} with no relevant document:",
            _singles(without),
            len(without),
            "Fine where they are meant to be unanswerable; the policy no_relevant says how they count.",
        )


def _judgment_findings(dataset: Dataset) -> Iterator[Finding]:
    qrels, judged = dataset.qrels, dataset.qrels.judged
    strange = [query for query in judged.query_ids if query not in dataset.queries]
    if strange:
        yield Finding.of(
            "error",
            "unknown-query",
            f"{counted(len(strange), 'judged query', 'judged queries')} not among the queries:",
            _singles(strange),
            len(strange),
            "Retrievers are never asked them, and they count as missing. Add the queries, or take their judgments out.",
        )
    known = {doc: doc in dataset.corpus for doc in dict.fromkeys(judged.doc_ids)}
    places = [place for place, doc in enumerate(judged.doc_ids) if not known[doc]]
    if places:
        relevant = int(np.sum(qrels.grades[places] > 0))
        pairs = [(judged.query_ids[qrels.doc_query[place]], judged.doc_ids[place]) for place in places]
        yield Finding.of(
            "error" if relevant else "warning",
            "unknown-document",
            f"{counted(len(places), 'judgment')} of documents that are not in the corpus, {relevant:,} of them relevant:",
            pairs,
            len(places),
            "No retriever can find them. Add the documents, or take the judgments out.",
        )
    targets = qrels.targets
    misleading = set(targets.doc[targets.grade < 0].tolist())
    both = [place for place in np.unique(targets.doc[targets.grade > 0]).tolist() if place in misleading]
    if both:
        yield relevant_distractors([(judged.query_ids[qrels.doc_query[n]], judged.doc_ids[n]) for n in both])


def _document_findings(corpus: Corpus, qrels: Qrels) -> Iterator[Finding]:
    blank = [doc for doc, text in corpus.texts.items() if not text or text.isspace()]
    if blank:
        yield Finding.of(
            "warning",
            "empty-document",
            f"{counted(len(blank), 'document')} without text (a title is not counted):",
            _singles(blank),
            len(blank),
            "Fill them in, or take them out.",
        )
    judged = set(qrels.judged.doc_ids)
    never = [doc for doc in corpus if doc not in judged]
    if never:
        share = len(never) / len(corpus)
        yield Finding.of(
            "info",
            "unjudged-document",
            f"{counted(len(never), 'document')} never judged ({share:.0%} of the corpus):",
            _singles(never),
            len(never),
        )
    if corpus.links is not None:
        lost = [(doc, link) for doc, links in corpus.links.items() for link in links if link not in corpus]
        if lost:
            yield Finding.of(
                "warning",
                "unknown-link",
                f"{counted(len(lost), 'link')} to documents that are not in the corpus:",
                lost,
                len(lost),
                "Graph retrievers pass them over. Mend or remove them.",
            )


def _repeats(corpus: Corpus, threshold: float) -> Iterator[Finding]:
    """Groups of near-duplicates: those that no `group` declares, and those that one does."""
    groups = near_duplicates(corpus, threshold)
    declared = [group for group in groups if _one_group(corpus, group)]
    silent = [group for group in groups if not _one_group(corpus, group)]
    if silent:
        yield Finding.of(
            "warning",
            "near-duplicates",
            f"{counted(len(silent), 'group')} of near-duplicate documents ({sum(map(len, silent)):,} documents):",
            silent,
            len(silent),
            "Finding one is as good as finding another: judge them alike, under one target, or keep one of each.",
        )
    if declared:
        yield Finding.of(
            "info",
            "declared-duplicates",
            f"{counted(len(declared), 'group')} of near-duplicate documents that name one group:",
            declared,
            len(declared),
        )


def _one_group(corpus: Corpus, documents: Iterable[str]) -> bool:
    named = {corpus.groups.get(doc) for doc in documents}
    return len(named) == 1 and None not in named


def _singles(ids: Iterable[str]) -> Iterator[tuple[str, ...]]:
    return ((item,) for item in ids)
