// Pools: the unjudged documents of the lists, as the file that `steelyard judge` reads.

import { documentAt, labelled, listsOf } from "./lists.js";
import { saveFile } from "./save.js";

// The unjudged documents of some queries within the cutoff of some runs, in the order of a depth pool: by best
// rank; of equal ones, those of more runs and of smaller mean rank first. Null where runs differ in their chunks.
export function unjudgedOf(data, queries, runs = data.runs.map((_, run) => run)) {
  const found = [];
  for (const query of queries) {
    const entry = listsOf(query);
    if (entry === null) continue;
    if (entry.judged.some(([, , , ranks]) => ranks.includes(null))) return null;
    const ranks = new Map();
    runs.forEach((run) => {
      for (const item of (labelled(entry, entry.lists[run]) ?? []).slice(0, data.cutoff)) {
        if (item.kind !== "unjudged") continue;
        if (!ranks.has(item.doc)) ranks.set(item.doc, []);
        ranks.get(item.doc).push([run, item.rank]);
      }
    });
    for (const [doc, places] of ranks) {
      const all = places.map(([, rank]) => rank);
      const mean = all.reduce((sum, rank) => sum + rank, 0) / all.length;
      found.push({ query, id: documentAt(doc).id, places, key: [Math.min(...all), -all.length, mean, query] });
    }
  }
  return found.sort((a, b) => {
    const at = a.key.findIndex((part, number) => part !== b.key[number]);
    return at >= 0 ? a.key[at] - b.key[at] : compareIds(a.id, b.id);
  });
}

// By code point, as Python sorts.
function compareIds(a, b) {
  const [first, second] = [[...a], [...b]];
  const at = first.findIndex((character, number) => character !== second[number]);
  if (at < 0) return first.length - second.length;
  return second[at] === undefined ? 1 : first[at].codePointAt(0) - second[at].codePointAt(0);
}

export function savePool(data, documents, name, runs = data.runs.map((_, run) => run)) {
  const settings = {
    strategy: "depth",
    depth: data.cutoff,
    budget: null,
    measure: null,
    seed: 0,
    runs: runs.map((run) => data.runs[run]),
    queries: data.size,
    sampled_queries: null,
    strata: null,
  };
  const rows = documents.map(({ query, id, places }, number) => ({
    query_id: data.queries[query],
    doc_id: id,
    priority: number + 1,
    runs: places.map(([run]) => data.runs[run]),
    ranks: places.map(([, rank]) => rank),
    probability: null,
    stratum: null,
    strategy: "depth",
  }));
  const content = [{ pool: settings }, ...rows].map((each) => `${JSON.stringify(each)}\n`).join("");
  saveFile(`${name}.jsonl`, content, "application/x-ndjson");
}
