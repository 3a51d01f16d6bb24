"""questions(): questions that a model drafts from passages of a corpus, each checked, with its evidence as spans.

Passages are windows of whole sentences, drawn at random with known probabilities. A lexical and a dense retriever find
others to compare them with. What they find rejects no draft: to keep the questions that a retriever answers makes that
retriever win.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.checks import whole_number
from steelyard.chunking import Sentence
from steelyard.datasets import Corpus
from steelyard.errors import InputError, did_you_mean
from steelyard.io.datasets import read_corpus, read_queries
from steelyard.judging import draft_checks as checks
from steelyard.judging import prompts
from steelyard.judging.client import Answer, Client, Endpoint, Question, Reader, RequestPlan
from steelyard.judging.drafts import DEPTH, Draft, Drafts, Lists
from steelyard.lazy import looked_up
from steelyard.notes import Note, note, sentence

LONGEST_ANSWER = 600  # Tokens that the answer with a draft may have.
MOST_DRAFTS = 1_000_000
EXAMPLES = 8  # Real questions that a prompt shows, of those in `like`.
NEIGHBOURS = 30  # Passages drawn for the second passage of a comparison; the one with most words in common is taken.
WINDOW = 1000  # Characters from which a window is complete; it ends with the sentence that reaches them.
LONGEST = 6000  # Characters of a window at most; a text without sentence ends has longer ones.
FEWEST_WORDS = 25
MOST_MISSES = 1000  # Draws in a row without a new passage that has content, after which the drawing stops.
MOST_DOCUMENTS = 10_000
"""Documents of a corpus up to which it is searched: the dense retriever takes about half a minute for as many."""
RETRIEVERS = {"bm25": "steelyard.retrievers.bm25:BM25", "dense": "steelyard.retrievers.dense:Dense"}
DEFAULT_KINDS = {"fact": 0.75, "procedure": 0.25}

_LEGAL = re.compile(
    r"all rights reserved|permission is hereby granted|without warrant(?:y|ies) of any kind|licensed under the"
    r"|terms and conditions of this licen[sc]e|redistribution and use in source",
    re.IGNORECASE,
)

Progress = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Passage:
    """A window of whole sentences, `corpus.texts[doc_id][start:end]`, and the probability of each draw to give it."""

    doc_id: str
    start: int
    end: int
    text: str
    probability: float


class Sampler:
    """Draws passages: a stratum, a document of it and a window of that, each uniformly at random.

    Long documents are therefore as likely as short ones. `by` names a field of the documents' metadata; its values are
    the strata, each as likely as the others; without it all documents are one stratum. Documents without text are left
    out. The probability of a window is 1 / (strata x documents of the stratum x windows of the document).
    """

    def __init__(self, corpus: Corpus, by: str | None = None, size: int = WINDOW) -> None:
        self.texts: Mapping[str, str] = corpus.texts
        strata: dict[str, list[str]] = {}
        for doc_id, text in self.texts.items():
            if text.strip():
                value = "" if by is None else corpus.metadata[doc_id].get(by)
                strata.setdefault("not given" if value is None else str(value), []).append(doc_id)
        if not strata:
            raise InputError("the corpus has no document with a text; expected at least one.")
        if by is not None and set(strata) == {"not given"}:
            names = sorted({name for doc_id in self.texts for name in corpus.metadata[doc_id]})
            raise InputError(
                f"no document has a field {by!r}; the fields are {', '.join(names) or 'none'}.{did_you_mean(by, names)}"
            )
        self.strata = list(strata.values())
        self.windows = lru_cache(maxsize=4096)(lambda doc_id: windows(self.texts[doc_id], size))

    def draw(self, generator: np.random.Generator) -> Passage:
        """One passage, whatever its content."""
        stratum = self.strata[int(generator.integers(len(self.strata)))]
        doc_id = stratum[int(generator.integers(len(stratum)))]
        windows = self.windows(doc_id)
        start, end = windows[int(generator.integers(len(windows)))]
        share = 1.0 / (len(self.strata) * len(stratum) * len(windows))
        return Passage(doc_id, start, end, self.texts[doc_id][start:end], share)

    def passages(self, n: int, generator: np.random.Generator) -> tuple[list[Passage], Counter[str]]:
        """n different passages with content, fewer if the corpus does not have as many; why others were passed over."""
        kept: dict[tuple[str, int], Passage] = {}
        passed_over: Counter[str] = Counter()
        misses = 0
        while len(kept) < n and misses < MOST_MISSES:
            passage = self.draw(generator)
            place = passage.doc_id, passage.start
            if reason := "drawn before" if place in kept else without_content(passage.text):
                passed_over[reason] += 1
                misses += 1
            else:
                kept[place], misses = passage, 0
        return list(kept.values()), passed_over


def windows(text: str, size: int = WINDOW) -> list[tuple[int, int]]:
    """The windows of a text: from each sentence to the one that completes `size` characters, or to the end of the text.

    Of the windows that reach the end only the longest counts, so that no window is short unless the text is.

    >>> text = "One is here. Two is here. Three is here."
    >>> [text[start:end] for start, end in windows(text, 20)]
    ['One is here. Two is here.', 'Two is here. Three is here.']
    """
    sentences = Sentence(tokens=1).spans(text)
    ends = [end for _, end in sentences]
    spans = []
    for start, _ in sentences:
        last = bisect_left(ends, start + size)
        spans.append((start, ends[min(last, len(ends) - 1)]))
        if last >= len(ends) - 1:
            break
    return spans


def without_content(text: str) -> str:
    """Why no question can be asked of a passage: the first rule that it breaks; empty if it breaks none.

    >>> without_content("Home | Products | Contact"), without_content("Copyright 2020. All rights reserved. " * 9)
    ('fewer than 25 words', 'licence')
    """
    words = text.split()
    if len(words) < FEWEST_WORDS:
        return f"fewer than {FEWEST_WORDS} words"
    if len(text) > LONGEST:
        return "no sentence end"
    if _LEGAL.search(text):
        return "licence"
    letters = sum(character.isalpha() for character in text)
    if letters < 0.6 * sum(not character.isspace() for character in text):
        return "numbers and symbols"
    lines = [line for line in text.splitlines() if line.strip()]
    short = sum(len(line.split()) < 5 and not line.rstrip().endswith((".", "!", "?", "。")) for line in lines)
    if len(lines) >= 5 and short > 0.6 * len(lines):
        return "navigation or a list of names"
    return ""


class Drafting:
    """The drafting of questions: passages drawn, requests to send, and checks of the answers. `plan`, then `run`."""

    def __init__(
        self,
        corpus: Any,
        client: Client,
        n: int = 200,
        kinds: Mapping[str, float] | None = None,
        like: Any = None,
        critic: str | None = None,
        by: str | None = None,
        seed: int = 0,
    ) -> None:
        whole_number("n", n, 1, high=MOST_DRAFTS)
        whole_number("seed", seed)
        self.corpus = read_corpus(corpus)[0]
        self.client, self.critic = client, critic
        self.like = () if like is None else tuple(read_queries(like)[0].values())
        generator = np.random.default_rng(seed)
        examples = [self.like[i] for i in generator.permutation(len(self.like))[:EXAMPLES]]
        shares = dict(kinds or DEFAULT_KINDS)
        kinds_asked = {name: prompts.prompt_of_kind(name, examples) for name in shares}
        sampler = Sampler(self.corpus, by)
        drawn, self.passed_over = sampler.passages(n, generator)
        self.notes = [note("fewer-passages", wanted=n, drawn=len(drawn))] * (len(drawn) < n)
        self.tasks: list[tuple[prompts.Prompt, tuple[Passage, ...]]] = []
        for passage, name in zip(drawn, _allotted(shares, len(drawn), generator), strict=True):
            second = (_neighbour(passage, sampler, generator),) if name == "two-passage" else ()
            self.tasks.append((kinds_asked[name], (passage, *second)))

    def questions(self) -> list[Question]:
        """The requests for drafts, one per passage (or two passages)."""
        requests = []
        for number, (prompt, passages) in enumerate(self.tasks, start=1):
            first, second = passages[0].text, passages[-1].text
            places = {"{passage}": first, "{passage_2}": second, "{mark}": prompts.digest(first, second)[:12]}
            text = prompts.filled(prompt.text, places)
            requests.append(self._question(f"q{number}", passages[0].doc_id, prompt, text, prompts.read_draft))
        return requests

    def _question(self, id: str, doc_id: str, prompt: prompts.Prompt, text: str, read: Reader) -> Question:
        endpoint = self.client.endpoint
        return Question(id, doc_id, 1, prompt.name, text, prompt.system, endpoint.model, endpoint.url, read)

    def _check(self, id: str, doc_id: str, prompt: prompts.Prompt, draft: Draft, shown: str) -> Question:
        """The request that a check of a draft by the model takes."""
        return self._question(id, doc_id, prompt, prompt.fill(str(draft.question), shown), prompt.graded)

    def plan(self) -> RequestPlan:
        """What is left to ask for the drafts; `second_requests` follow."""
        return self.client.plan(self.questions())

    @property
    def second_requests(self) -> int:
        """Requests at most that check drafts: a critic sees each and compares it with the passages that two retrievers
        find; without a critic, one for each unanswerable question."""
        checked = 3 * (self.critic is not None)
        return sum(1 if prompt.name == "unanswerable" else checked for prompt, _ in self.tasks)

    def run(self, progress: Progress | None = None, searching: Callable[[str, int, int], None] | None = None) -> Drafts:
        """Ask for the drafts, check them, and return them in the order in which their passages were drawn.

        searching: as `step` of `search`.
        """
        answers, stopped = self._asked(self.questions(), progress)
        drafts: list[Draft] = []
        earlier: dict[str, frozenset[str]] = {}
        for number, (prompt, passages) in enumerate(self.tasks, start=1):
            answer = answers.get(f"q{number}")
            if answer is None:
                continue
            draft = self._checked(f"q{number}", prompt.name, passages, answer)
            if draft.status == "accepted":
                again = checks.repeats(str(draft.question), earlier.values())
                if again is None:
                    earlier[draft.id] = frozenset(checks.content_words(str(draft.question)))
                else:
                    draft = draft.rejected("near-repeat", f"of {list(earlier)[again]}")
            drafts.append(draft)
        if stopped is None:
            drafts, stopped = self._criticised(drafts, progress)
        lists = search(self.corpus, drafts, searching)
        if stopped is None and self.critic is not None:
            drafts, stopped = self._compared(drafts, lists, progress)
        notes: list[Note] = [*self.notes, *self.client.notes(), note("only-source-relevant")]
        if len(self.corpus) > MOST_DOCUMENTS:
            notes.append(note("corpus-not-searched", documents=len(self.corpus), most=MOST_DOCUMENTS))
        notes += [note("drafting-stopped", reason=stopped)] if stopped else []
        remarks = tuple(map(sentence, notes))
        return Drafts(tuple(drafts), self.corpus, dict(self.passed_over), self.like, remarks, lists)

    def _asked(self, questions: Sequence[Question], progress: Progress | None) -> tuple[dict[str, Answer], str | None]:
        answers: dict[str, Answer] = {}

        def use(question: Question, answer: Answer) -> None:
            answers[question.query_id] = answer
            if progress is not None:
                progress(len(answers), len(questions), self.client.tokens)

        return answers, self.client.run(questions, use)

    def _checked(self, id: str, kind: str, passages: Sequence[Passage], answer: Answer) -> Draft:
        """The draft of an answer after the checks that need no model."""
        places = tuple(
            {"doc_id": p.doc_id, "start": p.start, "end": p.end, "probability": p.probability} for p in passages
        )
        draft = Draft(id, kind, None, (), places)
        if answer.grade is None:
            return draft.rejected("malformed answer", answer.reason)
        given = next(values for values in prompts.stated_objects(answer.text) if "question" in values)
        question = given["question"]
        if not isinstance(question, str) or not question.strip():
            return draft.rejected("no question")
        draft = replace(draft, question=" ".join(question.split()))
        if kind != "unanswerable":
            quotes = [given.get("quote"), given.get("quote_2")][: len(passages)]
            spans = [_span(passage, quote) for passage, quote in zip(passages, quotes, strict=True)]
            if None in spans:
                wrong = quotes[spans.index(None)]
                return draft.rejected("span missing", str(wrong)[:300] if wrong else "no quote")
            draft = replace(draft, spans=tuple(span for span in spans if span is not None))
        asked, source = str(draft.question), " ".join(passage.text for passage in passages)
        draft = replace(draft, more={"overlap": round(checks.overlap(asked, source), 4)})
        for reason, detail in (
            ("not standalone", checks.not_standalone(asked)),
            ("too general", checks.too_general(asked)),
            ("copies its source", checks.copies_source(asked, source)),
            ("answer in question", checks.answer_in_question(asked, [span["quote"] for span in draft.spans])),
        ):
            if detail:
                return draft.rejected(reason, detail)
        return draft

    def _criticised(self, drafts: list[Draft], progress: Progress | None) -> tuple[list[Draft], str | None]:
        """The drafts after a second request: does the passage answer an unanswerable question, the span the others?"""
        if self.critic is not None:
            self.client.endpoint = replace(self.client.endpoint, model=self.critic)
        asked = []
        for draft in drafts:
            if draft.status == "accepted" and (self.critic is not None or not draft.spans):
                doc, start, end = (draft.passages[0][name] for name in ("doc_id", "start", "end"))
                shown = "\n\n".join(span["quote"] for span in draft.spans) or self.corpus.texts[doc][start:end]
                asked.append(self._check(draft.id, doc, prompts.CRITIC_PROMPT, draft, shown))
        answers, stopped = self._asked(asked, progress)
        reviewed = []
        for draft in drafts:
            answer = answers.get(draft.id)
            # A passage should answer its question, and not answer an unanswerable one.
            if answer is not None and answer.grade is not None and bool(answer.grade) != bool(draft.spans):
                draft = draft.rejected("critic" if draft.spans else "answered by its passage", answer.reason)
            reviewed.append(draft)
        return reviewed, stopped

    def _compared(self, drafts: list[Draft], lists: Lists, progress: Progress | None) -> tuple[list[Draft], str | None]:
        """The drafts with the passages elsewhere that the critic prefers to their spans; none is rejected for it."""
        asked, places = [], {}
        for draft in drafts:
            for place in others(draft, self.corpus, lists) if draft.status == "accepted" and draft.spans else ():
                one = "\n\n".join(span["quote"] for span in draft.spans)
                other = self.corpus.texts[place["doc_id"]][place["start"] : place["end"]]
                id, shown = f"{draft.id} and {place['doc_id']}", f"Passage A:\n{one}\n\nPassage B:\n{other}"
                places[id] = draft.id, place
                asked.append(self._check(id, place["doc_id"], prompts.BETTER_PROMPT, draft, shown))
        answers, stopped = self._asked(asked, progress)
        more: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for id, (draft_id, place) in places.items():
            answer = answers.get(id)
            if answer is not None and answer.grade:
                more.setdefault(draft_id, {"better": []})["better"].append({**place, "reason": answer.reason})
        return [replace(draft, more={**draft.more, **more.get(draft.id, {})}) for draft in drafts], stopped


def _span(passage: Passage, quote: Any) -> dict[str, Any] | None:
    place = checks.find_span(passage.text, quote) if isinstance(quote, str) else None
    if place is None:
        return None
    start, end = (passage.start + offset for offset in place)
    return {"quote": passage.text[slice(*place)], "doc_id": passage.doc_id, "start": start, "end": end}


def _allotted(shares: Mapping[str, float], n: int, generator: np.random.Generator) -> list[str]:
    """A kind for each of n drafts, in random order: as many of each as its share asks for."""
    total = sum(shares.values())
    if not shares or not 0 < total < float("inf") or min(shares.values()) < 0:
        raise InputError(f"kinds is {dict(shares)}; expected a share above 0 for each kind, as in fact=0.75.")
    exact = np.array([share / total * n for share in shares.values()])
    counts = np.floor(exact).astype(int)
    counts[np.argsort(counts - exact, kind="stable")[: n - counts.sum()]] += 1
    names = list(shares)
    return [names[place] for place in generator.permutation(np.repeat(np.arange(len(counts)), counts))]


def _neighbour(passage: Passage, sampler: Sampler, generator: np.random.Generator) -> Passage:
    """Of some passages of other documents (if there are any), the one with most content words in common."""
    drawn = [sampler.draw(generator) for _ in range(NEIGHBOURS)]
    others = [candidate for candidate in drawn if candidate.doc_id != passage.doc_id] or drawn
    mine = set(checks.content_words(passage.text))
    return max(others, key=lambda candidate: len(mine & set(checks.content_words(candidate.text))))


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
        rankings = looked_up(place)().index(corpus).retrieve(list(asked.values()), k=DEPTH)
        lists[name] = dict(zip(asked, rankings, strict=True))
    return lists


def others(draft: Draft, corpus: Corpus, lists: Lists) -> list[dict[str, Any]]:
    """For each retriever its first document that is not a source of the draft: the passage with most of its words."""
    sources = {passage["doc_id"] for passage in draft.passages}
    passages: dict[str, dict[str, Any]] = {}
    for name, ranked in lists.items():
        doc = next((doc for doc, _ in ranked.get(draft.id, ()) if doc not in sources), None)
        if doc is None:
            continue
        if doc not in passages:
            text, asked = corpus.texts[doc], set(checks.content_words(str(draft.question)))
            shared = {place: len(asked & set(checks.content_words(text[slice(*place)]))) for place in windows(text)}
            start, end = max(shared, key=lambda place: shared[place], default=(0, len(text)))
            passages[doc] = {"doc_id": doc, "start": start, "end": end, "found_by": []}
        passages[doc]["found_by"].append(name)
    return list(passages.values())


def questions(
    corpus: Any,
    *,
    endpoint: str,
    model: str,
    n: int = 200,
    kinds: Mapping[str, float] | None = None,
    like: Any = None,
    critic: str | None = None,
    by: str | None = None,
    seed: int = 0,
    cache: str | Path = "questions.sqlite",
    api_key_env: str = "OPENAI_API_KEY",
    max_requests: int | None = None,
    max_tokens: int | None = None,
    concurrency: int = 4,
    retry: bool = False,
    timeout: float = 120.0,
    progress: Progress | None = None,
) -> Drafts:
    """Questions that a language model drafts from passages of a corpus, checked, with spans as evidence.

    corpus: a folder of texts, corpus.jsonl, a table, or a mapping of id to text.
    endpoint: the address of a chat-completions endpoint, for example http://127.0.0.1:8000/v1.
    n: drafts to ask for. Rejected ones count.
    kinds: the share of each kind: fact, procedure, two-passage, unanswerable, or the path of a prompt file with
    {passage}. Default: fact 0.75, procedure 0.25.
    like: real questions (a file or a list) whose length, form and vocabulary the drafts should follow.
    critic: a second model at the endpoint; a question that it cannot answer from its span is rejected. It also compares
    the span with what BM25 and a dense retriever find elsewhere: `better` of a draft has the passages that it prefers.
    by: a field of the documents; passages are drawn equally from each of its values.
    cache: an SQLite file with every answer; nothing that was answered is asked again.
    api_key_env: the environment variable with the key. The key is sent to the endpoint and written nowhere.
    max_requests, max_tokens: stop before more are used. Retries count as requests.
    retry: ask again for answers that were malformed.
    """
    model_client = client(endpoint, model, cache, api_key_env, timeout, max_requests, max_tokens, concurrency, retry)
    try:
        return Drafting(corpus, model_client, n, kinds, like, critic, by, seed).run(progress)
    finally:
        model_client.cache.close()


def client(endpoint: str, model: str, cache: str | Path, api_key_env: str, timeout: float, *limits: Any) -> Client:
    """The client that asks for drafts; its limits are those of `Client`, from `max_requests` to `retry`."""
    server = Endpoint(endpoint, model, os.environ.get(api_key_env, ""), timeout)
    return Client(server, cache, *limits, longest=LONGEST_ANSWER)
