"""The page's modules by themselves: state and address, marking, weights, order."""

from __future__ import annotations

import pytest

from steelyard.report.page.embed import page_script

EXPORTS = "readState, writeState, DEFAULTS, terms, parts, excerpt, visible, weigh, readWeights, choose, winner,"
EXPORTS += " number, signed, labelled, missing, runColumns, stageColumns"


@pytest.fixture(scope="module")
def modules(chromium):
    """A tab with the page's functions on `modules`."""
    tab = chromium.new_context(offline=True).new_page()
    source = page_script().rpartition("start();")[0]
    tab.add_script_tag(type="module", content=f"{source}\nglobalThis.modules = {{ {EXPORTS} }};")
    tab.wait_for_function("globalThis.modules !== undefined")
    yield tab
    tab.context.close()


def test_the_state_is_written_to_the_address_and_read_back(modules):
    state = {"query": "q&1=#%", "find": "a b", "filter": "lost", "rising": True, "page": 3, "weights": "1,0.5"}
    again = modules.evaluate("state => modules.readState(modules.writeState({ ...modules.DEFAULTS, ...state }))", state)
    assert again == {**modules.evaluate("({ ...modules.DEFAULTS })"), **state}
    assert modules.evaluate("modules.writeState({ ...modules.DEFAULTS })") == "#"
    assert modules.evaluate("modules.readState('#leaderboard').filter") == "all"


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("penalty fares", "The penalty fare is high; fares, faring.", ["penalty", "fare", "fares", "faring"]),
        ("What is the cost?", "the cost is what it is", ["cost"]),
        ("東京の天気", "東京は晴れ、天気がよい", ["東京", "天気"]),
        ("Straße", "STRASSE straße", ["straße"]),
        ("a", "nothing here", []),
        ("<b>", "<b>bold</b>", ["b", "b"]),
    ],
)
def test_terms_are_marked(modules, query, text, marked):
    parts = modules.evaluate("([query, text]) => modules.parts(text, modules.terms(query))", [query, text])
    assert "".join(part["text"] for part in parts) == text
    assert [part["text"] for part in parts if part["marked"]] == marked


def test_an_excerpt_starts_near_the_first_term(modules):
    text = "word " * 300 + "penalty fare " + "more " * 300
    found = modules.evaluate("([text, query]) => modules.excerpt(text, modules.terms(query))", [text, "penalty"])
    assert found.startswith("… word")
    assert "penalty" in found[:110]
    assert len(found) < 330
    assert modules.evaluate("modules.excerpt('short', modules.terms('x'))") == "short"
    assert modules.evaluate("text => modules.excerpt(text, modules.terms('absent'))", text).startswith("word word")


def test_control_characters_are_visible(modules):
    assert modules.evaluate("modules.visible('a\\u0000b\\u007f\\n')") == "a␀b␡\n"


def test_wrong_weights_are_ignored(modules):
    read = "([text, given]) => modules.readWeights(text, given)"
    assert modules.evaluate(read, ["0.5,1", [1, 1]]) == [0.5, 1]
    for wrong in ("", "1", "1,2,3", "1,x", "-1,2", "0,0", "1,Infinity"):
        assert modules.evaluate(read, [wrong, [0.3, 0.7]]) == [0.3, 0.7]


def test_weighing_two_runs(modules):
    board = {"means": [[0.5, 0.2], [0.4, 0.6]], "covariance": [0.0] * 16, "queries": 100, "reach": 2.0}
    board["covariance"][0] = 0.04
    found = modules.evaluate("([board, weights]) => modules.weigh(board, weights)", [board, [1, 0]])
    assert found["order"] == [0, 1]
    assert found["means"] == [0.5, 0.4]
    assert found["halves"] == [pytest.approx(2 * (0.04 / 100) ** 0.5), 0]
    assert found["lead"]["gap"] == pytest.approx(0.1)
    turned = modules.evaluate("([board, weights]) => modules.weigh(board, weights)", [board, [1, 3]])
    assert turned["order"] == [1, 0]
    assert turned["means"] == pytest.approx([0.275, 0.55])


DATA = """
() => {
  const values = [[1, 0, NaN, 0.5], [0.5, 0, 0.2, 0.5]];
  globalThis.data = {
    runs: ["a", "b"], baseline: 1, leader: 0, second: 1, size: 4, judged: false,
    measures: [{ label: "m", better: "more" }],
    queries: ["q1", "q2", "q3", "q4"], haystack: ["q1\\nred", "q2\\nblue", "q3\\nred", "q4\\ngreen"],
    slices: [{ column: "kind", values: ["x", "y"], codes: [0, 1, 0, 1] }],
    value: (m, run, q) => values[run][q], worth: (m, run, q) => values[run][q], failure: () => 0,
  };
}
"""


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({}, [0, 1, 3, 2]),
        ({"sort": "run:1"}, [0, 3, 2, 1]),
        ({"sort": "run:0", "rising": True}, [1, 3, 0, 2]),
        ({"sort": "query", "rising": True}, [0, 1, 2, 3]),
        ({"find": "RED"}, [0, 2]),
        ({"slice": "kind:y"}, [1, 3]),
        ({"slice": "kind:z"}, [0, 1, 3, 2]),
        ({"filter": "missed"}, [1]),
        ({"filter": "one"}, [0]),
        ({"filter": "one", "run": "b", "against": "a"}, [2]),
        ({"filter": "nobody"}, [1]),
        ({"filter": "lost", "run": "b", "against": "a"}, [0]),
        ({"run": "b", "against": "a", "sort": "difference"}, [1, 3, 0, 2]),
    ],
)
def test_queries_are_chosen_and_ordered(modules, state, expected):
    modules.evaluate(DATA)
    found = modules.evaluate("state => modules.choose(data, { ...modules.DEFAULTS, ...state })", state)
    assert found == expected


def test_documents_are_labelled(modules):
    entry = {
        "lists": [[[0, 9.5], [1], [0], [2], [3], [4], [5]], None],
        "judged": [
            [0, 2, ["t"], [1, 0]],
            [2, 1, ["t"], [4, 0]],
            [3, -1, [], [5, 0]],
            [4, 0, [], [6, 0]],
            [6, 1, ["u"], [0, 0]],
        ],
    }
    found = modules.evaluate("entry => modules.labelled(entry, entry.lists[0])", entry)
    kinds = [(item["kind"], item["since"]) for item in found]
    assert kinds == [
        ("relevant", 0),
        ("unjudged", 0),
        ("repeat", 1),
        ("again", 1),
        ("distractor", 0),
        ("judged", 0),
        ("unjudged", 0),
    ]
    assert modules.evaluate("entry => modules.labelled(entry, entry.lists[1])", entry) is None
    columns = "modules.runColumns({ runs: ['a', 'b'] }, entry, [0])"
    gone = modules.evaluate(f"entry => modules.missing(entry, {columns}, 20)", entry)
    assert [item["doc"] for item in gone] == [6]


def test_stages_are_columns_in_the_order_of_the_pipeline(modules):
    entry = {
        "lists": [[[2, 9.5], [0]]],
        "judged": [[0, 1, [], [2]], [1, 1, [], [0]], [5, 1, [], [None]]],
        "stages": {"0": [[[0, 1, 0], [[2, 40]]], [[], []]]},
    }
    of_run = {"runs": ["a"], "stages": {"0": [["second", []], ["first", []], ["fuse", [0, 1]]]}}
    columns = modules.evaluate("([data, entry]) => modules.stageColumns(data, entry, 0)", [of_run, entry])
    assert [(each["name"], each["rows"], each["ranks"], each["from"]) for each in columns] == [
        ("second", [[0], [1], [0]], [1, 2, None], []),
        ("first", [], [0, 0, None], []),
        ("fuse", [[2, 9.5], [0]], [2, 0, None], [0, 1]),
    ]
    assert (
        modules.evaluate("([data, entry]) => modules.stageColumns(data, entry, 0)[0].places.get(2)", [of_run, entry])
        == 40
    )
