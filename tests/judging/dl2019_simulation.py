"""dl2019 from the shared data, and simulated judging with its complete qrels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import combinations

import numpy as np

import steelyard as sy
from needs import SHARED

FOLDER = SHARED / "dl2019"
DISCOUNT = 1.0 / np.log2(np.arange(2, 12))


@cache
def qrels() -> sy.Qrels:
    return sy.Qrels.read(FOLDER / "qrels.txt")


@cache
def grades() -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for query, doc, grade in qrels().frame.select("query_id", "doc_id", "grade").iter_rows():
        found.setdefault(query, {})[doc] = grade
    return found


@cache
def runs() -> dict[str, sy.Run]:
    """The 37 runs, each as ranked ids of the judged queries."""
    found = {}
    for path in sorted((FOLDER / "runs").glob("*.run.gz")):
        lists: dict[str, list[str]] = {}
        for query, doc in sy.Run.read(path).frame.select("query_id", "doc_id").iter_rows():
            if query in grades():
                lists.setdefault(query, []).append(doc)
        name = path.name.removesuffix(".run.gz")
        found[name] = sy.Run(lists, name=name)
    return found


@cache
def lists() -> dict[str, dict[str, list[str]]]:
    return {name: dict(run.mapping or {}) for name, run in runs().items()}


def random_pairs(count: int, seed: int) -> list[tuple[str, str]]:
    every = list(combinations(sorted(runs()), 2))
    chosen = np.random.default_rng(seed).choice(len(every), count, replace=False)
    return [every[place] for place in chosen]


def ideal(found: Iterable[float]) -> float:
    best = sorted((grade for grade in found if grade > 0), reverse=True)[:10]
    return float(np.dot(best, DISCOUNT[: len(best)]))


def verdict(differences: np.ndarray) -> int:
    """1 or -1: significantly better or worse by the paired t test at 0.05; 0: not significant."""
    if not differences.any():
        return 0
    mean, n = differences.mean(), len(differences)
    return int(np.sign(mean)) if abs(mean) > critical(n) * differences.std(ddof=1) / np.sqrt(n) else 0


@cache
def critical(n: int) -> float:
    """The value that the t statistic of n differences has to exceed."""
    from scipy.stats import t

    return float(t.ppf(0.975, n - 1))


class SimulatedJudging:
    """Two runs, judged document by document; documents that are not judged count as not relevant."""

    def __init__(self, a: str, b: str) -> None:
        self.queries = {query: place for place, query in enumerate(grades())}
        self.change: dict[tuple[str, str], float] = {}
        for run, sign in ((a, 1.0), (b, -1.0)):
            for query, listed in lists()[run].items():
                for rank, doc in enumerate(listed[:10]):
                    key = (query, doc)
                    self.change[key] = self.change.get(key, 0.0) + sign * DISCOUNT[rank]

    def final(self) -> int:
        """The verdict by the complete qrels."""
        gained = np.zeros(len(self.queries))
        for (query, doc), change in self.change.items():
            gained[self.queries[query]] += change * max(grades()[query].get(doc, 0), 0)
        return verdict(gained / np.array([ideal(of.values()) for of in grades().values()]))

    def needed(self, order: Sequence[tuple[str, str]], step: int = 10) -> int:
        """Judgments until the verdict is the final one and stays so; all of them where it never is."""
        gained, best = np.zeros(len(self.queries)), np.zeros(len(self.queries))
        found: dict[str, list[float]] = {query: [] for query in self.queries}
        verdicts = [0]
        for start in range(0, len(order), step):
            for query, doc in order[start : start + step]:
                grade = max(grades()[query].get(doc, 0), 0)
                found[query].append(grade)
                gained[self.queries[query]] += self.change[query, doc] * grade
                best[self.queries[query]] = ideal(found[query])
            verdicts.append(verdict(np.divide(gained, best, out=np.zeros_like(gained), where=best > 0)))
        final = self.final()
        if verdicts[-1] != final:
            return len(order)
        steps = next((k for k in range(len(verdicts), 0, -1) if verdicts[k - 1] != final), 0)
        return min(steps * step, len(order))


def relevant_found(order: Sequence[tuple[str, str]], rel: float = 1) -> np.ndarray:
    """How many of the first n documents are relevant, for every n."""
    return np.cumsum([grades()[query].get(doc, 0) >= rel for query, doc in order])


def judged_so_far(order: Iterable[tuple[str, str]]) -> Mapping[str, Mapping[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for query, doc in order:
        found.setdefault(query, {})[doc] = grades()[query].get(doc, 0)
    return found
