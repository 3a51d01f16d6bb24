"""Asking every retriever every question, one at a time, taking turns, so that noise falls on all alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from steelyard.bench.answers import Answers, AnswerStore
from steelyard.bench.memory import PeakMemory
from steelyard.bench.specs import Spec
from steelyard.errors import SteelyardError
from steelyard.retrievers.adapters.targets import list_hint
from steelyard.retrievers.base import Retriever

Watch = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


@dataclass
class Contestant:
    """A retriever that takes part: its answers so far, and where they are kept."""

    spec: Spec
    retriever: Retriever
    corpus: Mapping[str, str]
    answers: Answers
    store: AnswerStore
    broken: str | None = None

    def waiting(self, queries: Sequence[str]) -> list[str]:
        """The queries it has not been asked."""
        return [query for query in queries if not self.answers.done(query)]


def index_all(contestants: Sequence[Contestant], watch: Watch) -> None:
    """Index every retriever, one after the other; note time, size and peak memory."""
    for number, contestant in enumerate(contestants):
        watch(f"indexing {contestant.spec.label}", number, len(contestants))
        with PeakMemory() as memory:
            start = perf_counter()
            contestant.broken = _indexed(contestant)
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
        watch(f"asking {contestant.spec.label}", 0, len(queries))
        for text in texts[:warmup]:
            _ask(contestant, text, depth)
    waiting = {id(contestant): set(contestant.waiting(list(queries))) for contestant in contestants}
    try:
        for number, (query, text) in enumerate(queries.items()):
            turn = number % len(contestants)
            for contestant in [*contestants[turn:], *contestants[:turn]]:
                if query in waiting[id(contestant)]:
                    watch(f"asking {contestant.spec.label}", number, len(queries))
                    _note(contestant, query, text, depth)
    finally:
        for contestant in contestants:
            _look_for_ids(contestant)
            contestant.store.close()


def throughput(
    contestants: Sequence[Contestant], queries: Mapping[str, str], depth: int, watch: Watch
) -> None:
    """Queries a second when all are asked at once; of a retriever that failed on some there is no saying."""
    for number, contestant in enumerate(c for c in contestants if not c.answers.errors):
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
    answer, error = _ask(contestant, text, depth)
    taken = perf_counter() - start
    if error is not None:
        contestant.answers.errors[query] = error
        contestant.store.add({"query": query, "error": error})
        return
    contestant.answers.errors.pop(query, None)
    contestant.answers.lists[query] = answer
    contestant.answers.seconds[query] = taken
    contestant.store.add({"query": query, "seconds": taken, "list": answer})


def _look_for_ids(contestant: Contestant) -> None:
    """Where documents that came are not in the corpus, note by what other `id` they would be."""
    look = getattr(contestant.retriever, "ids_elsewhere", None)
    listed = contestant.answers.lists.values()
    if look is None or all(doc in contestant.corpus for answer in listed for doc, _ in answer):
        return
    contestant.answers.id_hint = look(contestant.corpus)
    contestant.store.add({"id_hint": contestant.answers.id_hint})


def _indexed(contestant: Contestant) -> str | None:
    """Index the corpus; what went wrong, if anything did."""
    try:
        contestant.retriever.index(contestant.corpus)
    except Exception as error:
        return f"indexing failed: {_told(error, contestant.spec)}"
    return None


def _ask(contestant: Contestant, text: str, depth: int) -> tuple[list[tuple[str, float | None]], str | None]:
    """One answer, or what went wrong: a retriever's failure is a result, not the end of the bench."""
    try:
        return list(contestant.retriever.retrieve([text], depth)[0]), None
    except Exception as error:
        return [], _told(error, contestant.spec)


def _told(error: Exception, spec: Spec) -> str:
    """What a retriever's error says; where a list among its `arguments` is the likely cause, that too."""
    said = str(error) if isinstance(error, SteelyardError) else f"{type(error).__name__}: {error}"
    hint = list_hint(error, spec.settings.get("arguments"))
    return f"{said.rstrip('.')}. {hint}" if hint else said
