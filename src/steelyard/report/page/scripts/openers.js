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
  if (byId("matrix")) setUpMatrix(data, store, byId("matrix"));
}

// The matrix has one tab stop; arrow keys move between its cells, and the more a cell differs, the darker it is.
function setUpMatrix(data, store, table) {
  const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.querySelector("button")));
  const buttons = rows.flat().filter((each) => each !== null);
  const sizes = buttons.map((each) => Math.abs(parseFloat(each.firstChild.textContent)));
  const most = Math.max(...sizes) || 1;
  buttons.forEach((each, at) => {
    each.tabIndex = at ? -1 : 0;
    each.style.setProperty("--part", String(sizes[at] / most));
  });
  const visit = (button) => {
    for (const each of buttons) each.tabIndex = -1;
    button.tabIndex = 0;
    button.focus();
  };
  table.addEventListener("pointerover", (event) => {
    const button = event.target.closest("button");
    const pair = button && data.pairs[Number(button.dataset.pair)];
    if (pair) button.title = `${visible(data.runs[pair.run])} vs ${visible(data.runs[pair.against])}: ${pair.facts.map(([, which]) => which).slice(0, 3).join(", ")}`;
  });
  table.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    visit(button);
    if (button.hasAttribute("aria-pressed")) closePair();
    else showPair(data, store, button);
  });
  table.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const row = rows.findIndex((each) => each.includes(event.target));
    if (!step || row < 0) return;
    event.preventDefault();
    let [y, x] = [row + step[0], rows[row].indexOf(event.target) + step[1]];
    // The diagonal is empty: it is stepped over.
    if (rows[y] && x > 0 && !rows[y][x]) [y, x] = [y + step[0], x + step[1]];
    const next = rows[y]?.[x];
    if (next) visit(next);
  });
  addEventListener("pointerdown", (event) => {
    if (!byId("pair").hidden && !event.target.closest("#pair, #matrix")) byId("pair").hidden = true;
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !byId("pair").hidden && !document.querySelector("dialog[open]")) closePair();
  });
}

// Escape, and a click on the same cell, close the details.
function closePair() {
  byId("pair").hidden = true;
  byId("matrix").querySelector("[aria-pressed]")?.focus();
  for (const other of byId("matrix").querySelectorAll("[aria-pressed]")) other.removeAttribute("aria-pressed");
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
  // Below the cell, within the section.
  const [cell, section] = [button.getBoundingClientRect(), panel.offsetParent.getBoundingClientRect()];
  panel.style.top = `${cell.bottom - section.top + 4}px`;
  panel.style.left = `${Math.max(0, Math.min(cell.left - section.left, section.width - panel.offsetWidth))}px`;
}
