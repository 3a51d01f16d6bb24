// The queries that are shown, and their order.

import { FAILURES, chosenPair, measureNamed } from "./data.js";

export const FILTERS = {
  all: "All queries",
  missed: "Missed",
  low: "Ranked low",
  partly: "Found in part",
  distracted: "Distractor above relevant",
  unjudged: "Unjudged at rank 1",
  repeated: "Duplicates",
  empty: "Empty list",
  nothing: "No relevant document",
  nobody: "Zero for every run",
  one: "Best alone",
  lost: "Lost vs the other",
};

// The queries of the chosen kind that have the words of the search.
function inScope(data, state) {
  const words = state.find.toLowerCase();
  const [column, code] = sliceOf(data, state.slice);
  const found = [];
  for (let query = 0; query < data.size; query += 1) {
    if (column !== null && column.codes[query] !== code) continue;
    if (!words || data.haystack[query].includes(words)) found.push(query);
  }
  return found;
}

// The number of queries that every filter selects, for the chosen run.
export function filterCounts(data, state) {
  const scope = inScope(data, state);
  const filters = filtersOf(data, measureNamed(data, state.measure), ...chosenPair(data, state));
  return Object.fromEntries(
    Object.keys(FILTERS).map((name) => [name, filters[name] ? scope.reduce((sum, query) => sum + (filters[name](query) ? 1 : 0), 0) : scope.length]),
  );
}

export function choose(data, state) {
  const measure = measureNamed(data, state.measure);
  const [run, against] = chosenPair(data, state);
  const filters = filtersOf(data, measure, run, against);
  const passes = Object.hasOwn(filters, state.filter) ? filters[state.filter] : () => true;
  const chosen = inScope(data, state).filter(passes);
  const key = orderOf(data, state.sort, measure, run, against);
  const keys = new Array(data.size);
  for (const query of chosen) keys[query] = key(query);
  const turn = state.rising ? 1 : -1;
  return chosen.sort((a, b) => turn * compared(keys[a], keys[b], turn) || a - b);
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

// The filters, for one run; queries without a relevant document are no failures.
function filtersOf(data, measure, run, against) {
  const failed = (bits) => (query) => (data.failure(run, query) & bits) !== 0 && !(data.failure(run, query) & FAILURES.nothing);
  const scoresNothing = (query) =>
    !(data.failure(run, query) & FAILURES.nothing) && data.runs.every((_, each) => data.value(measure, each, query) <= 0);
  return {
    missed: data.judged ? failed(FAILURES.missed | FAILURES.unanswered) : (query) => data.value(measure, run, query) <= 0,
    low: failed(FAILURES.low),
    partly: failed(FAILURES.partly),
    distracted: failed(FAILURES.distracted),
    unjudged: failed(FAILURES.unjudged),
    repeated: failed(FAILURES.repeated),
    empty: failed(FAILURES.unanswered),
    nothing: (query) => (data.failure(run, query) & FAILURES.nothing) !== 0,
    nobody: scoresNothing,
    one: (query) => data.runs.length > 1 && winner(data, measure, query) === run,
    lost: (query) => against >= 0 && data.worth(measure, run, query) < data.worth(measure, against, query),
  };
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
