// The view in the address: an open query, filters, order and weights, so that a link shows the same.

export const DEFAULTS = Object.freeze({
  query: "",
  find: "",
  filter: "all",
  slice: "",
  measure: "",
  run: "",
  against: "",
  sort: "change",
  rising: false,
  page: 1,
  lists: "",
  weights: "",
  by: "",
});

export function readState(hash) {
  const state = { ...DEFAULTS };
  const given = hash.replace(/^#/, "");
  if (!given.includes("=")) return state;
  const found = new URLSearchParams(given);
  for (const [name, fallback] of Object.entries(DEFAULTS)) {
    const value = found.get(name);
    if (value === null) continue;
    if (typeof fallback === "boolean") state[name] = value === "1";
    else if (typeof fallback === "number") state[name] = Math.max(1, Math.floor(Number(value)) || 1);
    else state[name] = value;
  }
  return state;
}

export function writeState(state) {
  const written = new URLSearchParams();
  for (const [name, fallback] of Object.entries(DEFAULTS)) {
    const value = state[name];
    if (value !== fallback) written.set(name, typeof fallback === "boolean" ? "1" : String(value));
  }
  return written.size ? `#${written}` : "#";
}

// Holds the state, tells its watchers what changed, and keeps the address in step.
export function createStore(place, past) {
  let state = readState(place.hash);
  const watchers = [];
  const tell = (before) => watchers.forEach((watcher) => watcher(state, before));
  const store = {
    get: () => state,
    watch: (watcher) => watchers.push(watcher),
    set(change, step = false) {
      const before = state;
      state = { ...state, ...change };
      const address = writeState(state);
      try {
        past[step ? "pushState" : "replaceState"](null, "", address);
      } catch {
        place.hash = address;
      }
      tell(before);
    },
    follow() {
      if (place.hash.length > 1 && !place.hash.includes("=")) return;
      const before = state;
      state = readState(place.hash);
      tell(before);
    },
  };
  return store;
}
