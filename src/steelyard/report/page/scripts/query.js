// One query: the failures of each run, the lists side by side, and the relevant documents that were missed.

import { chosenPair, failureWords, foundText, measureNamed } from "./data.js";
import { append, byId, make, nameOf, whenParsed } from "./dom.js";
import { LABELS, documentAt, labelled, listsOf, missing, relevantGrades, runColumns, stageColumns } from "./lists.js";
import { drawMoves } from "./moves.js";
import { savePool, unjudgedOf } from "./pool.js";
import { sliceOf } from "./selection.js";
import { counted, excerpt, inUnits, partsOfLong, terms, visible } from "./text.js";

const SIDE_BY_SIDE = 3;
const FIRST_SHOWN = 10;

export function setUpQuery(data, store, order) {
  const dialog = byId("query");
  const open = (query, step) => store.set({ query: data.queries[query], lists: "" }, step);
  const render = (state) => {
    const query = data.place.get(state.query);
    if (query === undefined) {
      if (dialog.open) dialog.close();
      return;
    }
    fill(dialog, data, state, store, query);
    const listed = order();
    const at = listed.indexOf(query);
    for (const [id, next] of [
      ["query-back", listed[at - 1]],
      ["query-on", listed[at + 1]],
    ]) {
      byId(id).disabled = at < 0 || next === undefined;
      byId(id).onclick = () => open(next, false);
    }
    if (!dialog.open) {
      dialog.showModal();
      dialog.scrollTop = 0;
    }
    requestAnimationFrame(() => redraw(dialog));
  };
  byId("query-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => store.get().query && store.set({ query: "", lists: "", stages: "" }));
  dialog.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input:not([type=checkbox]), select, textarea");
    if (typing || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowLeft" && !byId("query-back").disabled) byId("query-back").click();
    if (event.key === "ArrowRight" && !byId("query-on").disabled) byId("query-on").click();
  });
  new ResizeObserver(() => redraw(dialog)).observe(byId("query-body"));
  store.watch((state, before) => {
    if (["query", "lists", "stages", "measure", "run", "against"].some((name) => state[name] !== before[name])) whenParsed(() => render(store.get()));
  });
  if (store.get().query) whenParsed(() => render(store.get()));
  return open;
}

function redraw(dialog) {
  const stage = dialog.querySelector(".stage");
  if (stage) drawMoves(stage, stage.querySelector("svg"));
}

function fill(dialog, data, state, store, query) {
  const text = data.texts[query];
  const shownText = visible(text || data.queries[query]);
  byId("query-title").replaceChildren(make("bdi", {}, shownText));
  const about = byId("query-about");
  about.replaceChildren();
  append(about, [make("bdi", { class: "id" }, visible(data.queries[query])), ...sliceTags(data, query)]);
  const body = byId("query-body");
  body.replaceChildren();
  const staged = stagedRun(data, state);
  const shown = staged < 0 ? shownRuns(data, state, query) : [staged];
  append(body, [overview(data, store, query, shown, staged)]);
  const entry = listsOf(query);
  if (entry === null) append(body, [make("p", { class: "absent" }, leftOut(data))]);
  else {
    const columns = staged < 0 ? runColumns(data, entry, shown) : stageColumns(data, entry, staged);
    append(body, [
      errorsOf(data, entry),
      missed(entry, columns),
      toJudge(data, query),
      sideBySide(entry, columns, terms(text), data.cutoff),
    ]);
  }
}

function toJudge(data, query) {
  const documents = data.judged && unjudgedOf(data, [query]);
  if (!documents?.length) return null;
  const unjudged = counted(documents.length, "unjudged document", "unjudged documents");
  const save = () => savePool(data, documents, `pool-${data.queries[query]}`);
  return make(
    "p",
    { class: "to-judge" },
    make("button", { type: "button", class: "quiet", onclick: save }, `Download a pool of ${unjudged}`),
    ` in the first ${data.cutoff} of the runs. Judge it with `,
    make("code", {}, "steelyard judge"),
    ".",
  );
}

function leftOut(data) {
  return data.judged
    ? `The lists of this query were left out to limit the size of the page${data.whole ? `; \`${data.whole}\` includes every list` : ""}.`
    : "This page was made from scores alone: it has no lists.";
}

function sliceTags(data, query) {
  return data.slices.map((each) => {
    const [column, code] = sliceOf(data, `${each.column}:${each.values[each.codes[query]]}`);
    return column && make("span", { class: "tag" }, make("bdi", {}, visible(`${each.column}: ${column.values[code]}`)));
  });
}

// The run whose stages are shown; -1 if lists of runs are.
function stagedRun(data, state) {
  const run = data.runs.indexOf(state.stages);
  return data.stages[run] ? run : -1;
}

// The runs whose lists are shown: those in the address, or the two that are compared and the best of the others.
function shownRuns(data, state, query) {
  const named = state.lists ? state.lists.split(".").map(Number) : [];
  const valid = [...new Set(named)].filter((run) => data.runs[run] !== undefined);
  if (state.lists) return valid;
  const measure = measureNamed(data, state.measure);
  const [run, against] = chosenPair(data, state);
  const pair = [against, run].filter((each) => each >= 0);
  const rest = data.order.filter((each) => !pair.includes(each));
  rest.sort((a, b) => data.worth(measure, b, query) - data.worth(measure, a, query) || a - b);
  const most = matchMedia("(max-width: 45rem)").matches ? 2 : SIDE_BY_SIDE;
  return [...new Set([...pair, ...rest])].slice(0, most);
}

function overview(data, store, query, shown, staged) {
  const head = ["List", "Run", "Outcome", ...data.measures.map((measure) => measure.label)];
  const best = data.measures.map((_, measure) => bestOf(data.runs.map((__, run) => data.worth(measure, run, query))));
  const rows = data.order.map((run) => {
    const name = data.runs[run];
    const box = make("input", { type: "checkbox", "aria-label": `show the list of ${visible(name)}` });
    box.checked = shown.includes(run);
    box.addEventListener("change", () => {
      const next = box.checked ? [...shown, run] : shown.filter((each) => each !== run);
      store.set({ lists: next.length ? next.join(".") : "none", stages: "" });
      document.querySelector(`#query-body input[data-run="${run}"]`)?.focus();
    });
    box.dataset.run = String(run);
    return make(
      "tr",
      {},
      make("td", {}, box, data.stages[run] ? stagesButton(store, run, name, run === staged) : null),
      make("th", { scope: "row" }, nameOf(visible(name))),
      make("td", {}, failureTags(data, run, query)),
      data.measures.map((_, measure) =>
        make(
          "td",
          { class: data.worth(measure, run, query) === best[measure] ? "number best" : "number" },
          inUnits(data.measures[measure], data.value(measure, run, query), 3),
        ),
      ),
    );
  });
  const heads = head.map((each, at) => make("th", { scope: "col", class: at > 2 ? "number" : "" }, make("bdi", {}, visible(each))));
  return make(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Each run on this query" },
    make("table", { class: "glance" }, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, rows)),
  );
}

function stagesButton(store, run, name, pressed) {
  const show = () => {
    store.set({ stages: pressed ? "" : name, lists: "" });
    document.querySelector(`#query-body button[data-run="${run}"]`)?.focus();
  };
  const label = `show the stages of ${visible(name)}`;
  return make("button", { type: "button", class: "quiet", "aria-pressed": String(pressed), "aria-label": label, "data-run": run, onclick: show }, "Stages");
}

// The best of some values; NaN where all are equal.
function bestOf(values) {
  const best = Math.max(...values);
  return values.every((value) => value === best) ? NaN : best;
}

export function failureTags(data, run, query) {
  const words = failureWords(data, run, query);
  if (!data.judged) return [];
  if (!words.length) {
    const all = data.found(run, query) === data.relevant(run, query);
    return [make("span", { class: "tag found" }, all ? "✓ all found" : `✓ ${foundText(data, run, query)}`)];
  }
  return words.map(([kind, text]) => make("span", { class: `tag ${kind}` }, text));
}

function errorsOf(data, entry) {
  const failed = Object.entries(entry.errors ?? {});
  if (!failed.length) return null;
  return make(
    "ul",
    { class: "errors" },
    failed.map(([run, error]) =>
      make("li", {}, make("bdi", {}, visible(data.runs[run])), " failed: ", make("bdi", {}, visible(error))),
    ),
  );
}

function sideBySide(entry, columns, queryTerms, cutoff) {
  const sections = columns.map(({ name: title, rows, from }) => {
    const name = make("h3", {}, nameOf(visible(title)));
    const list = labelled(entry, rows);
    const holder = { class: "list", "data-from": from.join(" ") };
    if (!list?.length) return make("section", holder, name, make("p", { class: "absent" }, "No document was retrieved."));
    const before = from.map((other) => columns[other].places);
    const items = list.map((item) => card(item, queryTerms, before, cutoff));
    const rest = items.slice(FIRST_SHOWN);
    rest.forEach((item) => (item.hidden = true));
    const more = rest.length
      ? make("button", { class: "quiet", onclick: (event) => reveal(event.target, rest) }, `Show ${rest.length} more`)
      : null;
    return make("section", holder, name, make("ol", {}, items), more);
  });
  const stage = make(
    "div",
    { class: "stage", tabindex: 0, role: "region", "aria-label": "Ranked lists side by side", style: `--lists: ${columns.length}` },
    sections,
  );
  const canvas = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  canvas.setAttribute("class", "moves");
  canvas.setAttribute("aria-hidden", "true");
  stage.append(canvas);
  return stage;
}

function reveal(button, items) {
  items.forEach((item) => (item.hidden = false));
  items[0].querySelector("button, .title")?.focus?.();
  const stage = button.closest(".stage");
  button.remove();
  drawMoves(stage, stage.querySelector("svg"));
}

function card(item, queryTerms, before, cutoff) {
  const { id, title, text, cut } = documentAt(item.doc);
  const [shape, word] = LABELS[item.kind];
  const grade = item.grade > 0 && item.kind !== "repeat" ? ` ${item.grade}` : "";
  const about = item.kind === "partly" ? "below the lowest relevant grade; measures that read grades count it" : null;
  const since = item.since ? `, repeats rank ${item.since}` : "";
  const head = make(
    "div",
    { class: "head" },
    make("span", { class: "place" }, item.rank),
    make("span", { class: `label ${item.kind}`, title: about }, `${shape} ${word}${grade}${since}`),
    moved(item, before),
    item.score === undefined ? null : make("span", { class: "score", title: "score" }, item.score),
  );
  const holder = make("li", { value: item.rank, class: item.rank === cutoff ? "last-in" : "", "data-doc": item.doc, "data-kind": item.kind }, head);
  append(holder, [make("div", { class: "title", dir: "auto" }, marked(visible(title || id), queryTerms))]);
  if (title) append(holder, [make("bdi", { class: "id" }, visible(id))]);
  if (item.targets.length && item.grade > 0) append(holder, [make("div", { class: "targets" }, "for ", make("bdi", {}, visible(item.targets.join(", "))))]);
  if (text) append(holder, textOf(text, cut, queryTerms));
  else if (text === null) append(holder, [make("div", { class: "absent" }, "the result does not include its text")]);
  return holder;
}

function textOf(text, cut, queryTerms) {
  const shown = make("div", { class: "text clamped", dir: "auto" });
  const fill = (open) => {
    shown.replaceChildren(...marked(open ? visible(text) : excerpt(visible(text), queryTerms), queryTerms));
    if (open && cut) append(shown, [make("span", { class: "cut" }, ` … ${cut.toLocaleString("en")} more characters left out`)]);
  };
  fill(false);
  if (text.length < 140 && !cut) return [shown];
  const toggle = make("button", { class: "quiet", "aria-expanded": "false" }, "More");
  toggle.addEventListener("click", () => {
    const open = shown.classList.toggle("clamped") === false;
    fill(open);
    toggle.textContent = open ? "Less" : "More";
    toggle.setAttribute("aria-expanded", String(open));
    const stage = toggle.closest(".stage");
    drawMoves(stage, stage.querySelector("svg"));
  });
  return [shown, toggle];
}

function marked(text, queryTerms) {
  return partsOfLong(text, queryTerms).map((part) => (part.marked ? make("mark", {}, part.text) : part.text));
}

function moved(item, before) {
  if (!before.length) return null;
  const was = Math.min(...before.map((places) => places.get(item.doc) ?? Infinity));
  const change = was === Infinity ? "new" : was === item.rank ? "=" : was > item.rank ? `▲ ${was - item.rank}` : `▼ ${item.rank - was}`;
  const previous = before.length > 1 ? "the previous lists" : "the previous list";
  const title = was === Infinity ? `not in ${previous}` : `at ${was} in ${previous}`;
  return make("span", { class: "moved", title }, change);
}

function missed(entry, columns) {
  const depth = Math.max(0, ...columns.map(({ rows }) => rows?.length ?? 0));
  const rows = missing(entry, columns, depth);
  const which = relevantGrades(entry);
  if (!entry.relevant) return make("p", { class: "note" }, `No document is judged relevant${which} to this query.`);
  if (!rows.length) return make("p", { class: "note" }, `Every relevant document${which} is in every list shown.`);
  const head = ["Relevant document", "Grade", ...columns.map(({ name }) => name)];
  const table = make(
    "table",
    { class: "missed" },
    make("thead", {}, make("tr", {}, head.map((each, at) => make("th", { scope: "col", class: at ? "number" : "" }, make("bdi", {}, visible(each)))))),
    make(
      "tbody",
      {},
      rows.map(({ doc, grade, ranks }) => {
        const { id, title } = documentAt(doc);
        return make(
          "tr",
          {},
          make("th", { scope: "row" }, make("bdi", {}, visible(title || id)), title ? make("bdi", { class: "id" }, ` ${visible(id)}`) : null),
          make("td", { class: "number" }, grade),
          ranks.map((rank, at) => {
            const lost = columns[at].stage && columns[at].from.some((other) => ranks[other] > 0);
            return make("td", { class: "number" }, rankText(rank, depth, lost));
          }),
        );
      }),
    ),
  );
  const hidden = entry.hidden ? make("p", { class: "note" }, `… and ${entry.hidden.toLocaleString("en")} more.`) : null;
  const title = make("h3", {}, `Relevant documents${which} that a list misses, and their ranks`);
  return make("section", { class: "misses" }, title, make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Missed relevant documents" }, table), hidden);
}

function rankText(rank, depth, lost) {
  if (rank === null) return make("span", { class: "elsewhere" }, "of another chunking");
  if (rank === 0) return make("span", { class: "tag missed" }, lost ? "✖ lost" : "✖ not retrieved");
  return rank > depth ? make("span", { class: "tag low" }, `▼ at ${rank}`) : `at ${rank}`;
}
