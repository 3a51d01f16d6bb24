"""The judging page in a browser: by keyboard, across reloads and kills, for two judges, as one file, attacked."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

import steelyard as sy
from needs import import_peer
from steelyard.judging.approval import Approval
from steelyard.judging.drafts import Draft, Drafts
from steelyard.judging.guidelines import DEFAULT, Guidelines
from steelyard.judging.page import html
from steelyard.judging.pool import assigned, pool
from steelyard.judging.server import JudgingServer, Session
from steelyard.judging.spans import evidence_of
from steelyard.judgments import Judgments

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
HOSTILE = [
    "<script>globalThis.hacked = 1</script>",
    "</script><script>globalThis.hacked = 2</script>",
    "<img src=x onerror='globalThis.hacked = 3'>",
    "<!-- <script> --!> <![CDATA[ ]]>",
    "\"'><svg/onload=globalThis.hacked=5>",
    "{{ data }} {{ script }} ${globalThis.hacked=6} `",
    "nul\x00bell\x07escape\x1bdelete\x7f",
    "\u202eright to left\u202c עברית",
    "line\u2028paragraph\u2029end \ufeff",
    "emoji 🧑🏽‍🚀🏳️‍🌈 and a\u0301\u0302\u0303",
    "__proto__",
    "constructor",
]


@pytest.fixture(scope="module")
def demo():
    return sy.Dataset.read("demo")


@pytest.fixture(scope="module")
def demo_pool(demo):
    documents = list(demo.corpus)
    return pool({"run": {query: documents[n : n + 5] for n, query in enumerate(list(demo.queries)[:12])}})


def small(texts, query="weigh gold"):
    """A dataset of a few documents, and the pool of all of them for one query."""
    dataset = sy.Dataset.of(texts, {"q": query}, {"q": [next(iter(texts))]}, name="small")
    return pool({"run": {"q": list(texts)}}), dataset


def serving(documents, dataset, path, judge="ann", guidelines=DEFAULT, **options):
    return running(JudgingServer(Session(assigned(documents, judge, **options), dataset, path, judge, guidelines)))


@contextmanager
def running(server):
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def visited(chromium):
    """Open an address: on the way out, no console message and no request to anywhere else."""

    @contextmanager
    def visiting(address, **options):
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        tab = context.new_page()
        wrong = []
        tab.on("console", lambda message: wrong.append(message.text))
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        base = address.partition("#")[0]
        tab.on("request", lambda sent: wrong.append(sent.url) if not sent.url.startswith(base) else None)
        go_to(tab, address)
        yield tab
        context.close()
        assert wrong == []

    return visiting


def go_to(tab, address):
    tab.goto(address)
    tab.wait_for_selector("html[data-ready=yes]", state="attached")


def press(tab, key, judged=None):
    """Press a key once the page takes grades; wait until this many documents are judged."""
    takes_grades(tab)
    tab.keyboard.press(key)
    if judged is not None:
        tab.wait_for_function("n => document.getElementById('bar').value === n", arg=judged)
        settled(tab)


def takes_grades(tab):
    tab.wait_for_selector("html[data-open=yes]", state="attached")


def settled(tab):
    tab.wait_for_function("() => document.activeElement.id === 'document' || document.activeElement.id === 'done'")


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def shown(tab):
    return tab.locator("#doc-id").text_content()


def test_thirty_judgments_by_keyboard(demo, demo_pool, visited, tmp_path):
    path = tmp_path / "j.jsonl"
    keys = "0123c"
    order = assigned(demo_pool, "ann")
    with serving(demo_pool, demo, path) as server, visited(server.address) as tab:
        for number in range(30):
            query, doc = order[number]
            assert shown(tab) == doc
            assert tab.locator("#query").text_content() == demo.queries[query]
            assert tab.locator("#text").text_content() == demo.corpus.texts[doc]
            press(tab, keys[number % 5], number + 1)
            assert len(lines(path)) == number + 1
        assert re.fullmatch(
            r"30 of 60 judged · 30 left · [\d.]+ s each · about [\d.]+ s to go", tab.locator("#progress").text_content()
        )
        assert "Saved: Cannot tell." in tab.locator("#said").text_content()
    found = lines(path)
    assert [(line["query_id"], line["doc_id"]) for line in found] == order[:30]
    assert [line["grade"] for line in found] == [0, 1, 2, 3, None] * 6
    assert all(line["judge"] == "ann" and line["seconds"] >= 0 for line in found)


def test_drafted_questions_are_accepted_edited_and_rejected_by_keyboard(visited, tmp_path):
    texts = {name: f"Nobody knows {name}. It is kept in the 🧪 northern hall of the town." for name in "abc"}
    quote = "kept in the 🧪 northern hall"
    drafts = []
    for number, (doc, text) in enumerate(texts.items(), start=1):
        start = text.index(quote)
        span = {"quote": quote, "doc_id": doc, "start": start, "end": start + len(quote)}
        passage = {"doc_id": doc, "start": 0, "end": len(text), "probability": 1 / 3}
        drafts.append(Draft(f"q{number}", "fact", f"Where is {doc} kept?", (span,), (passage,)))
    Drafts(tuple(drafts), sy.Corpus.of(texts)).write(tmp_path / "questions")
    session = Approval(tmp_path / "questions", "ann")
    with running(JudgingServer(session)) as server, visited(server.address) as tab:
        assert "".join(tab.locator("#text mark.span").all_text_contents()) == quote
        assert tab.locator("#query").text_content() == "Where is a kept?"
        press(tab, "a", 1)
        press(tab, "e")
        assert tab.locator("#note").input_value() == "Where is b kept?"
        tab.locator("#note").fill("Where in the town is b kept?")
        tab.keyboard.press("Enter")
        press(tab, "a", 2)
        press(tab, "r", 3)
        press(tab, "u", 2)
        press(tab, "r", 3)
        assert tab.locator("#counts tr").all_text_contents() == ["r Reject1", "a Accept2"]
    found = session.finish()
    assert found.accepted["question"].to_list() == ["Where is a kept?", "Where in the town is b kept?"]
    assert found.accepted["quote"].to_list() == [quote, quote]
    assert found.drafts[1].more["original"]["question"] == "Where is b kept?"
    assert found.drafts[0].spans == drafts[0].spans


def test_everything_judged_skipped_and_undone(visited, tmp_path):
    documents, dataset = small({name: f"Gold of {name}." for name in "abc"})
    path = tmp_path / "j.jsonl"
    with serving(documents, dataset, path) as server, visited(server.address) as tab:
        first = shown(tab)
        press(tab, "s")
        tab.wait_for_function("old => document.getElementById('doc-id').textContent !== old", arg=first)
        press(tab, "u")
        tab.wait_for_function("old => document.getElementById('doc-id').textContent === old", arg=first)
        press(tab, "s")
        tab.wait_for_function("old => document.getElementById('doc-id').textContent !== old", arg=first)
        tab.reload()
        tab.wait_for_selector("html[data-ready=yes]", state="attached")
        assert "1 skipped" in tab.locator("#progress").text_content()
        press(tab, "1", 1)
        press(tab, "2", 2)
        assert shown(tab) == first, "a skipped document comes again at the end"
        press(tab, "3", 3)
        assert tab.locator("#done").is_visible()
        assert "j.jsonl" in tab.locator("#done-text").text_content()
        assert tab.locator("#counts tr").all_text_contents() == ["1 Related1", "2 Partly relevant1", "3 Relevant1"]
        press(tab, "u", 2)
        assert shown(tab) == first
        assert tab.locator(".grade[aria-pressed=true]").text_content().startswith("3")
        press(tab, "0", 3)
    found = Judgments.read(path)
    assert {line.doc_id: line.grade for line in found.current}[first] == 0
    assert [line.undo for line in found.lines] == [False, False, False, True, False]


def test_a_note_by_keyboard(demo, demo_pool, visited, tmp_path):
    path = tmp_path / "j.jsonl"
    with serving(demo_pool, demo, path) as server, visited(server.address) as tab:
        press(tab, "n")
        tab.keyboard.type("Fares of 2019, see page 3")
        assert lines(path) == [] if path.exists() else True
        tab.reload()
        tab.wait_for_selector("html[data-ready=yes]", state="attached")
        assert tab.locator("#note").input_value() == "Fares of 2019, see page 3", "a reload keeps the draft"
        press(tab, "n")
        press(tab, "Enter")
        settled(tab)
        press(tab, "2", 1)
        assert tab.locator("#note-part").is_hidden()
        press(tab, "u", 0)
        assert tab.locator("#note").input_value() == "Fares of 2019, see page 3", "undo brings it back"
        press(tab, "3", 1)
        press(tab, "1", 2)
    found = [(line.grade, line.more.get("note")) for line in Judgments.read(path).current]
    assert found == [(3, "Fares of 2019, see page 3"), (1, None)]


TEXT = "A steelyard 🧑🏽‍🚀 weighs gold. It has two arms of unequal length!\r\nSilver floats\x07 not. The end is here."


def test_spans_by_sentences_and_by_selection(visited, tmp_path):
    documents, dataset = small({"a": {"title": "Gold", "text": TEXT}})
    path = tmp_path / "j.jsonl"
    with serving(documents, dataset, path) as server, visited(server.address) as tab:
        assert tab.locator("#text mark.term").all_text_contents() == ["weighs", "gold"]
        press(tab, "m")
        assert "Select text" in tab.locator("#said").text_content()
        press(tab, "j")
        press(tab, "m")
        assert tab.locator("#spans bdi").all_text_contents() == ["A steelyard 🧑🏽‍🚀 weighs gold."]
        tab.evaluate(
            """() => {
                const walker = document.createTreeWalker(document.getElementById("text"), NodeFilter.SHOW_TEXT);
                while (walker.nextNode()) {
                    const at = walker.currentNode.data.indexOf(" not. The");
                    if (at >= 0) getSelection().setBaseAndExtent(walker.currentNode, at, walker.currentNode, at + 5);
                }
            }"""
        )
        tab.locator("[data-action=mark]").click()
        assert tab.locator("#spans bdi").all_text_contents() == ["A steelyard 🧑🏽‍🚀 weighs gold.", "not."]
        for _ in range(3):
            press(tab, "j")
        press(tab, "m")
        assert tab.locator("#spans li").count() == 3
        press(tab, "m")
        assert tab.locator("#spans li").count() == 2, "the same key removes a mark"
        press(tab, "3", 1)
        press(tab, "u", 0)
        assert tab.locator("#text mark.span").count() > 1, "undo brings the marks back"
        press(tab, "2", 1)
    (line,) = Judgments.read(path).current
    spans = line.more["spans"]
    assert [span["content"] for span in spans] == ["A steelyard 🧑🏽‍🚀 weighs gold.", "not."]
    assert all(TEXT[span["start"] : span["end"]] == span["content"] for span in spans)
    assert repr(evidence_of(path)) == "Evidence: 1 query, 2 targets (2 spans)"


def test_a_selection_by_the_mouse_is_marked(demo, demo_pool, visited, tmp_path):
    path = tmp_path / "j.jsonl"
    with serving(demo_pool, demo, path) as server, visited(server.address) as tab:
        box = tab.locator("#text").bounding_box()
        tab.mouse.move(box["x"] + 2, box["y"] + 12)
        tab.mouse.down()
        tab.mouse.move(box["x"] + 300, box["y"] + 45, steps=5)
        tab.mouse.up()
        press(tab, "m")
        assert tab.locator("#spans li").count() == 1
        doc = shown(tab)
        press(tab, "1", 1)
    (span,) = lines(path)[0]["spans"]
    assert demo.corpus.texts[doc][span["start"] : span["end"]] == span["content"]
    assert span["start"] < 3
    assert len(span["content"]) > 40


def test_a_long_text_is_scrolled_to_its_densest_part(visited, tmp_path):
    filler = "Nothing of interest is written in this line of the long text.\n"
    text = f"{filler * 50}One line says gold.\n{filler * 100}To weigh gold, weigh it.\n{filler * 150}"
    documents, dataset = small({"a": text, "b": "Gold."})
    with serving(documents, dataset, tmp_path / "j.jsonl") as server, visited(server.address) as tab:
        if shown(tab) != "a":
            press(tab, "1", 1)
        term = tab.locator("#text mark.term", has_text="weigh").first
        region = tab.locator("#document").bounding_box()
        box = term.bounding_box()
        assert region["y"] < box["y"] < region["y"] + region["height"] / 2
        tab.locator("#to-start").click()
        assert tab.locator("#document").evaluate("region => region.scrollTop") == 0
        settled(tab)
        press(tab, "PageDown")
        tab.wait_for_function("() => document.getElementById('document').scrollTop > 0")


def test_a_grade_for_a_document_that_has_just_been_shown_is_ignored_and_said(demo, demo_pool, visited, tmp_path):
    path = tmp_path / "j.jsonl"
    with serving(demo_pool, demo, path) as server, visited(server.address) as tab:
        takes_grades(tab)
        tab.clock.install(time=0)
        tab.clock.pause_at(60_000)
        press(tab, "1", 1)
        second = shown(tab)
        tab.clock.run_for(299)
        tab.keyboard.press("2")
        assert "Ignored: this document has just been shown" in tab.locator("#said").text_content()
        assert shown(tab) == second
        assert len(lines(path)) == 1
        tab.clock.run_for(1)
        press(tab, "2", 2)
        assert [line["grade"] for line in lines(path)] == [1, 2]


def test_a_judgment_can_be_looked_at_again_and_changed(demo, demo_pool, visited, tmp_path):
    path = tmp_path / "j.jsonl"
    order = assigned(demo_pool, "ann")
    with serving(demo_pool, demo, path) as server, visited(server.address) as tab:
        assert tab.get_by_role("button", name="Judged").is_disabled()
        for number in range(3):
            press(tab, "1", number + 1)
        tab.get_by_role("button", name="Judged").click()
        listed = tab.locator("#review-list li")
        assert listed.locator(".id").all_inner_texts() == [doc for _, doc in reversed(order[:3])]
        listed.nth(1).get_by_role("button").click()
        tab.wait_for_function("doc => document.getElementById('doc-id').textContent === doc", arg=order[1][1])
        assert tab.locator(".grade[aria-pressed=true]").get_attribute("data-grade") == "1"
        press(tab, "3")
        # The queue goes on where it was.
        tab.wait_for_function("doc => document.getElementById('doc-id').textContent === doc", arg=order[3][1])
        assert [line["grade"] for line in lines(path)] == [1, 1, 1, 3]
        tab.get_by_role("button", name="Judged").click()
        assert listed.first.inner_text().startswith("3 ")
        tab.keyboard.press("Escape")
        grades = {line["doc_id"]: line["grade"] for line in Judgments(path).qrels().frame.iter_rows(named=True)}
        assert grades[order[1][1]] == 3


def test_reload_continues_where_it_stopped(demo, demo_pool, visited, tmp_path):
    order = assigned(demo_pool, "ann")
    with serving(demo_pool, demo, tmp_path / "j.jsonl") as server:
        with visited(server.address) as tab:
            for number in range(4):
                press(tab, "1", number + 1)
            tab.reload()
            tab.wait_for_selector("html[data-ready=yes]", state="attached")
            assert shown(tab) == order[4][1]
            press(tab, "2", 5)
        with visited(server.address) as tab:
            assert tab.locator("#bar").evaluate("bar => bar.value") == 5
            press(tab, "u", 4)
            assert shown(tab) == order[4][1], "what was judged before can be undone"


@contextmanager
def started(folder, judge):
    command = [sys.executable, "-m", "steelyard", "judge", str(folder / "pool.jsonl"), "--dataset", "demo"]
    options = ["-o", str(folder / "j.jsonl"), "--judge", judge, "--set", "open=no"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True, env=environment) as process:
        said = ""
        while "Ctrl-C" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        try:
            yield process, re.search(r"http://\S+", said)[0]
        finally:
            process.kill()


def test_kill_the_server_and_restart(demo_pool, chromium, tmp_path):
    demo_pool.write(tmp_path / "pool.jsonl")
    order = [doc for _, doc in assigned(demo_pool, "ann")]
    tab = chromium.new_page()
    with started(tmp_path, "ann") as (process, address):
        go_to(tab, address)
        for number in range(3):
            press(tab, "2", number + 1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        press(tab, "3")
        tab.wait_for_selector("#failed:not([hidden])")
        assert "Not saved: the server does not answer." in tab.locator("#failed").text_content()
        assert shown(tab) == order[3], "the page stays at the document that is not saved"
    assert [line["doc_id"] for line in lines(tmp_path / "j.jsonl")] == order[:3]
    with started(tmp_path, "ann") as (_, address):
        go_to(tab, address)
        assert shown(tab) == order[3]
        press(tab, "3", 4)
    assert [line["grade"] for line in lines(tmp_path / "j.jsonl")] == [2, 2, 2, 3]
    tab.close()


def test_what_failed_can_be_tried_again(demo, demo_pool, chromium, tmp_path):
    path = tmp_path / "j.jsonl"
    lost = set()

    def answered(route):
        kind = route.request.url.rsplit("/", 1)[1].partition("?")[0]
        route.abort() if kind in lost else route.continue_()

    with serving(demo_pool, demo, path) as server:
        tab = chromium.new_page()
        # From the start: a route that is added to an open page may miss the requests that come right after it.
        tab.route("**/*", answered)
        go_to(tab, server.address)
        first = shown(tab)
        lost.add("judgment")
        press(tab, "3")
        tab.wait_for_selector("#failed:not([hidden])")
        lost.symmetric_difference_update({"judgment", "item"})
        tab.locator("#again").click()
        tab.wait_for_function(
            "() => document.getElementById('failed-text').textContent.startsWith('The next document')"
        )
        assert [line["doc_id"] for line in lines(path)] == [first]
        lost.clear()
        tab.locator("#again").click()
        tab.wait_for_function("old => document.getElementById('doc-id').textContent !== old", arg=first)
        assert tab.locator("#failed").is_hidden()
        assert len(lines(path)) == 1, "what was saved is not saved twice"
        tab.close()


def test_two_judges_with_overlap(demo, demo_pool, visited, tmp_path):
    path = tmp_path / "j.jsonl"
    names = ["ann", "bob"]
    options = {"judges": names, "overlap": 0.2}
    parts = {name: assigned(demo_pool, name, **options) for name in names}
    for name, key in zip(names, "30", strict=True):
        with serving(demo_pool, demo, path, name, **options) as server, visited(server.address) as tab:
            assert tab.locator("#judge").text_content() == name
            assert tab.locator("#progress").text_content().startswith(f"0 of {len(parts[name])} judged")
            for number in range(len(parts[name])):
                assert tab.locator(".grade[aria-pressed=true]").count() == 0
                press(tab, key, number + 1)
            assert tab.locator("#done").is_visible()
    found = Judgments.read(path)
    assert len(found) == len(parts["ann"]) + len(parts["bob"]) == 60 + 12
    shared = set(parts["ann"]) & set(parts["bob"])
    assert {(line.query_id, line.doc_id) for line in found.current if line.judge == "bob"} >= shared
    assert len(shared) == 12
    assert found.qrels("max").frame["grade"].to_list().count(3) == len(parts["ann"])


# The single file


def export(tab):
    with tab.expect_download() as download:
        tab.locator("#export").click()
    return download.value


def test_the_single_file_keeps_exports_and_imports(demo, demo_pool, opened, tmp_path):
    page, order = tmp_path / "page.html", assigned(demo_pool, "bob")
    html(demo_pool, demo, page, "bob")
    with opened(page, accept_downloads=True) as tab:
        for number in range(6):
            assert shown(tab) == order[number][1]
            press(tab, "0123c"[number % 5], number + 1)
        press(tab, "u", 5)
        press(tab, "n")
        tab.keyboard.type("é 🧑🏽‍🚀")
        press(tab, "Enter")
        press(tab, "j")
        press(tab, "m")
        press(tab, "3", 6)
        tab.reload()
        tab.wait_for_selector("html[data-ready=yes]", state="attached")
        assert shown(tab) == order[6][1]
        press(tab, "1", 7)
        download = export(tab)
        assert download.suggested_filename == "judgments-bob.jsonl"
        download.save_as(tmp_path / "bob.jsonl")
    found = Judgments.read(tmp_path / "bob.jsonl")
    assert [(line.query_id, line.doc_id) for line in found.current] == order[:7]
    assert [line.grade for line in found.current] == [0, 1, 2, 3, None, 3, 1]
    assert found.current[5].more["note"] == "é 🧑🏽‍🚀"
    (span,) = found.current[5].more["spans"]
    assert demo.corpus.texts[order[5][1]][span["start"] : span["end"]] == span["content"]
    assert found.judges == ["bob"]
    assert len(found.qrels()) == 6
    content = (tmp_path / "bob.jsonl").read_text("utf-8")
    other = json.dumps({"query_id": order[9][0], "doc_id": order[9][1], "grade": 3, "judge": "ann"})
    (tmp_path / "more.jsonl").write_text(f"{content}{other}\nnot JSON\n", "utf-8")
    with opened(page, accept_downloads=True) as tab:
        assert tab.locator("#progress").text_content().startswith("0 of 60")
        tab.locator("#import").set_input_files(tmp_path / "more.jsonl")
        tab.wait_for_function("() => document.getElementById('bar').value === 7")
        assert "2 lines ignored" in tab.locator("#said").text_content()
        assert shown(tab) == order[7][1]
        tab.locator("#import").set_input_files(tmp_path / "more.jsonl")
        tab.wait_for_function("() => document.getElementById('said').textContent.startsWith('0 lines')")
        export(tab).save_as(tmp_path / "again.jsonl")
    assert lines(tmp_path / "again.jsonl") == lines(tmp_path / "bob.jsonl")


def test_the_single_file_asks_for_a_name(demo, demo_pool, opened, tmp_path):
    html(demo_pool, demo, tmp_path / "page.html")
    with opened(tmp_path / "page.html", accept_downloads=True) as tab:
        tab.keyboard.type("Zoë <b>")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#work:not([hidden])")
        press(tab, "2", 1)
        tab.reload()
        tab.wait_for_selector("html[data-ready=yes]", state="attached")
        assert tab.locator("#judge").text_content() == "Zoë <b>"
        press(tab, "2", 2)
        assert export(tab).suggested_filename == "judgments-Zoë-b.jsonl"


def test_two_tabs_of_the_single_file_lose_nothing(demo, demo_pool, chromium, tmp_path):
    html(demo_pool, demo, tmp_path / "page.html", "bob")
    context = chromium.new_context(accept_downloads=True)
    tabs = [context.new_page(), context.new_page()]
    for tab in tabs:
        go_to(tab, (tmp_path / "page.html").as_uri())
    for number in range(3):
        for tab in tabs:
            tab.bring_to_front()
            before = shown(tab)
            takes_grades(tab)
            tab.keyboard.press("2")
            tab.wait_for_function("old => document.getElementById('doc-id').textContent !== old", arg=before)
        export(tabs[0]).save_as(tmp_path / "j.jsonl")
        assert len(lines(tmp_path / "j.jsonl")) == 2 * (number + 1)
    context.close()


# Hostile texts


@pytest.mark.parametrize("form", ["server", "file"])
def test_hostile_text_is_shown_and_never_run(visited, opened, tmp_path, form):
    texts = {f"{text} {n}": {"title": text, "text": f"{text} in {text}"} for n, text in enumerate(HOSTILE)}
    queries = {f"{text} {n}": f"{text} asked" for n, text in enumerate(HOSTILE)}
    dataset = sy.Dataset.of(texts, queries, {next(iter(queries)): [next(iter(texts))]}, name=HOSTILE[1])
    documents = pool({HOSTILE[0]: {query: [doc] for query, doc in zip(queries, texts, strict=True)}})
    judge = HOSTILE[0]
    guidelines = Guidelines.of(
        {"title": HOSTILE[1], "text": HOSTILE[2], "grades": {0: HOSTILE[0], 1: {"label": HOSTILE[4], "key": "<"}}}
    )

    def attack(tab):
        seen = {}
        for number in range(len(HOSTILE)):
            settled(tab)
            seen[shown(tab)] = (
                tab.locator("#query").text_content(),
                tab.locator("#title").text_content(),
                tab.locator("#text").text_content(),
            )
            press(tab, "n")
            tab.keyboard.type("</script><script>globalThis.hacked = 9</script>")
            press(tab, "Enter")
            press(tab, "j")
            press(tab, "m")
            press(tab, "<", number + 1)
        assert tab.evaluate("globalThis.hacked") is None
        assert tab.locator("img, iframe, object, embed").count() == 0
        assert tab.locator("script").count() == 2
        assert tab.locator("#judge").text_content() == judge
        assert HOSTILE[2] in tab.locator("#help").text_content()
        pictures = {n: 0x2400 + n for n in range(32) if n not in (9, 10)} | {127: 0x2421}
        assert seen == {
            f"{text} {n}".translate(pictures): tuple(
                part.translate(pictures) for part in (f"{text} asked", text, f"{text} in {text}")
            )
            for n, text in enumerate(HOSTILE)
        }

    if form == "server":
        with (
            serving(documents, dataset, tmp_path / "j.jsonl", judge, guidelines) as server,
            visited(server.address) as tab,
        ):
            attack(tab)
        found = Judgments.read(tmp_path / "j.jsonl").current
        assert {(line.query_id, line.doc_id) for line in found} == set(zip(queries, texts, strict=True))
        for line in found:
            for span in line.more["spans"]:
                text = dataset.corpus.texts[line.doc_id]
                assert text[span["start"] : span["end"]] == span["content"]
    else:
        html(documents, dataset, tmp_path / "page.html", judge, guidelines=guidelines)
        with opened(tmp_path / "page.html") as tab:
            attack(tab)


def test_a_page_elsewhere_cannot_judge(demo, demo_pool, chromium, tmp_path):
    with serving(demo_pool, demo, tmp_path / "j.jsonl") as server:
        (tmp_path / "evil.html").write_text("<title>evil</title>")
        context = chromium.new_context()
        tab = context.new_page()
        tab.goto((tmp_path / "evil.html").as_uri())
        outcome = tab.evaluate(
            """async (address) => {
                const body = JSON.stringify({ query_id: "fact-01", doc_id: "index-01", grade: 3 });
                const headers = { "Content-Type": "application/json" };
                const asked = [
                    fetch(address + "judgment", { method: "POST", headers, body }),
                    fetch(address + "judgment", { method: "POST", mode: "no-cors", body }),
                    fetch(address).then((answer) => answer.text()),
                ];
                return (await Promise.allSettled(asked)).map((each) => each.status + (each.value ?? ""));
            }""",
            server.address,
        )
        assert outcome == ["rejected"] * 3
        context.close()
    assert not (tmp_path / "j.jsonl").exists()


# How it looks


def test_phone(demo, demo_pool, visited, tmp_path):
    with serving(demo_pool, demo, tmp_path / "j.jsonl") as server, visited(server.address, **PHONE) as tab:
        for number in range(3):
            takes_grades(tab)
            tab.locator(".grade").nth(number).tap()
            tab.wait_for_function("n => document.getElementById('bar').value === n", arg=number + 1)
        tab.locator("[data-action=note]").tap()
        assert tab.evaluate("document.documentElement.scrollWidth") == 390
        assert tab.evaluate("document.documentElement.scrollHeight") == 844
        for button in tab.locator("button:visible").all():
            box = button.bounding_box()
            assert box["height"] >= 32, button.text_content()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 390
            assert box["y"] + box["height"] <= 844
        assert tab.locator("#document").bounding_box()["height"] > 250


def test_dark_and_light(demo, demo_pool, visited, tmp_path):
    paint = "getComputedStyle(document.body).backgroundColor"
    with serving(demo_pool, demo, tmp_path / "j.jsonl") as server:
        with visited(server.address, color_scheme="light") as tab:
            assert tab.evaluate(paint) == "rgb(250, 249, 246)"
        with visited(server.address, color_scheme="dark") as tab:
            assert tab.evaluate(paint) == "rgb(17, 23, 26)"
            tab.locator("#theme").click()
            assert tab.evaluate(paint) == "rgb(250, 249, 246)"
            tab.reload()
            assert tab.evaluate(paint) == "rgb(250, 249, 246)", "the choice is kept"
            press(tab, "1", 1)


VIEWS = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "phone": PHONE,
    "phone, dark": {**PHONE, "color_scheme": "dark"},
}


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing(demo, demo_pool, visited, tmp_path, view):
    axe = import_peer("axe_playwright_python.sync_playwright")

    def check(tab):
        found = axe.Axe().run(tab).response["violations"]
        assert [(each["id"], [node["html"][:200] for node in each["nodes"][:5]]) for each in found] == []

    options = {**VIEWS[view], "bypass_csp": True, "reduced_motion": "reduce"}
    documents, dataset = small({"a": "To weigh gold. " * 400, "b": "Gold."}, query="weigh gold " * 60)
    with serving(documents, dataset, tmp_path / "j.jsonl") as server, visited(server.address, **options) as tab:
        press(tab, "j")
        press(tab, "m")
        press(tab, "n")
        tab.keyboard.type("A note")
        check(tab)
        press(tab, "Escape")
        press(tab, "1", 1)
        press(tab, "?")
        check(tab)
        press(tab, "Escape")
        settled(tab)
        tab.locator("#open-review").click()
        assert tab.locator("#review-list li").count() == 1
        check(tab)
        tab.locator("#close-review").click()
        tab.evaluate("document.getElementById('failed').hidden = false")
        check(tab)
        press(tab, "2", 2)
        check(tab)
    html(demo_pool, demo, tmp_path / "page.html")
    with visited((tmp_path / "page.html").as_uri(), **options) as tab:
        check(tab)
