"""A bench in a real MLflow store, and what happens without MLflow or without a store."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard as sy
from needs import import_peer
from steelyard.benchmark.history import fingerprints_of
from steelyard.benchmark.mlflow import mlflow_names
from steelyard.cli import run as steelyard
from steelyard.errors import InputError, PackageError

BENCH = {
    "dataset": "demo",
    "retrievers": [{"bm25-okapi": {"name": "search", "k1": 1.2}}, {"random": {"name": "control"}}],
    "measures": ["nDCG@10", "P(rel=2)@5"],
}

SECRET = "hunter2-hunter2"

USERS_RETRIEVER = """
def search(query, k, api_key=None):
    return [f"d{place}" for place in range(k)]
"""


def test_names_that_mlflow_refuses_are_replaced_and_stay_different():
    names = ["nDCG@10", "nDCG@10 low", "P(rel=2)@5", "P(rel:2)@5", "a/b", "ä", "@"]
    assert mlflow_names(names) == [
        *("nDCG_at_10", "nDCG_at_10_low", "P_rel_2_at_5", "P_rel_2_at_5-2", "a_b", "_", "at")
    ]


def test_without_mlflow_the_error_names_the_package_before_anything_runs(tmp_path, monkeypatch, capsys):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "mlflow":
            raise ModuleNotFoundError("No module named 'mlflow'", name="mlflow")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(PackageError, match=r"pip install 'steelyard\[mlflow\]'"):
        sy.bench(BENCH, tmp_path / "out", mlflow=True)
    (tmp_path / "bench.yaml").write_text(json.dumps(BENCH))
    assert steelyard(["bench", str(tmp_path / "bench.yaml"), "--mlflow"]) == 2
    assert "pip install 'steelyard[mlflow]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "bench-result").exists()


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of a new local store; its runs and their files are in one folder."""
    import_peer("alembic")
    tracking = import_peer("mlflow.tracking")
    folder = tmp_path_factory.mktemp("mlflow")
    found = tracking.MlflowClient(tracking_uri=f"sqlite:///{folder}/mlflow.db")
    found.create_experiment("steelyard", artifact_location=(folder / "files").as_uri())
    return found


def uri_of(client):
    return client.tracking_uri


def runs_of(client, parent):
    """The runs directly below one, by name."""
    found = client.search_runs(
        [client.get_experiment_by_name("steelyard").experiment_id], f"tags.`mlflow.parentRunId` = '{parent}'"
    )
    return {run.info.run_name: run for run in found}


def last_bench(client):
    """The newest run that is in no other."""
    experiment = client.get_experiment_by_name("steelyard").experiment_id
    runs = client.search_runs([experiment], order_by=["attributes.start_time DESC"])
    return next(run for run in runs if "mlflow.parentRunId" not in run.data.tags)


@pytest.mark.adapters
@pytest.mark.filterwarnings("default")
def test_a_bench_is_one_run_with_a_nested_run_per_retriever(client, tmp_path):
    result = sy.bench(BENCH, tmp_path / "out", mlflow=uri_of(client))
    parent = last_bench(client)
    assert parent.info.status == "FINISHED"
    assert parent.info.run_name == "demo"
    assert parent.data.params["measures"] == '["nDCG@10", "P(rel=2)@5"]'
    assert parent.data.params["depth"] == "100"
    for name, value in fingerprints_of(result).items():
        assert parent.data.tags[f"steelyard.fingerprint.{name}"] == value
    assert parent.data.tags["steelyard.version"] == sy.__version__
    files = {each.path for each in client.list_artifacts(parent.info.run_id)}
    assert files == {"result.json", "leaderboard.md", "report.html"}
    written = client.download_artifacts(parent.info.run_id, "result.json", str(tmp_path))
    assert Path(written).read_bytes() == (tmp_path / "out" / "result.json").read_bytes()

    nested = runs_of(client, parent.info.run_id)
    assert set(nested) == {"search", "control"}
    for row in result.comparison.leaderboard_rows:
        metrics = nested[row.run].data.metrics
        for key, name in (("nDCG@10", "nDCG_at_10"), ("P(rel=2)@5", "P_rel_2_at_5")):
            found = [metrics[name], metrics[f"{name}_low"], metrics[f"{name}_high"]]
            assert found == [row.means[key], *row.intervals[key]]
        assert metrics["failed_queries"] == 0
        assert metrics["p50_seconds"] > 0
    assert nested["search"].data.params["k1"] == "1.2"
    assert nested["search"].data.params["retriever"] == "bm25"


@pytest.mark.adapters
@pytest.mark.filterwarnings("default")
def test_no_secret_is_logged(client, tmp_path, monkeypatch):
    (tmp_path / "users_retriever.py").write_text(USERS_RETRIEVER)
    monkeypatch.syspath_prepend(tmp_path)
    settings = {"target": "users_retriever:search", "arguments": {"api_key": SECRET}, "name": "mine"}
    retrievers = [*BENCH["retrievers"], {"python": settings}]
    sy.bench({**BENCH, "retrievers": retrievers}, tmp_path / "out", mlflow=uri_of(client))
    parent = last_bench(client)
    mine = runs_of(client, parent.info.run_id)["mine"]
    assert mine.data.params["arguments"] == '{"api_key": "***"}'
    logged = [parent, mine]
    assert SECRET not in str([[run.data.params, run.data.tags] for run in logged])
    for name in ("result.json", "leaderboard.md", "report.html"):
        assert SECRET not in (tmp_path / "out" / name).read_text("utf-8")


@pytest.mark.adapters
@pytest.mark.filterwarnings("default")
def test_several_datasets_are_one_run_with_one_per_dataset(client, tmp_path):
    bench = {**BENCH, "datasets": {"one": "demo", "two": "demo"}}
    del bench["dataset"]
    result = sy.bench(bench, tmp_path / "out", mlflow=uri_of(client))
    top = last_bench(client)
    files = {each.path for each in client.list_artifacts(top.info.run_id)}
    assert files == {"across.json", "across.md", "report.html"}
    below = runs_of(client, top.info.run_id)
    assert set(below) == {"search", "control", "one", "two"}
    macro = {row.run: row for row in result.across.rows}
    found = below["search"].data.metrics
    assert found["nDCG_at_10_macro"] == macro["search"].macro
    assert (found["nDCG_at_10_macro_low"], found["nDCG_at_10_macro_high"]) == macro["search"].these
    assert set(runs_of(client, below["two"].info.run_id)) == {"search", "control"}


@pytest.mark.adapters
@pytest.mark.filterwarnings("default")
def test_an_unusable_store_is_an_error_before_anything_runs(tmp_path):
    import_peer("mlflow")
    with pytest.raises(InputError, match="the MLflow store nothing://here cannot be used"):
        sy.bench(BENCH, tmp_path / "out", mlflow="nothing://here")
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("default")
@pytest.mark.adapters
def test_the_command_writes_a_local_store_with_the_commit(tmp_path):
    """In a process of its own, in a git repository: mlflow.db and mlruns are in the working directory."""
    import_peer("mlflow")
    import_peer("alembic")
    (tmp_path / "bench.yaml").write_text(json.dumps({**BENCH, "measures": ["nDCG@10"]}))
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "bench"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.strip()
    command = [sys.executable, "-m", "steelyard", "bench", "bench.yaml", "-o", "out", "--mlflow"]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "INFO" not in done.stderr
    reader = import_peer("mlflow.tracking").MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    parent = last_bench(reader)
    assert parent.data.tags["mlflow.source.git.commit"] == commit
    assert parent.data.tags["steelyard.git.dirty"] == "false"
    assert list((tmp_path / "mlruns").rglob("report.html"))
