// The leaderboard: sorted by any column, and ranked again when the weights change.

import { byId, make, shortNameOf } from "./dom.js";
import { fillChooser } from "./picker.js";
import { number, visible } from "./text.js";
import { readWeights, unpackBoard, weigh } from "./weights.js";

export function setUpLeaderboard(data, store) {
  const table = byId("board");
  const boards = data.boards.map(unpackBoard);
  const bodies = [...table.tBodies];
  for (const button of table.querySelectorAll("thead button")) {
    button.addEventListener("click", () => store.set({ by: nextOrder(store.get().by, button.closest("th")) }));
  }
  const sliders = boards.length ? setUpSliders(boards[0], store) : null;
  const whatIf = setUpWhatIf(store);
  setUpColumns(table, store);
  const render = (state) => {
    if (sliders) {
      const weights = readWeights(state.weights, boards[0].weights);
      const changed = weights.some((weight, part) => weight !== boards[0].weights[part]);
      sliders.show(weights, changed);
      table.classList.toggle("reweighed", changed);
      boards.forEach((board, place) => showComposite(bodies[place], weigh(board, weights)));
      byId("weights-said").replaceChildren(...verdict(data, boards[0], weights, changed));
      whatIf(changed ? verdict(data, boards[0], weights, true) : null);
    }
    sortRows(table, state.by);
  };
  store.watch((state, before) => {
    if (state.by !== before.by || state.weights !== before.weights) render(state);
  });
  if (store.get().by || store.get().weights) render(store.get());
}

// The state of the page with other weights: marked, with the verdict for these weights as its headline.
function setUpWhatIf(store) {
  const headline = document.querySelector("h1");
  const [measured, title] = [[...headline.childNodes], document.title];
  byId("what-if-reset").addEventListener("click", () => store.set({ weights: "" }));
  return (parts) => {
    byId("what-if").hidden = parts === null;
    document.documentElement.toggleAttribute("data-what-if", parts !== null);
    document.title = parts === null ? title : `What if: ${title}`;
    headline.replaceChildren(...(parts === null ? measured : [make("span", { class: "tag" }, "What if"), " ", ...parts]));
  };
}

// The columns of measures: the chosen ones, or as many as fit.
function setUpColumns(table, store) {
  const frame = table.parentElement;
  const heads = [...table.tHead.rows[0].cells];
  const places = heads.map((_, at) => at).filter((at) => heads[at].dataset.sort && !["rank", "run"].includes(heads[at].dataset.sort));
  const chooser = byId("columns");
  chooser.hidden = places.length < 2;
  const tick = fillChooser(chooser, places.map((at) => [at, heads[at].innerText.trim()]), (chosen) => store.set({ columns: chosen.join(".") }));
  const rows = [...table.rows].filter((row) => row.cells.length === heads.length);
  const show = (shown) => {
    for (const row of rows) for (const at of places) row.cells[at].hidden = !shown.includes(at);
    tick(shown);
  };
  const fit = () => {
    const named = store.get().columns.split(".").map(Number);
    const chosen = places.filter((at) => store.get().columns !== "" && named.includes(at));
    if (chosen.length) return show(chosen);
    const shown = [...places];
    show(shown);
    // Times stay: the column before them is left out first.
    const last = heads[places.at(-1)]?.dataset.time !== undefined && places.length > 2 ? -2 : -1;
    while (shown.length > 1 && frame.scrollWidth > frame.clientWidth) {
      shown.splice(shown.length > 2 ? last : -1, 1);
      show(shown);
    }
  };
  let width = 0;
  new ResizeObserver(() => {
    if (frame.clientWidth !== width) fit();
    width = frame.clientWidth;
  }).observe(frame);
  store.watch((state, before) => state.columns !== before.columns && fit());
}

// The order after a click on a column: best first, then worst first.
function nextOrder(by, head) {
  const name = head.dataset.sort;
  return by === name ? `-${name}` : name;
}

function sortRows(table, by) {
  const inverted = by.startsWith("-");
  const name = inverted ? by.slice(1) : by;
  const heads = [...table.tHead.rows[0].cells];
  const chosen = heads.findIndex((head) => head.dataset.sort === name);
  const place = Math.max(0, chosen);
  for (const [at, head] of heads.entries()) {
    if (!head.dataset.sort) continue;
    if (at === place) head.setAttribute("aria-sort", rising(head) !== inverted ? "ascending" : "descending");
    else head.removeAttribute("aria-sort");
  }
  const key = (row) => row.cells[place].dataset.value;
  const head = heads[place];
  for (const body of table.tBodies) {
    const rows = [...body.rows];
    rows.sort((a, b) => {
      const order = head.dataset.kind === "text" ? key(a).localeCompare(key(b)) : ranked(key(a), key(b), rising(head));
      return (inverted ? -order : order) || Number(a.dataset.rank) - Number(b.dataset.rank);
    });
    body.append(...rows);
  }
}

function rising(head) {
  return head.dataset.kind !== "more";
}

function ranked(a, b, upwards) {
  if (a === "" || b === "") return a === b ? 0 : a === "" ? 1 : -1;
  return upwards ? Number(a) - Number(b) : Number(b) - Number(a);
}

function setUpSliders(board, store) {
  const panel = byId("sliders");
  const inputs = board.keys.map((key, part) => {
    const input = panel.querySelector(`input[data-part="${part}"]`);
    input.addEventListener("input", () => {
      const weights = inputs.map((each) => Number(each.value));
      if (weights.some((weight) => weight > 0)) store.set({ weights: weights.join(",") });
    });
    return input;
  });
  byId("weights-reset").addEventListener("click", () => store.set({ weights: "" }));
  return {
    show(weights, changed) {
      inputs.forEach((input, part) => {
        input.value = String(weights[part]);
        input.parentElement.querySelector("output").textContent = String(weights[part]);
      });
      byId("weights-reset").disabled = !changed;
    },
  };
}

function showComposite(body, found) {
  for (const row of body.rows) {
    const run = Number(row.dataset.run);
    const rank = found.order.indexOf(run) + 1;
    const cell = row.querySelector("td[data-composite]");
    const mean = found.means[run];
    cell.dataset.value = String(mean);
    cell.querySelector(".number").textContent = number(mean);
    cell.classList.toggle("best", rank === 1);
    moveBar(cell.querySelector("svg"), mean, found.halves[run]);
    row.dataset.rank = String(rank);
    const first = row.cells[0];
    first.dataset.value = String(rank);
    first.querySelector(".place").textContent = String(rank);
  }
}

function moveBar(bar, mean, half) {
  if (!bar) return;
  const [low, high] = [Number(bar.dataset.low), Number(bar.dataset.high)];
  const at = (value) => Math.min(100, Math.max(0, (100 * (value - low)) / (high - low)));
  const line = bar.querySelector(".reach");
  line.setAttribute("x1", at(mean - half));
  line.setAttribute("x2", at(mean + half));
  bar.querySelector(".mean").setAttribute("x", at(mean) - 1);
}

// The verdict for the current weights: which run leads, by how much, whether that is significant, and whether the leader changed.
function verdict(data, board, weights, changed) {
  if (!changed) return ["These are the weights of the ranking. Move one to see how the ranking depends on it."];
  const name = (run) => make("strong", {}, make("bdi", {}, shortNameOf(visible(data.runs[run]))));
  const now = weigh(board, weights);
  const given = weigh(board, board.weights).order[0];
  if (!now.lead) return [name(now.order[0]), ` scores ${number(now.means[now.order[0]])}.`];
  const { first, second, gap, half } = now.lead;
  const outcome = gap > half ? "the difference is significant" : "the difference is not significant";
  const instead = first === given || second === given ? [] : [" instead of ", name(given)];
  return [
    name(first),
    first === given ? " still leads " : " now leads ",
    name(second),
    ` by ${number(gap)}`,
    ...instead,
    ` (95% interval ± ${number(half)}): ${outcome}.`,
  ];
}
