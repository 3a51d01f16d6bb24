// The leaderboard: sorted by any column, and ranked anew when the weights move.

import { append, byId, make } from "./dom.js";
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
  const render = (state) => {
    if (sliders) {
      const weights = readWeights(state.weights, boards[0].weights);
      const changed = weights.some((weight, part) => weight !== boards[0].weights[part]);
      sliders.show(weights, changed);
      table.classList.toggle("reweighed", changed);
      boards.forEach((board, place) => showComposite(bodies[place], weigh(board, weights)));
      const said = byId("weights-said");
      said.replaceChildren();
      append(said, verdict(data, boards[0], weights, changed));
    }
    sortRows(table, state.by);
  };
  store.watch((state, before) => {
    if (state.by !== before.by || state.weights !== before.weights) render(state);
  });
  if (store.get().by || store.get().weights) render(store.get());
}

// What the next click on a column asks for: its best first, then its worst.
function nextOrder(by, head) {
  const name = head.dataset.sort;
  return by === name ? `-${name}` : name;
}

function sortRows(table, by) {
  const turned = by.startsWith("-");
  const name = turned ? by.slice(1) : by;
  const heads = [...table.tHead.rows[0].cells];
  const chosen = heads.findIndex((head) => head.dataset.sort === name);
  const place = Math.max(0, chosen);
  for (const [at, head] of heads.entries()) {
    if (!head.dataset.sort) continue;
    if (at === place) head.setAttribute("aria-sort", rising(head) !== turned ? "ascending" : "descending");
    else head.removeAttribute("aria-sort");
  }
  const key = (row) => row.cells[place].dataset.value;
  const head = heads[place];
  for (const body of table.tBodies) {
    const rows = [...body.rows];
    rows.sort((a, b) => {
      const found = head.dataset.kind === "text" ? key(a).localeCompare(key(b)) : ranked(key(a), key(b), rising(head));
      return (turned ? -found : found) || Number(a.dataset.rank) - Number(b.dataset.rank);
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

// What the weights say: who leads, by how much, whether that is real, and whether the winner changed.
function verdict(data, board, weights, changed) {
  if (!changed) return ["These are the weights the ranking was made with. Move one to see how much depends on it."];
  const name = (run) => make("strong", {}, make("bdi", {}, visible(data.runs[run])));
  const now = weigh(board, weights);
  const given = weigh(board, board.weights).order[0];
  if (!now.lead) return [name(now.order[0]), ` scores ${number(now.means[now.order[0]])}.`];
  const { first, second, gap, half } = now.lead;
  const told = gap > half ? "the data can tell them apart" : "the data cannot tell them apart";
  const said = first === given ? [" still leads"] : [" now leads instead of ", name(given), ": the winner changes"];
  return [
    name(first),
    ...said,
    `. It is ${number(gap)} ahead of `,
    name(second),
    `, give or take ${number(half)} (95 %): ${told}.`,
  ];
}
