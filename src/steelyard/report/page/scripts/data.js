// The numbers of the page, unpacked: one value for each measure, run and query.

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

export function unpack(summary) {
  const size = summary.queries.length;
  const runs = summary.runs.length;
  const values = new Float32Array(bytes(summary.values));
  const failures = summary.failures === null ? null : new Uint8Array(bytes(summary.failures));
  const first = summary.first === null ? null : new Uint16Array(bytes(summary.first));
  const place = new Map(summary.queries.map((query, number) => [query, number]));
  const haystack = summary.queries.map((query, number) => `${query}\n${summary.texts[number]}`.toLowerCase());
  return {
    ...summary,
    size,
    place,
    haystack,
    slices: summary.slices.map((each) => ({ ...each, codes: new Uint8Array(bytes(each.codes)) })),
    listed: new Set(summary.listed),
    value: (measure, run, query) => values[(measure * runs + run) * size + query],
    worth(measure, run, query) {
      const value = values[(measure * runs + run) * size + query];
      return summary.measures[measure].better === "less" ? -value : value;
    },
    failure: (run, query) => (failures === null ? 0 : failures[run * size + query]),
    firstRank: (run, query) => (first === null ? 0 : first[run * size + query]),
    judged: failures !== null,
  };
}

// A run's failures on a query, in words.
export function failureWords(data, run, query) {
  const bits = data.failure(run, query);
  const rank = data.firstRank(run, query);
  const said = [];
  if (bits & FAILURES.unanswered) said.push(["nothing", "no answer"]);
  if (bits & FAILURES.missed) said.push(["missed", "missed"]);
  if (bits & FAILURES.low) said.push(["low", `ranked low (first gold at ${rank})`]);
  if (bits & FAILURES.partly) said.push(["partly", "found in part"]);
  if (bits & FAILURES.distracted) said.push(["distracted", "distractor above gold"]);
  if (bits & FAILURES.repeated) said.push(["repeated", "duplicate"]);
  if (bits & FAILURES.unjudged) said.push(["unjudged", "unjudged on top"]);
  if (bits & FAILURES.nothing) said.push(["nothing", "nothing to find"]);
  return said;
}

// A setting named in the address, or what to fall back on.
export function runNamed(data, name, fallback) {
  const found = data.runs.indexOf(name);
  return found >= 0 ? found : fallback;
}

export function measureNamed(data, label) {
  const found = data.measures.findIndex((measure) => measure.label === label);
  return found >= 0 ? found : 0;
}

// The two runs that differences are between: the run looked at, and the one it is held against.
export function chosenPair(data, state) {
  const base = data.baseline >= 0 ? data.baseline : data.second;
  const against = runNamed(data, state.against, base);
  const first = data.leader === against ? data.second : data.leader;
  return [runNamed(data, state.run, Math.max(0, first)), against];
}
