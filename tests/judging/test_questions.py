"""questions(): passages drawn at random, drafts of a model that is played back, their checks, and the folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from author import FAULTS, Author, corpus
from scipy.stats import chisquare, ttest_ind

import steelyard as sy
from steelyard.cli import run
from steelyard.datasets import Corpus, Dataset
from steelyard.errors import InputError
from steelyard.judging.drafting import Sampler, search, windows, without_content
from steelyard.judging.drafts import Draft, Drafts, favours
from steelyard.retrievers import BM25, Dense

KEY = "sk-secret-0123456789abcdef"
FIELDS = {"id", "question", "quote", "doc_id", "start", "end", "kind", "status", "reason"}
"""The promised fields of drafts.jsonl."""


def drafted(server: Author, folder: Path, **settings: object) -> Drafts:
    options: dict[str, object] = {"n": 28, "kinds": {"fact": 1}, "cache": folder / "cache.sqlite"}
    return sy.questions(corpus(), endpoint=server.url, model="author", **{**options, **settings})  # type: ignore[arg-type]


def test_passages_are_drawn_with_the_stated_probabilities() -> None:
    texts = {"long": "One sentence is here. " * 9, "short": "A single sentence.", "two": "First one here. Second one."}
    fields = {"long": "web", "short": "book", "two": "web"}
    documents = Corpus.of({doc: {"text": text, "source": fields[doc]} for doc, text in texts.items()})
    for by in (None, "source"):
        sampler = Sampler(documents, by, size=30)
        generator = np.random.default_rng(5)
        drawn = [sampler.draw(generator) for _ in range(10_000)]
        stated = {(each.doc_id, each.start): each.probability for each in drawn}
        assert sum(stated.values()) == pytest.approx(1)
        counts = Counter((each.doc_id, each.start) for each in drawn)
        assert chisquare([counts[key] for key in stated], [10_000 * p for p in stated.values()]).pvalue > 0.001
        by_document = Counter(each.doc_id for each in drawn)
        expected = {"long": 1 / 4, "short": 1 / 2, "two": 1 / 4} if by else dict.fromkeys(texts, 1 / 3)
        assert chisquare([by_document[doc] for doc in texts], [10_000 * expected[doc] for doc in texts]).pvalue > 0.001


def test_windows_are_whole_sentences_and_cover_the_text() -> None:
    text = "".join(f"Sentence number {n} is of some length, and it ends here. " for n in range(60))
    found = windows(text, 300)
    assert all(text[:start].endswith((". ", "")) and text[start:end].endswith(".") for start, end in found)
    assert all(300 <= end - start < 300 + 80 for start, end in found[:-1])
    assert found[0][0] == 0
    assert found[-1][1] == len(text.rstrip())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Home\nProducts\nAbout us\nContact\nLegal notice\nSite map\nCareers\nPress\nNews\n" * 3, "navigation"),
        ("12 34.5 67 | 89 10.1 - 11 12,000 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29", "numbers"),
        ("Permission is hereby granted, free of charge, to any person obtaining a copy. " * 3, "licence"),
        ("Too short.", "fewer than 25 words"),
        ("A plain paragraph says something that somebody may want to know one day, and it goes on long enough to be "
         "counted as a passage with content, does it not?", ""),
    ],
)  # fmt: skip
def test_passages_without_content_are_passed_over_by_a_stated_rule(text: str, reason: str) -> None:
    assert without_content(text).startswith(reason)
    assert bool(without_content(text)) == bool(reason)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Drafts, Path]:
    folder = tmp_path_factory.mktemp("questions")
    with pytest.MonkeyPatch.context() as patch, Author(faults=0.4, seed=3) as server:
        patch.setenv("OPENAI_API_KEY", KEY)
        found = drafted(server, folder)
        assert server.keys == {f"Bearer {KEY}"}
    found.write(folder / "questions")
    return found, folder


@pytest.mark.slow
def test_every_accepted_span_equals_its_slice_of_the_source(made: tuple[Drafts, Path]) -> None:
    texts = corpus()
    rows = list(made[0].accepted.iter_rows(named=True))
    assert len(rows) >= 10
    for row in rows:
        assert texts[row["doc_id"]][row["start"] : row["end"]] == row["quote"]
        assert " ".join(row["quote"].split()).startswith("paid a toll of")


def test_every_planted_fault_is_rejected_with_its_reason(made: tuple[Drafts, Path]) -> None:
    found, _ = made
    texts = corpus()
    assert len(found.drafts) == 28
    repeated = 0
    for draft in found.drafts:
        good = texts[draft.passages[0]["doc_id"]].split("trade in ")[1].split()[0]
        if FAULTS.get(good) == "near-repeat" and draft.status == "accepted":
            repeated += 1  # the first of them repeats nothing
            continue
        assert (draft.status, draft.reason) == (("rejected", FAULTS[good]) if good in FAULTS else ("accepted", ""))
    assert repeated == 1
    assert set(found.rejected["reason"]) == set(FAULTS.values())


def test_the_folder_has_the_promised_files_and_is_a_dataset_with_evidence(made: tuple[Drafts, Path]) -> None:
    found, folder = made
    place = folder / "questions"
    lines = [json.loads(line) for line in (place / "drafts.jsonl").read_text().splitlines()]
    assert all(set(line) >= FIELDS for line in lines)
    queries = [json.loads(line) for line in (place / "queries.jsonl").read_text().splitlines()]
    assert [set(query) for query in queries] == [
        {"_id", "text", "kind", "synthetic", "overlap"}
    ] * found.accepted.height
    assert all(query["synthetic"] is True and query["overlap"] in ("low", "middle", "high") for query in queries)
    dataset = Dataset.read(place, judged=False)
    assert dict(dataset.corpus.texts) == corpus()
    evidence = sy.Evidence.read(place / "evidence.jsonl")
    halves = [
        {"chunk_id": f"{doc}#{half}", "doc_id": doc, "start": start, "end": end, "text": text[start:end]}
        for doc, text in corpus().items()
        for half, (start, end) in enumerate([(0, len(text) // 2), (len(text) // 2, len(text))])
    ]
    qrels = evidence.judge(halves)
    assert set(qrels.queries) == set(found.accepted["id"])
    assert Drafts.read(place).drafts == found.drafts


def test_the_key_is_in_no_file(made: tuple[Drafts, Path]) -> None:
    files = [path for path in made[1].rglob("*") if path.is_file()]
    assert len(files) >= 5
    assert all(KEY.encode() not in path.read_bytes() for path in files)


def test_the_same_seed_and_answers_give_the_same_drafts_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    with Author() as server:
        first = drafted(server, tmp_path, seed=4)
        asked = server.requests
        again = drafted(server, tmp_path, seed=4)
        assert server.requests == asked
        other = drafted(server, tmp_path, seed=5)
    assert first.drafts == again.drafts
    assert first.drafts != other.drafts


def test_a_killed_process_continues_without_asking_again(tmp_path: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[3]); import steelyard as sy; from author import corpus; "
        "sy.questions(corpus(), endpoint=sys.argv[1], model='author', n=28, kinds={'fact': 1}, cache=sys.argv[2], "
        "concurrency=1)"
    )
    with Author() as server:
        command = [sys.executable, "-c", script, server.url, str(tmp_path / "cache.sqlite"), str(Path(__file__).parent)]
        process = subprocess.Popen(command)
        server.wait_for(8)
        process.send_signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
        process.wait()
        found = drafted(server, tmp_path)
        # Silk is asked for twice as it is malformed; the answer under way at the kill may be asked for again.
        twice = [prompt for prompt, count in server.answered.items() if count > 1 and "silk" not in prompt]
    assert len(found.drafts) == 28
    assert len(twice) <= 1


def test_caps_stop_the_drafting_and_a_note_says_so(tmp_path: Path) -> None:
    with Author() as server:
        found = drafted(server, tmp_path, max_requests=5)
        assert server.requests <= 5
    assert len(found.drafts) <= 5
    assert any("max_requests=5" in line for line in found.notes)


def test_questions_over_two_passages_have_two_targets(tmp_path: Path) -> None:
    with Author() as server:
        found = drafted(server, tmp_path, kinds={"two-passage": 1}, n=6)
    texts = corpus()
    kept = [draft for draft in found.drafts if draft.status == "accepted"]
    assert kept
    for draft in kept:
        assert len(found.evidence.targets[draft.id]) == 2
        assert all(texts[span["doc_id"]][span["start"] : span["end"]] == span["quote"] for span in draft.spans)
        assert draft.spans[0]["doc_id"] != draft.spans[1]["doc_id"]


def test_an_unanswerable_question_is_judged_by_a_second_request_and_has_no_evidence(tmp_path: Path) -> None:
    with Author() as server:
        found = drafted(server, tmp_path, kinds={"unanswerable": 1}, n=28)
        assert sum("<query" in prompt for prompt in server.answered) > 0
    for draft in found.drafts:
        if draft.status == "accepted":  # the server says that nothing about wine is answered
            assert "wine" in str(draft.question)
            assert found.evidence.targets[draft.id] == ()
    assert "answered by its passage" in set(found.rejected["reason"])
    found.write(tmp_path / "q")
    lines = [json.loads(line) for line in (tmp_path / "q" / "queries.jsonl").read_text().splitlines()]
    assert lines
    assert all(line["answerable"] is False for line in lines)


def test_a_critic_rejects_what_the_span_does_not_answer(tmp_path: Path) -> None:
    with Author() as server:
        found = drafted(server, tmp_path, critic="critic")
    rejected = [row for row in found.rejected.iter_rows(named=True) if row["reason"] == "critic"]
    assert rejected
    assert all("wine" in row["question"] and row["detail"] == "as asked" for row in rejected)


def test_passages_that_the_critic_prefers_are_kept_and_reject_nothing(tmp_path: Path) -> None:
    with Author() as server:
        alone = drafted(server, tmp_path)
        requests = server.answered.total()
        found = drafted(server, tmp_path, critic="critic")
        more = server.answered.total() - requests
    accepted = [draft for draft in found.drafts if draft.status == "accepted"]
    assert {draft.id for draft in accepted} == {
        draft.id for draft in alone.drafts if draft.status == "accepted" and "wine" not in str(draft.question)
    }
    better = [draft for draft in accepted if "better" in draft.more]
    assert better
    assert all("bread" in str(draft.question) for draft in better)
    assert sum("bread" in str(draft.question) for draft in accepted) == len(better)
    for draft in better:
        for place in draft.more["better"]:
            assert place["doc_id"] != draft.spans[0]["doc_id"], "never its own source"
            assert place["found_by"]
            assert set(place["found_by"]) <= {"bm25", "dense"}
            assert place["reason"] == "B names the year"
            assert found.corpus.texts[place["doc_id"]][place["start"] : place["end"]].endswith(".")
    assert f"For {len(better)} of them the critic prefers another passage" in found.verdict
    assert len(accepted) < more <= 3 * len(found.drafts)
    found.write(tmp_path / "q")
    assert Drafts.read(tmp_path / "q").verdict == found.verdict


def test_the_search_of_the_corpus_reports_its_steps() -> None:
    draft = Draft("q1", "fact", "What did boats pay in tolls?", ({"doc_id": "d1"},), ({"doc_id": "d1"},))
    texts = Dataset.of({f"d{number}": f"boats paid {number} coins in tolls" for number in range(4)}, {}, {}).corpus
    steps: list[tuple[str, int, int]] = []
    lists = search(texts, [draft], lambda *step: steps.append(step))
    assert steps == [("searching 4 documents with bm25", 0, 2), ("searching 4 documents with dense", 1, 2)]
    assert lists == search(texts, [draft])


def test_whom_copied_words_favour_equals_a_computation_by_hand(tmp_path: Path) -> None:
    with Author() as server:
        found = drafted(server, tmp_path)
    accepted = [draft for draft in found.drafts if draft.status == "accepted"]
    texts = corpus()
    lists = {
        name: retriever.index(texts).retrieve([str(draft.question) for draft in accepted], k=10)
        for name, retriever in (("bm25", BM25()), ("dense", Dense()))
    }
    values: dict[str, list[tuple[float, float]]] = {}
    for number, draft in enumerate(accepted):
        ranks = [[doc for doc, _ in lists[name][number]] for name in ("bm25", "dense")]
        source = draft.spans[0]["doc_id"]
        one, other = (1 / np.log2(rank.index(source) + 2) if source in rank else 0.0 for rank in ranks)
        share = draft.more["overlap"]
        values.setdefault("high" if share >= 2 / 3 else "middle" if share >= 1 / 3 else "low", []).append((one, other))
    assert found.favours is not None
    assert {row[0]: row[1] for row in found.favours.rows} == {name: len(rows) for name, rows in values.items()}
    for name, _, bm25, dense in found.favours.rows:
        assert (bm25, dense) == pytest.approx(tuple(np.mean(values[name], axis=0)))
    assert "words in the source" in found.to_markdown()


def draft(number: int, overlap: float) -> Draft:
    place = {"doc_id": f"d{number}", "start": 0, "end": 1}
    return Draft(f"q{number}", "fact", "x?", ({**place, "quote": "x"},), (place,), more={"overlap": overlap})


def test_retrievers_that_differ_by_the_same_for_every_question_give_no_warning() -> None:
    drafts = [draft(number, 0.9 if number < 12 else 0.4) for number in range(24)]
    first = {f"q{number}": [(f"d{number}", 1.0)] for number in range(24)}
    second = {query: [("x", 2.0), *ranked] for query, ranked in first.items()}
    found = favours(drafts, {"bm25": first, "dense": second})
    assert found is not None
    assert (found.gap, found.low, found.high) == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)


def test_the_gap_is_that_of_welchs_test() -> None:
    generator = np.random.default_rng(3)
    drafts = [draft(number, 0.9 if number < 20 else 0.4) for number in range(50)]
    ranks = {name: generator.integers(1, 6, 50) for name in ("bm25", "dense")}
    ranks["bm25"][:20] = 1
    lists = {
        name: {
            f"q{number}": [(f"d{number}" if place == rank else f"x{place}", -float(place)) for place in range(1, 11)]
            for number, rank in enumerate(of)
        }
        for name, of in ranks.items()
    }
    gaps = 1 / np.log2(ranks["bm25"] + 1) - 1 / np.log2(ranks["dense"] + 1)
    expected = ttest_ind(gaps[:20], gaps[20:], equal_var=False)
    found = favours(drafts, lists)
    assert found is not None
    assert found.gap == pytest.approx(gaps[:20].mean() - gaps[20:].mean())
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert found.sentence.startswith("Questions that share most words with their source favour BM25 by 0.")
    assert favours(drafts[:25], lists).sentence == ""  # type: ignore[union-attr]


def test_lines_end_with_a_line_feed_only(tmp_path: Path) -> None:
    with Author() as server:
        found = drafted(server, tmp_path)
    odd = replace(found.drafts[0], detail="one\u2028two\x85three")
    Drafts((odd, *found.drafts[1:]), found.corpus).write(tmp_path / "q")
    assert Drafts.read(tmp_path / "q").drafts[0] == odd


def test_real_questions_are_examples_and_the_difference_is_measured(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("id,question\n1,toll for wine\n2,when did tolls end\n")
    with Author() as server:
        found = drafted(server, tmp_path, like=tmp_path / "real.csv")
    rows = {name: (real, drafts) for name, real, drafts in found.differences()}
    assert rows["words"][0] == 3.5
    assert rows["end with a question mark"] == (0.0, 1.0)
    assert "real" in found.to_markdown()


def test_an_own_prompt_is_a_kind_and_holds_the_passage_as_it_is(tmp_path: Path) -> None:
    prompt = tmp_path / "how-to.txt"
    prompt.write_text("Write a question.\n---\nBraces {stay}.\n<passage x>\n{passage}\n</passage")
    with Author() as server:
        found = drafted(server, tmp_path, kinds={str(prompt): 1}, n=3)
        asked = list(server.answered)
    assert {draft.kind for draft in found.drafts} == {"how-to"}
    assert all(any(text in each for text in corpus().values()) and "{stay}" in each for each in asked)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kinds": {"facts": 1}}, "Did you mean"),
        ({"kinds": {"fact": -1}}, "expected a share above 0"),
        ({"kinds": {"fact": float("inf")}}, "expected a share above 0"),
        ({"kinds": {"fact": 1e308, "procedure": 1e308}}, "expected a share above 0"),
        ({"by": "source"}, "no document has a field 'source'"),
        ({"n": 0}, "n"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_asked(
    tmp_path: Path, settings: dict[str, object], words: str
) -> None:
    with Author() as server:
        with pytest.raises(InputError, match=words):
            drafted(server, tmp_path, **settings)
        assert server.requests == 0


def test_a_folder_of_something_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "mine"}\n')
    for text in (None, "draft 3 of my novel\n", '{"id": "mine"}\n'):
        if text is not None:
            (tmp_path / "drafts.jsonl").write_text(text)
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(InputError, match="name another"):
            Drafts((), Corpus.of({"d": "text"})).write(tmp_path)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_of_something_else_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "drafts.jsonl").write_text("draft 3 of my novel\n")
    (tmp_path / "file").touch()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "text": "text"}\n')
    with Author() as server:
        for name in ("mine", "file"):
            command = ["questions", str(tmp_path / "corpus.jsonl"), "--endpoint", server.url, "--model", "m"]
            assert run([*command, "-o", str(tmp_path / name), "--set", f"cache={tmp_path / 'c.sqlite'}"]) == 2
        assert server.requests == 0
    assert not (tmp_path / "c.sqlite").exists()
