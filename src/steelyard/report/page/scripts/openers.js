// What opens queries: steps, cells of the failures, and pairs of runs in the matrix of differences.

import { append, byId, make, nameOf, whenParsed } from "./dom.js";
import { savePool, unjudgedOf } from "./pool.js";
import { DEFAULTS } from "./state.js";
import { visible } from "./text.js";

export function setUpOpeners(data, store) {
  for (const button of document.querySelectorAll("#next button[data-view]")) {
    const view = JSON.parse(button.dataset.view);
    if (button.dataset.pool) setUpStepPool(data, button, view);
    else button.addEventListener("click", () => openQueries(store, view));
  }
  byId("failure-table")?.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) openQueries(store, { run: button.dataset.run, filter: button.dataset.kind });
  });
  byId("matrix")?.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) showPair(data, store, button);
  });
}

export function openQueries(store, view) {
  const { find, filter, slice, measure, page } = DEFAULTS;
  store.set({ find, filter, slice, measure, page, ...view });
  const section = byId("queries");
  section.scrollIntoView();
  section.querySelector("h2").focus({ preventScroll: true });
}

// The unjudged documents that only one of two runs has in its first documents, as a pool.
function setUpStepPool(data, button, view) {
  const pair = [view.run, view.against].map((name) => data.runs.indexOf(name));
  button.hidden = !data.listed.size;
  const save = () => {
    const all = unjudgedOf(data, [...data.listed], pair) ?? [];
    const documents = all.filter((each) => each.places.length === 1).slice(0, Number(button.dataset.pool));
    if (documents.length) savePool(data, documents, "pool", pair);
  };
  button.addEventListener("click", () => whenParsed(save));
}

function showPair(data, store, button) {
  const pair = data.pairs[Number(button.dataset.pair)];
  for (const other of byId("matrix").querySelectorAll("[aria-pressed]")) other.removeAttribute("aria-pressed");
  button.setAttribute("aria-pressed", "true");
  const panel = byId("pair");
  panel.replaceChildren();
  const [run, against] = [data.runs[pair.run], data.runs[pair.against]];
  append(panel, [
    make("h4", {}, nameOf(visible(run)), " vs ", nameOf(visible(against))),
    make("dl", { class: "lead" }, pair.facts.map(([what, which]) => make("div", {}, make("dt", {}, visible(what)), make("dd", {}, which)))),
    make("p", {}, visible(pair.power)),
    make("button", { type: "button", class: "quiet", onclick: () => openQueries(store, { run, against }) }, "Show the queries"),
  ]);
  panel.hidden = false;
}
