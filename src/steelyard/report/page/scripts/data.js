// The data of the page, unpacked: one value per measure, run and query.

export const FAILURES = Object.freeze({
  unanswered: 1,
  missed: 2,
  low: 4,
  distracted: 8,
  repeated: 16,
  unjudged: 32,
  nothing: 64,
  partly: 128,
});

export function bytes(packed) {
  const text = atob(packed);
  const made = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) made[at] = text.charCodeAt(at);
  return made.buffer;
}

function counts(packed) {
  if (packed === null) return null;
  return packed[0] === 1 ? new Uint8Array(bytes(packed[1])) : new Uint16Array(bytes(packed[1]));
}

// The values of a measure: themselves, or codes and the values that they stand for.
function decoded(packed) {
  if (packed[0] === 4) return new Float32Array(bytes(packed[1]));
  const known = new Float32Array(bytes(packed[2]));
  const codes = counts(packed);
  const values = new Float32Array(codes.length);
  for (let at = 0; at < codes.length; at += 1) values[at] = known[codes[at]];
  return values;
}

export function unpack(summary) {
  const size = summary.queries.length;
  const values = summary.values.map(decoded);
  const failures = summary.failures === null ? null : new Uint8Array(bytes(summary.failures));
  const first = summary.first === null ? null : new Uint16Array(bytes(summary.first));
  const [found, relevant] = [counts(summary.found), counts(summary.relevant)];
  const place = new Map(summary.queries.map((query, number) => [query, number]));
  const haystack = summary.queries.map((query, number) => `${query}\n${summary.texts[number]}`.toLowerCase());
  return {
    ...summary,
    size,
    place,
    haystack,
    slices: summary.slices.map((each) => ({ ...each, codes: new Uint8Array(bytes(each.codes)) })),
    listed: new Set(summary.listed),
    value: (measure, run, query) => values[measure][run * size + query],
    worth(measure, run, query) {
      const value = values[measure][run * size + query];
      return summary.measures[measure].better === "less" ? -value : value;
    },
    failure: (run, query) => (failures === null ? 0 : failures[run * size + query]),
    firstRank: (run, query) => (first === null ? 0 : first[run * size + query]),
    found: (run, query) => (found === null ? 0 : found[run * size + query]),
    relevant: (run, query) => (relevant === null ? 0 : relevant[(run * size + query) % relevant.length]),
    judged: failures !== null,
  };
}

export function foundText(data, run, query) {
  return `found ${data.found(run, query)} of ${data.relevant(run, query)} in the top ${data.cutoff}`;
}

// The failures of a run on a query: kind and text.
export function failureWords(data, run, query) {
  const bits = data.failure(run, query);
  const rank = data.firstRank(run, query);
  const words = [];
  if (bits & FAILURES.unanswered) words.push(["nothing", "empty list"]);
  if (bits & FAILURES.missed) words.push(["missed", "missed"]);
  if (bits & FAILURES.low) words.push(["low", `ranked low (first relevant at ${rank})`]);
  if (bits & FAILURES.partly) words.push(["partly", foundText(data, run, query)]);
  if (bits & FAILURES.distracted) words.push(["distracted", "distractor above relevant"]);
  if (bits & FAILURES.repeated) words.push(["repeated", "duplicate"]);
  if (bits & FAILURES.unjudged) words.push(["unjudged", "unjudged at rank 1"]);
  if (bits & FAILURES.nothing) words.push(["nothing", "no relevant document"]);
  return words;
}

// The run or measure named in the address, or a default.
export function runNamed(data, name, fallback) {
  const found = data.runs.indexOf(name);
  return found >= 0 ? found : fallback;
}

export function measureNamed(data, label) {
  const found = data.measures.findIndex((measure) => measure.label === label);
  return found >= 0 ? found : 0;
}

// The two runs that are compared: the chosen run, and the one it is compared with.
export function chosenPair(data, state) {
  const base = data.baseline >= 0 ? data.baseline : data.second;
  const against = runNamed(data, state.against, base);
  const first = data.leader === against ? data.second : data.leader;
  return [runNamed(data, state.run, Math.max(0, first)), against];
}
