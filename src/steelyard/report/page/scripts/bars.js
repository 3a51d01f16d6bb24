// The differences of two runs by query, as sorted bars that open their queries.

import { chosenPair, measureNamed } from "./data.js";
import { append, byId, drawn, nameOf } from "./dom.js";
import { counted, inUnits, visible } from "./text.js";

const MOST_BARS = 400;
const [WIDE, HIGH] = [1000, 150];

export function showBars(data, state, order, open) {
  const figure = byId("bars");
  const measure = measureNamed(data, state.measure);
  const [run, against] = chosenPair(data, state);
  const worth = (query) => data.worth(measure, run, query) - data.worth(measure, against, query);
  const all = against < 0 || run === against ? [] : order.filter((query) => !Number.isNaN(worth(query)));
  const sorted = [...all].sort((a, b) => worth(b) - worth(a));
  const shown = sorted.length > MOST_BARS ? [...sorted.slice(0, MOST_BARS / 2), ...sorted.slice(-MOST_BARS / 2)] : sorted;
  figure.hidden = shown.length < 2;
  if (figure.hidden) return;
  const [won, lost] = [all.filter((query) => worth(query) > 0).length, all.filter((query) => worth(query) < 0).length];
  const caption = figure.querySelector("figcaption");
  caption.replaceChildren();
  append(caption, [
    nameOf(visible(data.runs[run])),
    " vs ",
    nameOf(visible(data.runs[against])),
    ` on ${visible(data.measures[measure].label)}: better on ${counted(won, "query", "queries")}, worse on ${lost.toLocaleString("en")}, equal on ${(all.length - won - lost).toLocaleString("en")}. Click a bar to open its query.`,
    shown.length < all.length && ` The ${MOST_BARS / 2} largest gains and the ${MOST_BARS / 2} largest losses.`,
  ]);
  figure.lastElementChild.replaceChildren(sortedBars(data, measure, run, against, shown, worth, open));
}

function sortedBars(data, measure, run, against, shown, worth, open) {
  const most = Math.max(...shown.map((query) => Math.abs(worth(query)))) || 1;
  const each = WIDE / shown.length;
  const svg = drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img", "aria-label": "Differences by query, sorted" });
  svg.append(drawn("line", { class: "axis", x1: 0, x2: WIDE, y1: HIGH / 2, y2: HIGH / 2 }));
  shown.forEach((query, at) => {
    const value = worth(query);
    const height = (Math.abs(value) / most) * (HIGH / 2 - 2);
    const kind = value > 0 ? "gain" : value < 0 ? "loss" : "same";
    const group = drawn("g", { class: `query-bar ${kind}`, "data-query": query });
    const title = drawn("title");
    const [one, other] = [run, against].map((which) => inUnits(data.measures[measure], data.value(measure, which, query), 3));
    title.textContent = visible(`${data.texts[query] || data.queries[query]}: ${one} vs ${other}`);
    group.append(title, drawn("rect", { class: "hit", x: at * each, y: 0, width: each, height: HIGH }));
    group.append(drawn("rect", { x: at * each + each * 0.08, y: value > 0 ? HIGH / 2 - height : HIGH / 2, width: each * 0.84, height: Math.max(height, value ? 1 : 0) }));
    svg.append(group);
  });
  svg.addEventListener("click", (event) => {
    const bar = event.target.closest("[data-query]");
    if (bar) open(Number(bar.dataset.query));
  });
  return svg;
}
