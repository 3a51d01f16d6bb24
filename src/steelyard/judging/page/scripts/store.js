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

// The browser's database of this page. Its transactions see what another tab has saved, and what is saved outlives the
// page; localStorage promises neither where two tabs run in two processes.
class Database {
  constructor(name) {
    this.opening = new Promise((resolve, reject) => {
      const request = indexedDB.open(name);
      request.onupgradeneeded = () => {
        request.result.createObjectStore("lines", { autoIncrement: true });
        request.result.createObjectStore("values");
      };
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
    this.opening.catch(() => {});
  }

  async transaction(name, mode) {
    return (await this.opening).transaction(name, mode, { durability: "strict" });
  }

  async get(key) {
    const transaction = await this.transaction("values", "readonly");
    return result(transaction.objectStore("values").get(key));
  }

  async set(key, value) {
    const transaction = await this.transaction("values", "readwrite");
    transaction.objectStore("values").put(value, key);
    transaction.commit();
  }
}

function result(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function completed(transaction) {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error);
  });
}

// Lines are saved one by one, and those that another tab has added are read before a new one is written. Where the
// browser keeps nothing, `lost` is called, and judgments last until the page is closed.
export class BrowserStore {
  constructor(data, log, lost) {
    this.data = data;
    this.log = log;
    this.lost = lost;
    this.read = 0;
    this.database = new Database(data.storage);
  }

  async name() {
    return this.database.get("judge").catch(() => null);
  }

  async setName(name) {
    await this.database.set("judge", name).catch(() => this.lost());
  }

  // The lines of this judge that were not read before.
  async lines() {
    try {
      return await this.unread(await this.database.transaction("lines", "readonly"));
    } catch {
      this.lost();
      return [];
    }
  }

  async unread(transaction) {
    const lines = transaction.objectStore("lines");
    const after = IDBKeyRange.lowerBound(this.read, true);
    const [found, keys] = await Promise.all([result(lines.getAll(after)), result(lines.getAllKeys(after))]);
    const before = this.read;
    this.read = Math.max(before, ...keys.slice(-1));
    return found.filter((line, n) => keys[n] > before && line.judge === this.data.judge);
  }

  async item(place) {
    const [query, doc] = this.data.pairs[place];
    return { query: this.data.queries[query], ...this.data.documents[doc] };
  }

  async save(line) {
    try {
      const transaction = await this.database.transaction("lines", "readwrite");
      for (const other of await this.unread(transaction)) this.log.add(other);
      const adding = transaction.objectStore("lines").add(line);
      adding.onsuccess = () => {
        this.read = adding.result;
      };
      await completed(transaction);
    } catch {
      this.lost();
    }
    return line;
  }
}

// What is not a judgment yet: notes, marked spans and skipped documents, kept so that a reload does not lose them.
export class Drafts {
  constructor(data, database) {
    this.data = data;
    this.database = database ?? sessionValues;
    this.kept = new Map();
  }

  where() {
    return `${this.data.judge}:drafts`;
  }

  key(place) {
    return JSON.stringify(this.data.pairs[place]);
  }

  // The documents that were skipped. Without storage a draft lasts until the page is closed.
  async load(log) {
    const found = await this.database.get(this.where()).catch(() => null);
    this.kept = new Map(found?.notes ?? []);
    return (found?.skipped ?? []).map((pair) => log.places.get(pair)).filter((place) => place !== undefined);
  }

  save(skipped) {
    const content = { notes: [...this.kept], skipped: skipped.map((place) => this.key(place)) };
    this.database.set(this.where(), content).catch(() => {});
  }

  of(place) {
    return this.kept.get(this.key(place));
  }

  set(place, draft) {
    if (draft && (draft.note || draft.before || draft.spans?.length)) this.kept.set(this.key(place), draft);
    else this.kept.delete(this.key(place));
  }
}

// Beside a server, drafts belong to the tab: the judgments themselves are in the server's file.
const sessionValues = {
  get: async (key) => JSON.parse(sessionStorage.getItem(`steelyard-judging:${key}`) ?? "null"),
  set: async (key, value) => sessionStorage.setItem(`steelyard-judging:${key}`, JSON.stringify(value)),
};
