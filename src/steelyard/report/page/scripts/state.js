// The state in the address: open query, filters, order and weights, so that a link shows the same view.

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
  stages: "",
  weights: "",
  by: "",
  columns: "",
  runs: "",
});

export function readState(hash) {
  const state = { ...DEFAULTS };
  const text = hash.replace(/^#/, "");
  if (!text.includes("=")) return state;
  const found = new URLSearchParams(text);
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

// The state, with watchers that are called on changes; the address is kept up to date.
export function createStore(place, past) {
  let state = readState(place.hash);
  const watchers = [];
  const notify = (before) => watchers.forEach((watcher) => watcher(state, before));
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
      notify(before);
    },
    follow() {
      if (place.hash.length > 1 && !place.hash.includes("=")) return;
      const before = state;
      state = readState(place.hash);
      notify(before);
    },
  };
  return store;
}
