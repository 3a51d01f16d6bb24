"""The approval of drafted questions: the page on drafts, edits, undo, samples, and the folder afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from author import Author, corpus
from test_judging_server import serving

import steelyard as sy
from steelyard.cli import run
from steelyard.errors import InputError
from steelyard.judging.approval import Approval, approved, original
from steelyard.judging.drafts import Drafts
from steelyard.judgments import Judgment, append_line
from steelyard.statistics.intervals import share_interval


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Author() as server:
        drafts = sy.questions(
            corpus(), endpoint=server.url, model="m", n=28, kinds={"fact": 1}, cache=tmp_path / "c.sqlite"
        )
    drafts.write(tmp_path / "questions")
    return tmp_path / "questions"


def queries(folder: Path) -> dict[str, str]:
    lines = map(json.loads, (folder / "queries.jsonl").read_text().splitlines())
    return {line["_id"]: line["text"] for line in lines}


def drafts(folder: Path) -> dict[str, dict[str, object]]:
    return {line["id"]: line for line in map(json.loads, (folder / "drafts.jsonl").read_text().splitlines())}


def test_the_page_shows_accepted_drafts_with_the_span_marked(folder: Path) -> None:
    before = drafts(folder)
    with serving(Approval(folder, "ann")) as client:
        data = client.page_data()
        assert {pair[0] for pair in data["pairs"]} == set(queries(folder))
        assert data["edit"] is True
        assert [grade["key"] for grade in data["guidelines"]["grades"]] == ["r", "a"]
        for number, (id, _) in enumerate(data["pairs"]):
            item = client.ask("GET", f"item?n={number}")[1]
            (span,) = item["spans"]
            assert item["text"][span["start"] : span["end"]] == before[id]["quote"]
            assert item["query"] == before[id]["question"]


def test_decisions_change_the_folder_and_keep_the_original(folder: Path) -> None:
    before, texts = drafts(folder), corpus()
    session = Approval(folder, "ann")
    with serving(session) as client:
        pairs = client.page_data()["pairs"]
        (good, edited, bad, marked, undone) = pairs[:5]
        client.judge(good, 1)
        client.judge(edited, 1, note="What did boats pay in tolls?")
        client.judge(bad, 0)
        client.judge(marked, 1, spans=[{"start": 4, "end": 13}])
        client.judge(undone, 0)
        client.ask("POST", "undo", {"query_id": undone[0], "doc_id": undone[1]})
    found = session.finish()
    after, asked = drafts(folder), queries(folder)
    assert after[good[0]] == {**before[good[0]], "by": "ann"}
    assert asked[edited[0]] == after[edited[0]]["question"] == "What did boats pay in tolls?"
    assert after[edited[0]]["original"]["question"] == before[edited[0]]["question"]
    assert bad[0] not in asked
    assert (after[bad[0]]["status"], after[bad[0]]["reason"]) == ("rejected", "rejected by a person")
    doc = after[marked[0]]
    assert (doc["quote"], texts[doc["doc_id"]][doc["start"] : doc["end"]]) == ("merchants", "merchants")
    assert after[undone[0]] == before[undone[0]]
    evidence = sy.Evidence.read(folder / "evidence.jsonl")
    assert set(evidence.queries) == set(asked)
    assert f"Nobody has looked at {len(pairs) - 4:,} of the accepted questions." in found.verdict
    assert tuple(map(original, found.drafts)) == tuple(map(original, session.drafts.drafts))


def test_approval_continues_and_a_decision_can_be_withdrawn_later(folder: Path) -> None:
    first = Approval(folder, "ann")
    with serving(first) as client:
        pair = client.page_data()["pairs"][0]
        client.judge(pair, 0)
    first.finish()
    assert pair[0] not in queries(folder)
    second = Approval(folder, "ann")
    assert second.judged == 1
    with serving(second) as client:
        assert client.page_data()["pairs"][0] == pair
        client.ask("POST", "undo", {"query_id": pair[0], "doc_id": pair[1]})
    second.finish()
    assert pair[0] in queries(folder)


def test_decisions_do_not_apply_to_another_draft_of_the_same_id(folder: Path) -> None:
    found = Drafts.read(folder)
    append_line(folder / "approvals.jsonl", Judgment("q1", "another-draft", 0, "ann"))
    assert approved(found, folder).drafts == found.drafts


def test_drafts_that_are_written_again_keep_what_a_person_decided(folder: Path) -> None:
    drafted = Drafts.read(folder)
    session = Approval(folder, "ann")
    with serving(session) as client:
        edited, bad = client.page_data()["pairs"][:2]
        client.judge(edited, 1, note="What did boats pay in tolls?")
        client.judge(bad, 0)
    session.finish()
    files = {name: (folder / name).read_bytes() for name in ("queries.jsonl", "drafts.jsonl", "evidence.jsonl")}
    written = drafted.write(folder)
    assert {name: (folder / name).read_bytes() for name in files} == files
    assert queries(folder)[edited[0]] == "What did boats pay in tolls?"
    assert bad[0] not in set(written.accepted["id"])
    drafted.write(folder.parent / "elsewhere")
    assert bad[0] in queries(folder.parent / "elsewhere"), "nobody decided there"


def test_questions_that_a_person_rejected_are_in_no_measured_number(folder: Path, capsys) -> None:
    with Author() as server:
        made = ["--endpoint", server.url, "--model", "m", "-n", "28", "--set", "kinds=fact=1", "-o", str(folder)]
        made += ["--set", f"cache={folder.parent / 'c.sqlite'}"]
        command = ["questions", str(_corpus_file(folder)), *made]
        assert run(command) == 0
        before = _measured(capsys.readouterr().out)
        session = Approval(folder, "ann")
        with serving(session) as client:
            for pair in client.page_data()["pairs"][:3]:
                client.judge(pair, 0)
        session.finish()
        assert run(command) == 0
    assert _measured(capsys.readouterr().out) == before - 3 == len(queries(folder))


def _corpus_file(folder: Path) -> Path:
    place = folder.parent / "corpus.jsonl"
    place.write_text("".join(json.dumps({"_id": doc, "text": text}) + "\n" for doc, text in corpus().items()))
    return place


def _measured(said: str) -> int:
    """The questions of the table by words in the source."""
    table = said.partition("words in the source")[2].splitlines()
    return sum(int(line.split()[1]) for line in table if line.split()[:1] in (["low"], ["middle"], ["high"]))


def test_no_next_command_without_an_accepted_draft(folder: Path, capsys, monkeypatch) -> None:
    target = folder.parent / "none"
    monkeypatch.setattr("author.drafted", lambda _: json.dumps({"question": "What is it?", "quote": "not there"}))
    with Author() as server:
        command = ["questions", str(_corpus_file(folder)), "--endpoint", server.url, "--model", "m", "-n", "4"]
        run([*command, "-o", str(target), "--set", f"cache={folder.parent / 'faults.sqlite'}"])
    output = capsys.readouterr()
    said = output.out + output.err
    assert "0 of 4 drafts accepted" in said
    assert "Next:" not in said
    assert "No draft was accepted" in said


def test_a_sample_is_random_and_estimates_the_share_of_bad_questions(folder: Path) -> None:
    session = Approval(folder, "ann", sample=6, seed=1)
    ids = [pair[0] for pair in session.pairs]
    assert len(ids) == 6
    assert ids == [pair[0] for pair in Approval(folder, "ann", sample=6, seed=1).pairs]
    assert ids != [pair[0] for pair in Approval(folder, "ann", sample=6, seed=2).pairs]
    assert session.estimate() == "Nothing is decided yet."
    with serving(session) as client:
        for number, pair in enumerate(client.page_data()["pairs"]):
            client.judge(pair, 0 if number == 0 else 1)
    assert session.estimate().startswith("1 of 6 questions rejected: 17% [0%, 64%] (95% interval).")


def test_the_interval_of_a_share_is_that_of_clopper_and_pearson() -> None:
    assert share_interval(0, 50) == pytest.approx((0, 0.0711), abs=1e-4)
    assert share_interval(50, 50) == pytest.approx((0.9289, 1), abs=1e-4)
    assert share_interval(10, 50) == pytest.approx((0.1003, 0.3372), abs=1e-4)


def test_a_folder_without_accepted_drafts_is_an_error(tmp_path: Path) -> None:
    Drafts((), sy.Corpus.of({"d": "text"})).write(tmp_path / "empty")
    with pytest.raises(InputError, match="nothing to approve"):
        Approval(tmp_path / "empty", "ann")


def test_options_of_pools_are_refused_for_a_question_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["judge", str(folder), "--html", "page.html"]) == 2
    assert "leave out the other options" in capsys.readouterr().err
    assert run(["judge", "pool.jsonl", "--dataset", "demo", "--budget", "3"]) == 2


def changed(folder: Path, **others: object) -> None:
    """Change the first accepted draft; None removes a field."""
    lines = list(drafts(folder).values())
    first = next(line for line in lines if line["status"] == "accepted")
    first.update(others)
    (folder / "drafts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.slow
@pytest.mark.parametrize(
    "others",
    [
        *({"start": value} for value in ("x", -5, 10**30, float("nan"), 1.5, True)),
        *({"passages": value} for value in ([], "abc", 3, ["x"], [{"doc_id": "nowhere", "start": 0, "end": 9}])),
        {"passages": [{"doc_id": "doc1", "start": 1.5, "end": 9}]},
        *({"overlap": value} for value in ("x", float("nan"), -5, 1e308, [1], None)),
        *({"id": value} for value in (5, [1], None)),
        *({"question": value} for value in (None, "", ["a"])),
        *({"original": value, "by": "ann"} for value in ("x", {"question": 4}, {"spans": "x"}, {"spans": [{}]})),
        {"quote": "words that are not there"},
        {"status": "maybe"},
        {"kind": ["a"]},
        {"spans": [1]},
    ],
    ids=str,
)
def test_a_draft_that_was_changed_is_an_error_and_the_folder_stays(folder: Path, others: dict[str, object]) -> None:
    changed(folder, **others)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(InputError, match=r"drafts\.jsonl"):
        Approval(folder, "ann")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_drafts_with_one_id_are_an_error(folder: Path) -> None:
    (folder / "drafts.jsonl").write_bytes((folder / "drafts.jsonl").read_bytes() * 2)
    with pytest.raises(InputError, match="two drafts have one id"):
        Drafts.read(folder)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"spans": "x"}, "expected a list of objects with start and end"),
        ({"spans": [{"start": 1}]}, "expected a list of objects with start and end"),
        ({"spans": [{"start": float("nan"), "end": 2, "content": "x"}]}, "expected a list of objects"),
        ({"grade": 9}, "the grade 9; expected 0 or 1"),
        ({"spans": [{"start": 4, "end": 13, "content": "another text"}]}, ""),
        ({"spans": [{"start": 13, "end": 4}]}, ""),
    ],
)
def test_an_approval_that_was_changed_is_an_error_or_quotes_the_document(
    folder: Path, more: dict[str, object], said: str
) -> None:
    session = Approval(folder, "ann")
    (id, key), _ = session.pairs[0], session.item(0)
    line = {"query_id": id, "doc_id": key, "grade": 1, "judge": "bob", "at": "2026-01-01T00:00:00Z", **more}
    (folder / "approvals.jsonl").write_text(json.dumps(line) + "\n")
    before = (folder / "drafts.jsonl").read_bytes()
    if said:
        with pytest.raises(InputError, match=said):
            session.finish()
        assert (folder / "drafts.jsonl").read_bytes() == before
    else:
        session.finish()
        (draft,) = (draft for draft in Drafts.read(folder).drafts if draft.id == id)
        assert draft.spans[0]["quote"] in corpus()[draft.spans[0]["doc_id"]]


def test_a_path_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bench-result").mkdir()
    assert run(["judge", str(tmp_path / "bench-results")]) == 2
    assert "no such pool, result folder or question folder. Did you mean bench-result?" in capsys.readouterr().err


def test_questions_are_not_written_among_the_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "one.md").write_text("A page.")
    command = ["questions", str(tmp_path / "docs"), "--endpoint", "http://127.0.0.1:9/v1", "--model", "m"]
    assert run([*command, "-o", f"{tmp_path}/docs/../docs", "--set", f"cache={tmp_path / 'c.sqlite'}"]) == 2
    assert "has the documents; name another folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["docs", "one.md"]
