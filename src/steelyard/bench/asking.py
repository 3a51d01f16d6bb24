"""Asking every retriever every question, one at a time, taking turns, so that noise falls on all alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from steelyard.bench.answers import Answers, AnswerStore
from steelyard.bench.memory import PeakMemory
from steelyard.bench.specs import Spec
from steelyard.errors import SteelyardError
from steelyard.retrievers.base import Retriever

Watch = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


@dataclass
class Contestant:
    """A retriever that takes part: its answers so far, and where they are kept."""

    spec: Spec
    retriever: Retriever
    answers: Answers
    store: AnswerStore
    broken: str | None = None

    def waiting(self, queries: Sequence[str]) -> list[str]:
        """The queries it has not been asked."""
        return [query for query in queries if not self.answers.done(query)]


def index_all(contestants: Sequence[Contestant], corpus: Mapping[str, str], watch: Watch) -> None:
    """Index every retriever, one after the other; note time, size and peak memory."""
    for number, contestant in enumerate(contestants):
        watch(f"indexing {contestant.spec.label}", number, len(contestants))
        with PeakMemory() as memory:
            start = perf_counter()
            contestant.broken = _indexed(contestant.retriever, corpus)
            taken = perf_counter() - start
        if contestant.broken is not None:
            continue
        cost = {
            "index_seconds": taken,
            "index_bytes": contestant.retriever.size_in_bytes(),
            "peak_bytes": memory.bytes,
        }
        contestant.answers.cost.update(cost)
        contestant.store.add({"cost": cost})


def ask_all(
    contestants: Sequence[Contestant], queries: Mapping[str, str], depth: int, warmup: int, watch: Watch
) -> None:
    """Ask every waiting query of every retriever in turn; who goes first changes with every query."""
    texts = list(queries.values())
    for contestant in contestants:
        if contestant.broken is not None:
            contestant.answers.errors |= dict.fromkeys(contestant.waiting(list(queries)), contestant.broken)
    contestants = [contestant for contestant in contestants if contestant.broken is None]
    for contestant in contestants:
        for text in texts[:warmup]:
            _ask(contestant.retriever, text, depth)
    waiting = {id(contestant): set(contestant.waiting(list(queries))) for contestant in contestants}
    try:
        for number, (query, text) in enumerate(queries.items()):
            watch("asking", number, len(queries))
            turn = number % len(contestants)
            for contestant in [*contestants[turn:], *contestants[:turn]]:
                if query in waiting[id(contestant)]:
                    _note(contestant, query, text, depth)
    finally:
        for contestant in contestants:
            contestant.store.close()


def throughput(
    contestants: Sequence[Contestant], queries: Mapping[str, str], depth: int, watch: Watch
) -> None:
    """Queries a second when all are asked at once."""
    for number, contestant in enumerate(c for c in contestants if c.broken is None):
        watch(f"asking {contestant.spec.label} all at once", number, len(contestants))
        start = perf_counter()
        try:
            contestant.retriever.retrieve(list(queries.values()), depth)
        except Exception:
            continue
        cost = {"queries_per_second": len(queries) / max(perf_counter() - start, 1e-9)}
        contestant.answers.cost.update(cost)
        contestant.store.add({"cost": cost})
        contestant.store.close()


def _note(contestant: Contestant, query: str, text: str, depth: int) -> None:
    start = perf_counter()
    answer, error = _ask(contestant.retriever, text, depth)
    taken = perf_counter() - start
    if error is not None:
        contestant.answers.errors[query] = error
        contestant.store.add({"query": query, "error": error})
        return
    contestant.answers.errors.pop(query, None)
    contestant.answers.lists[query] = answer
    contestant.answers.seconds[query] = taken
    contestant.store.add({"query": query, "seconds": taken, "list": answer})


def _indexed(retriever: Retriever, corpus: Mapping[str, str]) -> str | None:
    """Index the corpus; what went wrong, if anything did."""
    try:
        retriever.index(corpus)
    except SteelyardError as error:
        return f"indexing failed: {error}"
    except Exception as error:
        return f"indexing failed: {type(error).__name__}: {error}"
    return None


def _ask(retriever: Retriever, text: str, depth: int) -> tuple[list[tuple[str, float | None]], str | None]:
    """One answer, or what went wrong: a retriever's failure is a result, not the end of the bench."""
    try:
        return list(retriever.retrieve([text], depth)[0]), None
    except SteelyardError as error:
        return [], str(error)
    except Exception as error:
        return [], f"{type(error).__name__}: {error}"
