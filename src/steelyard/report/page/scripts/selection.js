// The queries that are shown, and their order.

import { FAILURES, chosenPair, measureNamed } from "./data.js";

export const FILTERS = {
  all: "All queries",
  missed: "Missed by all",
  one: "Won by one run",
  lost: "Lost vs the other",
  unjudged: "Unjudged at rank 1",
  distracted: "Distractor above relevant",
};

export function choose(data, state) {
  const measure = measureNamed(data, state.measure);
  const [run, against] = chosenPair(data, state);
  const words = state.find.toLowerCase();
  const [column, code] = sliceOf(data, state.slice);
  const passes = filterOf(data, state.filter, measure, run, against);
  const chosen = [];
  for (let query = 0; query < data.size; query += 1) {
    if (column !== null && column.codes[query] !== code) continue;
    if (words && !data.haystack[query].includes(words)) continue;
    if (passes(query)) chosen.push(query);
  }
  const key = orderOf(data, state.sort, measure, run, against);
  const keys = new Map(chosen.map((query) => [query, key(query)]));
  const turn = state.rising ? 1 : -1;
  return chosen.sort((a, b) => turn * compared(keys.get(a), keys.get(b), turn) || a - b);
}

// Numbers in order; NaN last in either direction.
function compared(a, b, turn) {
  if (typeof a === "string") return a < b ? -1 : a > b ? 1 : 0;
  if (Number.isNaN(a)) return Number.isNaN(b) ? 0 : turn;
  if (Number.isNaN(b)) return -turn;
  return a - b;
}

export function sliceOf(data, text) {
  const [name, ...rest] = text.split(":");
  const column = data.slices.find((each) => each.column === name);
  const code = column ? column.values.indexOf(rest.join(":")) : -1;
  return code < 0 ? [null, -1] : [column, code];
}

// The only run with the best value of a query, or -1.
export function winner(data, measure, query) {
  let best = -Infinity;
  let who = -1;
  for (let run = 0; run < data.runs.length; run += 1) {
    const worth = data.worth(measure, run, query);
    if (worth > best) [best, who] = [worth, run];
    else if (worth === best) who = -1;
  }
  return who;
}

function filterOf(data, name, measure, run, against) {
  const every = (test) => data.runs.every((_, each) => test(each));
  const some = (bit) => (query) => data.runs.some((_, each) => data.failure(each, query) & bit);
  const filters = {
    missed: (query) =>
      data.judged
        ? every((each) => data.failure(each, query) & (FAILURES.missed | FAILURES.unanswered)) &&
          !(data.failure(0, query) & FAILURES.nothing)
        : every((each) => !(data.value(measure, each, query) > 0)),
    one: (query) => data.runs.length > 1 && winner(data, measure, query) >= 0,
    lost: (query) => against >= 0 && data.worth(measure, run, query) < data.worth(measure, against, query),
    unjudged: some(FAILURES.unjudged),
    distracted: some(FAILURES.distracted),
  };
  return filters[name] ?? (() => true);
}

function orderOf(data, sort, measure, run, against) {
  const change = (query) =>
    against < 0 ? data.value(measure, run, query) : data.value(measure, run, query) - data.value(measure, against, query);
  const [kind, which] = sort.split(":");
  if (kind === "difference") return change;
  if (kind === "query") return (query) => data.queries[query];
  if (kind === "run" && data.runs[Number(which)] !== undefined) return (query) => data.value(measure, Number(which), query);
  return (query) => Math.abs(change(query));
}
