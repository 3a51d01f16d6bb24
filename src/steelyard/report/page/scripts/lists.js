// The ranked lists of a query, parsed when first needed, each document with its label.

import { byId } from "./dom.js";

let embedded = null;

export function listsOf(query) {
  embedded ??= JSON.parse(byId("lists-data").textContent);
  return embedded.queries?.[query] ?? null;
}

export function documentAt(place) {
  const [id, title = "", text = null, cut = 0] = embedded.documents[place];
  return { id, title, text, cut };
}

export const LABELS = Object.freeze({
  relevant: ["◆", "relevant"],
  again: ["◇", "relevant"],
  distractor: ["✖", "distractor"],
  repeat: ["↻", "duplicate"],
  partly: ["◐", "partly relevant"],
  judged: ["○", "not relevant"],
  unjudged: ["?", "unjudged"],
});

// What is shown side by side: the lists of runs. places: the ranks of known documents. ranks: those of the judged ones
// (0: not retrieved; null: the run has another chunking). from: the columns that a list is compared with.
export function runColumns(data, entry, runs) {
  return runs.map((run, at) => {
    const rows = entry.lists[run];
    const ranks = entry.judged.map((judged) => judged[3][run]);
    return { name: data.runs[run], rows, places: placesIn(rows ?? []), ranks, from: at ? [at - 1] : [] };
  });
}

function placesIn(rows, below = []) {
  return new Map([...below, ...rows.map(([doc], at) => [doc, at + 1]).reverse()]);
}

// The lists of the stages of a run, in the order of the pipeline; each is compared with the stages that it read.
export function stageColumns(data, entry, run) {
  const [last] = runColumns(data, entry, [run]);
  const before = entry.stages[run];
  return data.stages[run].map(([name, from], at) => {
    if (!before[at]) return { ...last, name, from, stage: true };
    const [docs, below] = before[at];
    const rows = docs.map((doc) => [doc]);
    const places = placesIn(rows, below);
    const ranks = entry.judged.map(([doc], judged) => (last.ranks[judged] === null ? null : (places.get(doc) ?? 0)));
    return { name, rows, places, ranks, from, stage: true };
  });
}

// A list with, for each document, its score, rank, kind and, for a repeat, the earlier rank.
export function labelled(entry, rows) {
  if (!rows) return null;
  const judged = new Map(entry.judged.map(([doc, grade, targets]) => [doc, { grade, targets }]));
  const seen = new Map();
  const found = new Map();
  return rows.map(([doc, score], at) => {
    const rank = at + 1;
    const known = judged.get(doc);
    const item = { doc, score, rank, grade: known?.grade, targets: known?.targets ?? [], kind: "unjudged", since: 0 };
    if (seen.has(doc)) return { ...item, kind: "repeat", since: seen.get(doc) };
    seen.set(doc, rank);
    if (!known) return item;
    if (known.grade < 0) return { ...item, kind: "distractor" };
    if (!relevant(known.grade, entry)) return { ...item, kind: known.grade > 0 ? "partly" : "judged" };
    const before = known.targets.map((target) => found.get(target));
    for (const target of known.targets) if (!found.has(target)) found.set(target, rank);
    const again = known.targets.length > 0 && before.every((earlier) => earlier !== undefined);
    return again ? { ...item, kind: "again", since: Math.min(...before) } : { ...item, kind: "relevant" };
  });
}

// Whether a grade is relevant: above 0, and not below the lowest relevant grade of the scale.
function relevant(grade, entry) {
  return grade > 0 && grade >= (entry.level ?? 0);
}

// Which grades are relevant, where not every grade above 0 is.
export function relevantGrades(entry) {
  return entry.level > 0 && entry.level !== 1 ? ` (grade ${entry.level} or higher)` : "";
}

// The relevant documents that are missing from some of the columns, with their rank in each.
export function missing(entry, columns, depth) {
  return entry.judged
    .map(([doc, grade], at) => ({ doc, grade, ranks: columns.map((column) => column.ranks[at]) }))
    .filter(({ grade, ranks }) => relevant(grade, entry) && ranks.some((rank) => rank === 0 || (rank ?? 0) > depth));
}
