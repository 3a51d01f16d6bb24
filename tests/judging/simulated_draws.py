"""Many draws of a sampled pool's design, judged with complete grades, for bias and coverage of the estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.judging.candidates import Design
from steelyard.statistics.sampled import Estimator, Jackknifed, SampledPool, jackknife

CHUNK = 20


@dataclass(frozen=True)
class Simulation:
    """One measure of one run: the true mean, and of every draw the estimate and its standard error."""

    truth: float
    uncorrected: np.ndarray
    corrected: np.ndarray
    error: np.ndarray

    @property
    def bias(self) -> float:
        return float(self.corrected.mean() - self.truth)

    @property
    def simulation_error(self) -> float:
        return float(self.corrected.std(ddof=1) / np.sqrt(len(self.corrected)))

    @property
    def coverage(self) -> float:
        return float(np.mean(np.abs(self.corrected - self.truth) <= 1.959964 * self.error))


def simulate(
    design: Design,
    grades: Mapping[str, Mapping[str, float]],
    run: Mapping[str, Sequence[str]],
    estimator: Estimator,
    draws: int,
    made: Callable[[SampledPool, Estimator], Jackknifed] = jackknife,
    seed: int = 0,
) -> Simulation:
    """Draw the design's numbers of documents anew `draws` times and estimate each time."""
    rng = np.random.default_rng(seed)
    truth, parts = [], []
    for query, strata in design.strata.items():
        docs = [(number, doc) for number, listed in enumerate(strata) for doc in listed]
        rank = {doc: place for place, doc in enumerate(run.get(query, ()), start=1)}
        ranks = [rank.get(doc, 0) for _, doc in docs]
        stratum = np.array([number for number, _ in docs])
        grade = np.array([max(grades[query].get(doc, 0), 0) for _, doc in docs], dtype=float)
        truth.append(float(estimator(SampledPool.of(ranks, stratum, grade))))
        sampled = drawn_grades(grade, stratum, design.drawn[query], draws, rng)
        results = [
            made(SampledPool.of(ranks, stratum, sampled[start : start + CHUNK]), estimator)
            for start in range(0, draws, CHUNK)
        ]
        parts.append(
            [np.concatenate([getattr(r, name) for r in results]) for name in ("estimate", "corrected", "variance")]
        )
    uncorrected, corrected, variance = np.array(parts).transpose(1, 0, 2)
    error = np.sqrt(variance.sum(axis=0)) / len(truth)
    return Simulation(float(np.mean(truth)), uncorrected.mean(axis=0), corrected.mean(axis=0), error)


def drawn_grades(
    grade: np.ndarray, stratum: np.ndarray, counts: Sequence[int], draws: int, rng: np.random.Generator
) -> np.ndarray:
    """The grades of every draw, NaN where a document was not drawn; shape (draws, documents)."""
    sampled = np.full((draws, len(grade)), np.nan)
    for number, count in enumerate(counts):
        places = np.flatnonzero(stratum == number)
        chosen = places[np.argsort(rng.random((draws, len(places))), axis=1)[:, :count]]
        sampled[np.arange(draws)[:, None], chosen] = grade[chosen]
    return sampled
