// The table of queries: search, filters, order and pages.

import { showBars } from "./bars.js";
import { chosenPair, measureNamed } from "./data.js";
import { append, byId, make, nameOf, option, shortNameOf, whenParsed } from "./dom.js";
import { pickedRuns } from "./picker.js";
import { savePool, unjudgedOf } from "./pool.js";
import { failureTags } from "./query.js";
import { csvOf, saveFile } from "./save.js";
import { FILTERS, choose, filterCounts, sliceOf, winner } from "./selection.js";
import { counted, inUnits, signed, visible } from "./text.js";

const ROWS = 25;

export function setUpQueries(data, store) {
  let order = [];
  const controls = setUpControls(data, store);
  const open = (query) => store.set({ query: data.queries[query], lists: "" }, true);
  const render = (state, refocus) => {
    order = choose(data, state);
    controls.show(state);
    const pages = Math.max(1, Math.ceil(order.length / ROWS));
    const page = Math.min(state.page, pages);
    const from = (page - 1) * ROWS;
    fillTable(data, state, store, order.slice(from, from + ROWS));
    showBars(data, state, order, open);
    showPages(store, page, pages, order.length, from);
    if (refocus) document.querySelector(refocus)?.focus();
  };
  const parts = ["find", "filter", "slice", "measure", "run", "against", "sort", "rising", "page", "runs"];
  store.watch((state, before) => {
    if (parts.some((name) => state[name] !== before[name])) {
      const sorted = state.sort !== before.sort || state.rising !== before.rising;
      render(state, sorted ? `#queries-table th[data-sort="${CSS.escape(state.sort)}"] button` : null);
    }
  });
  byId("queries-table").addEventListener("click", (event) => {
    const opener = event.target.closest("button[data-query]");
    if (opener) open(Number(opener.dataset.query));
  });
  render(store.get());
  setUpPool(data, () => order);
  byId("queries-csv").addEventListener("click", () => saveQueries(data, store.get(), order));
  return () => order;
}

// The pool of the queries that are selected, where the page has their lists and there are judgments.
function setUpPool(data, order) {
  const button = byId("pool");
  button.hidden = !data.judged || !data.listed.size;
  const save = () => {
    const documents = unjudgedOf(data, [...order()].sort((a, b) => a - b));
    const said = byId("queries-said");
    if (documents === null) said.textContent = "The runs have different chunks: judge with steelyard evidence.";
    else if (!documents.length) said.textContent = `Every document in the first ${data.cutoff} of the runs is judged.`;
    else {
      savePool(data, documents, "pool");
      const queries = new Set(documents.map((each) => each.query)).size;
      said.textContent = `Pool of ${counted(documents.length, "document", "documents")} of ${counted(queries, "query", "queries")} saved. Judge it with steelyard judge.`;
    }
  };
  button.addEventListener("click", () => whenParsed(save));
}

// The selected queries as CSV: id, text, kinds, outcome of the run, and the values of the measure.
function saveQueries(data, state, order) {
  const measure = measureNamed(data, state.measure);
  const [run] = chosenPair(data, state);
  const { label } = data.measures[measure];
  const head = ["query_id", "text", ...data.slices.map((each) => each.column), ...(data.judged ? [`outcome of ${data.runs[run]}`] : [])];
  const rows = order.map((query) => [
    data.queries[query],
    data.texts[query],
    ...data.slices.map((each) => each.values[each.codes[query]]),
    ...(data.judged ? [failureTags(data, run, query).map((tag) => tag.textContent).join("; ")] : []),
    ...data.order.map((each) => data.value(measure, each, query)),
  ]);
  saveFile("queries.csv", csvOf([[...head, ...data.order.map((each) => `${label} ${data.runs[each]}`)], ...rows]), "text/csv");
}

function setUpControls(data, store) {
  const back = (change) => store.set({ ...change, page: 1 });
  const find = byId("find");
  let waiting = 0;
  find.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => back({ find: find.value }), 80);
  });
  const selects = {
    measure: data.measures.map((each) => [each.label, each.label]),
    run: data.order.map((run) => [data.runs[run], data.runs[run]]),
    against: data.order.map((run) => [data.runs[run], data.runs[run]]),
    slice: [
      ["", "All kinds"],
      ...data.slices.flatMap((each) => each.values.map((value) => [`${each.column}:${value}`, `${each.column}: ${value}`])),
    ],
  };
  for (const [id, choices] of Object.entries(selects)) {
    const select = byId(id);
    append(select, choices.map(([value, text]) => option(value, ["run", "against"].includes(id) ? shortNameOf(visible(text)) : visible(text), false)));
    select.addEventListener("change", () => back({ [id]: select.value }));
    select.closest("label").hidden = choices.length < 2;
  }
  const filters = byId("filters");
  let [counts, countedFor] = [{}, null];
  for (const [name, text] of Object.entries(FILTERS)) {
    if (!data.judged && !["all", "missed", "nobody", "one", "lost"].includes(name)) continue;
    if (data.runs.length < 2 && ["nobody", "one", "lost"].includes(name)) continue;
    const button = make("button", { type: "button", "data-filter": name, "aria-pressed": "false" }, make("span", {}, text), " ", make("span", { class: "count" }));
    button.addEventListener("click", () => back({ filter: name }));
    filters.append(button);
  }
  return {
    show(state) {
      if (document.activeElement !== find) find.value = state.find;
      const [run, against] = chosenPair(data, state);
      byId("measure").value = data.measures[measureNamed(data, state.measure)].label;
      byId("run").value = data.runs[run];
      if (against >= 0) byId("against").value = data.runs[against];
      byId("slice").value = sliceOf(data, state.slice)[0] === null ? "" : state.slice;
      const scope = [state.find, state.slice, state.measure, run, against].join("\n");
      if (scope !== countedFor) counts = filterCounts(data, state);
      countedFor = scope;
      byId("filters-of").replaceChildren("Filters for ", nameOf(visible(data.runs[run])));
      for (const button of filters.children) {
        const name = button.dataset.filter;
        const pressed = name === state.filter;
        button.setAttribute("aria-pressed", String(pressed));
        button.disabled = counts[name] === 0 && !pressed && name !== "all";
        button.querySelector(".count").textContent = counts[name].toLocaleString("en");
        if (name === "lost" && against >= 0) button.firstChild.replaceChildren("Lost vs ", make("bdi", {}, shortNameOf(visible(data.runs[against]))));
      }
    },
  };
}

function fillTable(data, state, store, shown) {
  const measure = measureNamed(data, state.measure);
  const [run, against] = chosenPair(data, state);
  const heads = [headOf("query", "Query", "", state, store)];
  if (data.judged) heads.push(make("th", { scope: "col" }, "Outcome of ", nameOf(visible(data.runs[run]))));
  if (against >= 0) heads.push(headOf("difference", "Difference", "number", state, store));
  const picked = pickedRuns(data, state);
  picked.forEach((each) => heads.push(headOf(`run:${each}`, data.runs[each], "number", state, store)));
  const top = topValue(data, measure, shown);
  const rows = shown.map((query) => rowOf(data, query, measure, run, against, top, picked));
  const table = byId("queries-table");
  table.tHead.replaceChildren(make("tr", {}, heads));
  table.tBodies[0].replaceChildren(...rows);
}

function headOf(name, text, kind, state, store) {
  const biggest = name === "difference" && state.sort === "change";
  const sorted = state.sort === name || biggest;
  const direction = biggest ? "other" : state.rising ? "ascending" : "descending";
  const button = make("button", { type: "button", title: biggest ? "sorted by absolute value" : "sort" }, nameOf(visible(text)));
  button.addEventListener("click", () =>
    store.set({ sort: name, rising: state.sort === name ? !state.rising : name === "query", page: 1 }),
  );
  return make("th", { scope: "col", class: kind, "data-sort": name, "aria-sort": sorted ? direction : null }, button);
}

function topValue(data, measure, shown) {
  const values = shown.flatMap((query) => data.runs.map((_, run) => data.value(measure, run, query)));
  const top = Math.max(0, ...values.filter((value) => value > 0));
  return top <= 1 && top > 0.2 ? 1 : top || 1;
}

function rowOf(data, query, measure, run, against, top, picked) {
  const text = data.texts[query];
  const opener = make(
    "button",
    { type: "button", class: "open", "data-query": query },
    make("bdi", { class: "asked" }, visible(text || data.queries[query])),
    text ? make("bdi", { class: "id" }, visible(data.queries[query])) : null,
  );
  const cells = [make("th", { scope: "row" }, opener)];
  if (data.judged) cells.push(make("td", { class: "failures" }, failureTags(data, run, query)));
  if (against >= 0) cells.push(differenceCell(data, measure, run, against, query));
  const best = winner(data, measure, query);
  picked.forEach((each) => {
    const value = data.value(measure, each, query);
    const cell = make("td", { class: each === best ? "number value best" : "number value" }, make("span", {}, inUnits(data.measures[measure], value, 3)));
    cell.style.setProperty("--part", String(Number.isNaN(value) ? 0 : Math.max(0, Math.min(1, value / top))));
    cells.push(cell);
  });
  return make("tr", {}, cells);
}

function differenceCell(data, measure, run, against, query) {
  const difference = data.value(measure, run, query) - data.value(measure, against, query);
  const gain = data.worth(measure, run, query) - data.worth(measure, against, query);
  const kind = gain > 0 ? "gain" : gain < 0 ? "loss" : "same";
  const shape = gain > 0 ? "▲" : gain < 0 ? "▼" : "=";
  const unit = data.measures[measure].unit === "s";
  const text = unit ? `${signed(difference * 1000, 2)} ms ` : `${signed(difference, 3)} `;
  return make("td", { class: `number difference ${kind}` }, make("span", {}, text), make("span", { class: "shape" }, shape));
}

function showPages(store, page, pages, count, from) {
  const status = byId("queries-said");
  const shown = count ? `${(from + 1).toLocaleString("en")} to ${Math.min(count, from + ROWS).toLocaleString("en")} of ` : "";
  status.textContent = count ? `${shown}${counted(count, "query", "queries")}` : "No query matches. Change the search or the filter.";
  const [back, on] = [byId("page-back"), byId("page-on")];
  back.disabled = page <= 1;
  on.disabled = page >= pages;
  back.onclick = () => store.set({ page: page - 1 });
  on.onclick = () => store.set({ page: page + 1 });
}
