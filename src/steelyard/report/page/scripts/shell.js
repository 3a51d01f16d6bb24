// Pages of tables and drawings: theme, links to the sections, order of tables, shades, and one measure of several.

import { byId, drawn, make } from "./dom.js";
import { setUpTheme } from "./theme.js";

const MARK = "M3 11 29 7M9 10v9M4 19h10l-2 5H6zM16 9V4M24 8v6M24 14a3 3 0 1 1-.1 0z";

export function setUpShell() {
  const mark = drawn("svg", { viewBox: "0 0 32 32", width: 26, height: 26, "aria-hidden": "true" });
  mark.append(drawn("path", { d: MARK, fill: "none", stroke: "currentColor", "stroke-width": 2, "stroke-linecap": "round", "stroke-linejoin": "round" }));
  document.querySelector(".brand").prepend(mark);
  const button = make("button", { id: "theme", type: "button", class: "quiet" }, make("span", { "aria-hidden": "true" }, "◐"), " ");
  button.append(make("span", { class: "word" }), make("span", { class: "aside" }, " theme"));
  document.querySelector(".top").append(button);
  setUpTheme(button, () => {});
  const links = document.querySelector(".top nav");
  for (const section of document.querySelectorAll("main > section[id]:not(#verdict)")) {
    links.append(make("a", { href: `#${section.id}` }, section.querySelector("h2").textContent));
  }
  document.querySelectorAll("table[data-shade]").forEach(shade);
  document.querySelectorAll(".scroll table").forEach(setUpOrder);
  document.querySelectorAll("select[data-shows]").forEach(setUpSwitch);
  document.querySelectorAll("figure[data-ranks]").forEach(drawRanks);
}

function numberIn(cell) {
  return parseFloat(cell.dataset.value ?? cell.textContent.replaceAll(",", "").replace("<", ""));
}

// The background of numbers: from the lowest to the highest of a column, or the share of the sum of a row.
function shade(table) {
  const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].filter((cell) => cell.matches(".number, .heat")));
  const columns = rows[0]?.map((_, at) => rows.map((row) => row[at])) ?? [];
  for (const cells of table.dataset.shade === "row" ? rows : columns) {
    const known = cells.filter((cell) => !Number.isNaN(numberIn(cell)));
    const values = known.map(numberIn);
    const low = table.dataset.shade === "row" ? 0 : Math.min(...values);
    const high = table.dataset.shade === "row" ? values.reduce((sum, each) => sum + each, 0) : Math.max(...values);
    const part = (value) => (high > low ? (value - low) / (high - low) : 0);
    known.forEach((cell, at) => cell.style.setProperty("--part", String(table.matches(".less") ? 1 - part(values[at]) : part(values[at]))));
  }
}

// A table whose columns can be sorted: numbers from the highest, text from A, then the other way round.
function setUpOrder(table) {
  const body = table.tBodies[0];
  if (!body || body.rows.length < 2) return;
  for (const [at, head] of [...table.tHead.rows[0].cells].entries()) {
    if (head.querySelector("a")) continue;
    const button = make("button", { type: "button", title: "sort" });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const rows = [...body.rows];
      const numbers = rows.some((row) => !Number.isNaN(numberIn(row.cells[at])));
      const rising = head.hasAttribute("aria-sort") ? head.getAttribute("aria-sort") === "descending" : !numbers;
      rows.sort((a, b) => compared(a.cells[at], b.cells[at], numbers, rising ? 1 : -1));
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", rising ? "ascending" : "descending");
      body.append(...rows);
    });
  }
}

// The order of two cells; one without a number is last in either direction.
function compared(a, b, numbers, turn) {
  if (!numbers) return turn * a.textContent.localeCompare(b.textContent);
  const [one, other] = [numberIn(a), numberIn(b)];
  if (Number.isNaN(one) || Number.isNaN(other)) return Number(Number.isNaN(one)) - Number(Number.isNaN(other));
  return turn * (one - other);
}

// One part of several: the one that a list names.
function setUpSwitch(select) {
  const parts = [...byId(select.dataset.shows).children];
  const show = () => parts.forEach((part, at) => (part.hidden = at !== select.selectedIndex));
  select.addEventListener("change", show);
  select.closest("label").hidden = false;
  show();
}

// The critical-difference diagram: mean ranks on a line, the best at the left, and bars over runs that do not differ.
function drawRanks(figure) {
  const ranked = JSON.parse(figure.dataset.ranks).sort((a, b) => a[1] - b[1]);
  const reach = Number(figure.dataset.difference);
  const bars = joined(ranked.map(([, rank]) => rank), reach);
  const [width, margin, top] = [900, 220, 44];
  const half = Math.ceil(ranked.length / 2);
  const below = top + 14 + 9 * bars.length;
  const height = below + 20 * half + 8;
  const x = (rank) => margin + ((width - 2 * margin) * (rank - 1)) / Math.max(1, ranked.length - 1);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "Mean ranks of the runs with the critical difference", "font-size": 12, fill: "currentColor" });
  const line = (x1, y1, x2, y2, thick = 1) => svg.append(drawn("line", { x1, y1, x2, y2, stroke: "currentColor", "stroke-width": thick }));
  const text = (at, y, said, anchor) => {
    const element = drawn("text", { x: at, y, "text-anchor": anchor });
    element.textContent = said;
    svg.append(element);
  };
  line(x(1), top, x(ranked.length), top);
  const step = Math.max(1, Math.ceil(ranked.length / 12));
  for (let rank = 1; rank <= ranked.length; rank += step) {
    line(x(rank), top - 5, x(rank), top);
    text(x(rank), top - 9, String(rank), "middle");
  }
  line(x(1), 14, x(1 + Math.min(reach, ranked.length - 1)), 14, 2);
  text(x(1) - 8, 18, `critical difference ${reach.toFixed(2)}`, "end");
  bars.forEach(([from, to], at) => line(x(from) - 4, top + 10 + 9 * at, x(to) + 4, top + 10 + 9 * at, 4));
  ranked.forEach(([run, rank], place) => {
    const left = place < half;
    const y = below + 20 * (left ? place : ranked.length - 1 - place) + 10;
    line(x(rank), top, x(rank), y);
    line(left ? margin - 10 : x(rank), y, left ? x(rank) : width - margin + 10, y);
    text(left ? margin - 16 : width - margin + 16, y + 4, `${run.length > 24 ? `${run.slice(0, 23)}…` : run} ${rank.toFixed(2)}`, left ? "end" : "start");
  });
  figure.firstElementChild.append(svg);
}

// The longest ranges of sorted ranks that are not wider than the reach.
export function joined(ranks, reach) {
  const found = [];
  let last = -1;
  ranks.forEach((rank, at) => {
    const end = ranks.findLastIndex((other) => other - rank < reach);
    if (end > at && end > last) found.push([rank, ranks[end]]);
    last = Math.max(last, end);
  });
  return found;
}

setUpShell();
