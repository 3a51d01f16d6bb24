// The ranked lists of a query, read when first asked for, each document with its label.

let shelf = null;

export function listsOf(element, query) {
  shelf ??= JSON.parse(element.textContent);
  return shelf.queries?.[query] ?? null;
}

export function documentAt(place) {
  const [id, title = "", text = null, cut = 0] = shelf.documents[place];
  return { id, title, text, cut };
}

export const LABELS = Object.freeze({
  gold: ["◆", "gold"],
  again: ["◇", "gold"],
  distractor: ["✖", "distractor"],
  repeat: ["↻", "duplicate"],
  judged: ["○", "not relevant"],
  unjudged: ["?", "unjudged"],
});

// One run's list: document, score, rank, what it is, and (for a repeat) the rank that had it first.
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
    if (known.grade === 0) return { ...item, kind: "judged" };
    const before = known.targets.map((target) => found.get(target));
    for (const target of known.targets) if (!found.has(target)) found.set(target, rank);
    const again = known.targets.length > 0 && before.every((earlier) => earlier !== undefined);
    return again ? { ...item, kind: "again", since: Math.min(...before) } : { ...item, kind: "gold" };
  });
}

// The relevant documents that some of the lists do not show, with their rank in every run (0: nowhere; null: the run
// is on another chunking, and could not have it).
export function missing(entry, runs, depth) {
  return entry.judged
    .filter(([, grade, , ranks]) => grade > 0 && runs.some((run) => ranks[run] === 0 || (ranks[run] ?? 0) > depth))
    .map(([doc, grade, targets, ranks]) => ({ doc, grade, targets, ranks }));
}
