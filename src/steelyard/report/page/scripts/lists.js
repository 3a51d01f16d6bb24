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
  judged: ["○", "not relevant"],
  unjudged: ["?", "unjudged"],
});

// The list of a run: document, score, rank, kind and, for a repeat, the earlier rank.
export function labelled(entry, run) {
  const rows = entry.lists[run];
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
    if (!relevant(known.grade, entry)) return { ...item, kind: "judged" };
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

// The relevant documents that are missing from some of the shown lists, with their rank in every run (0: not
// retrieved; null: the run has another chunking).
export function missing(entry, runs, depth) {
  return entry.judged
    .filter(([, grade, , ranks]) => relevant(grade, entry) && runs.some((run) => ranks[run] === 0 || (ranks[run] ?? 0) > depth))
    .map(([doc, grade, targets, ranks]) => ({ doc, grade, targets, ranks }));
}
