// Choosers of runs and of columns: lists of boxes to tick.

import { append, make } from "./dom.js";
import { visible } from "./text.js";

const MOST_RUNS = 8;

// The runs that tables and charts show, best first: the chosen ones, or the first and the baseline.
export function pickedRuns(data, state) {
  const named = state.runs.split(".").map(Number);
  const chosen = data.order.filter((run) => state.runs !== "" && named.includes(run));
  if (chosen.length) return chosen;
  if (data.order.length <= MOST_RUNS) return data.order;
  const first = data.order.slice(0, MOST_RUNS);
  if (data.baseline >= 0 && !first.includes(data.baseline)) first[MOST_RUNS - 1] = data.baseline;
  return first;
}

export function setUpPickers(data, store) {
  for (const details of document.querySelectorAll(".run-picker")) {
    details.hidden = data.runs.length < 3;
    const boxes = fillChooser(details, data.order.map((run) => [run, data.runs[run]]), (runs) => store.set({ runs: runs.join(".") }));
    const show = (state) => boxes(pickedRuns(data, state));
    show(store.get());
    store.watch((state, before) => state.runs !== before.runs && show(state));
  }
}

// Fill a chooser with boxes; returns a function that ticks some of them. One box always stays ticked.
export function fillChooser(details, choices, changed) {
  const summary = details.querySelector("summary");
  const title = summary.textContent;
  const inputs = choices.map(([value]) => make("input", { type: "checkbox", value }));
  const ticked = () => inputs.filter((each) => each.checked).map((each) => Number(each.value));
  inputs.forEach((input) =>
    input.addEventListener("change", () => {
      if (!ticked().length) input.checked = true;
      changed(ticked());
    }),
  );
  append(
    details.querySelector("div"),
    choices.map(([, text], at) => make("label", {}, inputs[at], make("bdi", {}, visible(text)))),
  );
  return (values) => {
    inputs.forEach((each) => (each.checked = values.includes(Number(each.value))));
    summary.textContent = `${title} (${values.length} of ${choices.length})`;
  };
}
