// Where texts come from and where judgments go: the server, or this browser.

export class ServerStore {
  constructor(data) {
    this.data = data;
  }

  lines() {
    return this.data.log;
  }

  async item(place) {
    return answer(await fetch(`item?n=${place}`));
  }

  async save(line) {
    const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(line) };
    return answer(await fetch(line.undo ? "undo" : "judgment", options));
  }
}

async function answer(response) {
  const found = await response.json();
  if (!response.ok) throw new Error(found.error);
  return found;
}

// Lines are stored one by one, and those that another tab has added are read before a new one is written. Where the
// browser keeps nothing, `lost` is called, and judgments last until the page is closed.
export class BrowserStore {
  constructor(data, log, lost) {
    this.data = data;
    this.log = log;
    this.lost = lost;
    this.count = 0;
  }

  key(number) {
    return `${this.data.storage}:${this.data.judge}:${number}`;
  }

  lines() {
    const found = [];
    try {
      for (; ; this.count += 1) {
        const line = localStorage.getItem(this.key(this.count));
        if (line === null) break;
        found.push(JSON.parse(line));
      }
    } catch {
      this.lost();
    }
    return found;
  }

  async item(place) {
    const [query, doc] = this.data.pairs[place];
    return { query: this.data.queries[query], ...this.data.documents[doc] };
  }

  async save(line) {
    for (const other of this.lines()) this.log.add(other);
    try {
      localStorage.setItem(this.key(this.count), JSON.stringify(line));
      this.count += 1;
    } catch {
      this.lost();
    }
    return line;
  }
}

// What is not a judgment yet: notes, marked spans and skipped documents, kept so that a reload does not lose them.
export class Drafts {
  constructor(data) {
    this.data = data;
    this.kept = new Map();
  }

  storage() {
    return this.data.form === "server" ? sessionStorage : localStorage;
  }

  where() {
    return `${this.data.storage ?? "steelyard-judging"}:${this.data.judge}:drafts`;
  }

  key(place) {
    return JSON.stringify(this.data.pairs[place]);
  }

  // The documents that were skipped.
  load(log) {
    try {
      const found = JSON.parse(this.storage().getItem(this.where()) ?? "{}");
      this.kept = new Map(found.notes ?? []);
      return (found.skipped ?? []).map((pair) => log.places.get(pair)).filter((place) => place !== undefined);
    } catch {
      return [];
    }
  }

  save(skipped) {
    const content = { notes: [...this.kept], skipped: skipped.map((place) => this.key(place)) };
    try {
      this.storage().setItem(this.where(), JSON.stringify(content));
    } catch {
      // Without storage a draft lasts until the page is closed.
    }
  }

  of(place) {
    return this.kept.get(this.key(place));
  }

  set(place, draft) {
    if (draft && (draft.note || draft.before || draft.spans?.length)) this.kept.set(this.key(place), draft);
    else this.kept.delete(this.key(place));
  }
}
