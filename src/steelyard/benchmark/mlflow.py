"""A bench in MLflow: one run per bench and a nested run per retriever, with settings, means, costs, tags and files."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.benchmark.across import BenchAcross
from steelyard.benchmark.folder import ACROSS_FILE
from steelyard.benchmark.history import fingerprints_of, git_state
from steelyard.benchmark.result import BenchResult
from steelyard.benchmark.retrieval import COSTS, TIMES, CostRow
from steelyard.comparison.scores import label
from steelyard.errors import InputError, PackageError
from steelyard.masking import masked, masked_settings
from steelyard.retrievers.base import unused_name
from steelyard.version import __version__

LOCAL_STORE = "sqlite:///mlflow.db"
"""The default: a file in the working directory, and the files of its runs in `mlruns`. `mlflow ui` shows it."""

EXPERIMENT = "steelyard"  # The experiment, unless MLFLOW_EXPERIMENT_NAME names another.

_FILES = ("result.json", "leaderboard.md", "report.html", ACROSS_FILE, "across.md")
_LONGEST_VALUE, _LONGEST_NAME = 500, 250  # Lengths of values and names that every version of MLflow takes.


@dataclass(frozen=True)
class Store:
    """An MLflow store: its client, and the experiment that runs are added to."""

    client: Any
    experiment: str
    uri: str


def open_store(uri: str = LOCAL_STORE) -> Store:
    """Open a store and its experiment, with any error before the bench; an MLflow loaded here has no telemetry."""
    if "mlflow" not in sys.modules:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    try:
        from mlflow.tracking import MlflowClient
    except ModuleNotFoundError:
        raise PackageError("--mlflow needs the package mlflow: pip install 'steelyard[mlflow]'") from None
    with _reported(uri):
        client = MlflowClient(tracking_uri=uri)
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT
        experiment = client.get_experiment_by_name(name)
        number = experiment.experiment_id if experiment is not None else client.create_experiment(name)
    return Store(client, str(number), uri)


@contextmanager
def _reported(uri: str) -> Iterator[None]:
    """What MLflow refuses is an InputError that names the store; a missing part of it a PackageError."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except ModuleNotFoundError as error:
        raise PackageError(
            f"the MLflow store {masked(uri)} needs the package {error.name}: pip install 'steelyard[mlflow]'"
        ) from None
    except MlflowException as error:
        raise InputError(f"the MLflow store {masked(uri)} cannot be used: {masked(str(error))}") from None


def log_bench(store: Store, result: BenchResult, folder: Path) -> str:
    """Add a bench to a store, with the commit of a folder; the id of its run, with one in it for each dataset."""
    git = _git_tags(folder)
    with _reported(store.uri):
        if not isinstance(result, BenchAcross):
            return _log_dataset(store, result, git, result.dataset.name)
        first, *_ = result.results.values()
        settings = {**first.to_dict()["settings"], "dataset": ", ".join(result.results)}
        tags = {**git, "steelyard.datasets": ", ".join(result.results)}
        top = _log(store, result.dataset.name, tags, _params(settings), {}, result.folder)
        for row in result.across.rows:
            values = {"macro": row.macro, "macro_low": row.these[0], "macro_high": row.these[1]}
            values |= {"micro": row.micro, "mean_rank": row.mean_rank}
            named = {f"{result.across.measure} {name}": value for name, value in values.items()}
            _log(store, row.run, tags, {}, named, parent=top)
        for name, single in result.results.items():
            _log_dataset(store, single, git, name, top)
        return top


def _log_dataset(
    store: Store, result: BenchResult, git: Mapping[str, str], name: str, parent: str | None = None
) -> str:
    """The run of a bench over one dataset, and the nested run of each of its retrievers."""
    tags = {**git, "steelyard.dataset": name}
    tags |= {f"steelyard.fingerprint.{part}": value for part, value in fingerprints_of(result).items()}
    run = _log(store, name, tags, _params(result.to_dict()["settings"]), {}, result.folder, parent)
    for row in result.rows:
        params = _params({"retriever": row.retriever, "chunker": row.chunker, **row.settings})
        _log(store, row.run, tags, params, _metrics(result, row), parent=run)
    return run


def _metrics(result: BenchResult, row: CostRow) -> dict[str, float]:
    """The means of a retriever with the ends of their intervals, its costs, and how many queries failed."""
    metrics: dict[str, float] = {"failed_queries": float(len(row.errors))}
    for name in (*TIMES, *COSTS):
        metrics[name] = math.nan if (value := getattr(row, name)) is None else float(value)
    rows = result.evaluated.leaderboard_rows if result.evaluated is not None else ()
    for place in (entry for entry in rows if entry.run == row.run):
        for key, mean in place.means.items():
            name = label(key, place.k)
            low, high = place.intervals[key] or (math.nan, math.nan)
            metrics |= {name: mean, f"{name} low": low, f"{name} high": high}
    return metrics


def _git_tags(folder: Path) -> dict[str, str]:
    """The version and the state of git, under MLflow's own names where it has one."""
    state = git_state(folder)
    named = {
        "mlflow.source.git.commit": state["commit"],
        "mlflow.source.git.branch": state["branch"],
        "steelyard.git.dirty": None if state["dirty"] is None else str(state["dirty"]).lower(),
        "mlflow.source.name": "steelyard bench",
        "mlflow.source.type": "LOCAL",
        "steelyard.version": __version__,
    }
    return {name: value for name, value in named.items() if value is not None}


def _params(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings as texts, without secrets; one that is not set is left out."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for name, value in masked_settings(settings).items()
        if value is not None and value != [] and value != {}
    }


def _log(
    store: Store,
    name: str,
    tags: Mapping[str, str],
    params: Mapping[str, str],
    metrics: Mapping[str, float],
    folder: Path | None = None,
    parent: str | None = None,
) -> str:
    """One run of MLflow; its id."""
    from mlflow.entities import Metric, Param, RunTag
    from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID

    client, extra = store.client, {} if parent is None else {MLFLOW_PARENT_RUN_ID: parent}
    run = client.create_run(store.experiment, run_name=name)
    number, time = str(run.info.run_id), int(run.info.start_time)
    numbers = {key: value for key, value in metrics.items() if math.isfinite(value)}
    names, of_params = mlflow_names(list(numbers)), mlflow_names(list(params))
    client.log_batch(
        number,
        metrics=[Metric(key, value, time, 0) for key, value in zip(names, numbers.values(), strict=True)],
        params=[Param(key, text[:_LONGEST_VALUE]) for key, text in zip(of_params, params.values(), strict=True)],
        tags=[RunTag(key, value[:_LONGEST_VALUE]) for key, value in {**tags, **extra}.items()],
    )
    for path in [] if folder is None else [folder / file for file in _FILES]:
        if path.is_file():
            client.log_artifact(number, str(path))
    client.set_terminated(number)
    return number


def mlflow_names(names: Sequence[str]) -> list[str]:
    """Names that MLflow takes: `@` becomes `_at_`, and what it refuses `_`. Different names stay different.

    >>> mlflow_names(["nDCG@10", "nDCG@10 low", "P(rel=2)@5", "P(rel:2)@5"])
    ['nDCG_at_10', 'nDCG_at_10_low', 'P_rel_2_at_5', 'P_rel_2_at_5-2']
    """
    accepted: list[str] = []
    for name in names:
        plain = re.sub(r"[^0-9A-Za-z.-]+", "_", re.sub(r"\W*@", "_at_", name)).strip("_.") or "_"
        accepted.append(unused_name(plain[: _LONGEST_NAME - 4], accepted, "-"))
    return accepted
