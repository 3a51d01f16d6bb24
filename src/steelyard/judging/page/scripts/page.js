// The judging page: a queue, a log of judgments, and one document at a time.

import { byId, make } from "./dom.js";
import { duration, Log, median } from "./log.js";
import {
  densest,
  segments,
  selectedRange,
  sentenceRanges,
  termRanges,
  toggled,
  toPoints,
  toUnits,
} from "./spans.js";
import { BrowserStore, Drafts, ServerStore } from "./store.js";
import { counted, parts, terms, visible } from "./text.js";
import { setUpTheme } from "./theme.js";

const data = JSON.parse(byId("data").textContent);
const grades = data.guidelines.grades;
const ASKED_CHARACTERS = 10_000; // As in judgments.py.
const TOO_SOON = 300; // Milliseconds in which nobody has read a document: a grade then was meant for the one before.
const onServer = data.form === "server";
const log = new Log(data.pairs);
const store = onServer ? new ServerStore(data) : new BrowserStore(data, log, warnOfLoss);
const drafts = new Drafts(data, store.database);
const state = {
  place: null,
  item: null,
  spans: [],
  sentence: null,
  skipped: [],
  actions: [],
  returned: null,
  busy: false,
  lost: false,
  shownAt: 0,
  hiddenFor: 0,
  retry: null,
};

function keepDraft() {
  drafts.set(state.place, { note: byId("note").value, spans: state.spans });
  drafts.save(state.skipped);
}

// The queue: unjudged documents in order, then those that were skipped.

function upNext() {
  if (state.returned !== null) return state.returned;
  const later = new Set(state.skipped);
  const first = data.pairs.findIndex((pair, place) => !log.current(place) && !later.has(place));
  if (first >= 0) return first;
  return state.skipped.find((place) => !log.current(place)) ?? null;
}

async function advance(said = "") {
  const place = upNext();
  const before = state.place;
  if (place !== null) state.item = await store.item(place);
  state.place = place;
  if (place === null) finish(said);
  else show(before, said);
}

function lineOf(place, more) {
  const [query, doc] = data.pairs[place];
  const at = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const scale = data.guidelines.relevant_from;
  const line = { query_id: query, doc_id: doc, grade: null, judge: data.judge, at, ...more };
  return typeof scale === "number" && !more.undo ? { ...line, relevant_from: scale } : line;
}

// One action at a time: save a line, then show the next document. What fails is reported and can be tried again.

async function act(line, saved, said) {
  if (state.busy) return;
  state.busy = true;
  byId("failed").hidden = !state.lost;
  let what = "Not saved";
  try {
    if (line) log.add(await store.save(line));
    saved?.();
    line = saved = null;
    what = "The next document cannot be shown";
    await advance(said);
  } catch (error) {
    fail(`${what}: ${reason(error)}`, () => act(line, saved, said));
  } finally {
    state.busy = false;
  }
}

function fail(text, retry) {
  state.retry = retry;
  byId("failed-text").textContent = text;
  byId("again").hidden = !retry;
  byId("failed").hidden = false;
}

function reason(error) {
  if (error instanceof TypeError && onServer)
    return "the server does not answer. Start steelyard judge again and open the address it prints; every judgment before this one is in the file.";
  return `${error.message}.`;
}

function warnOfLoss() {
  if (!state.lost) addEventListener("beforeunload", (event) => event.preventDefault());
  state.lost = true;
  fail("This browser does not keep the judgments of this page. Export them before you close it.", null);
}

function judge(grade) {
  if (state.place === null) return;
  if (!document.documentElement.dataset.open) {
    say("Ignored: this document has just been shown. Press again to grade it.");
    return;
  }
  const place = state.place;
  const spans = state.spans.map(([start, end]) => ({
    start: toPoints(state.item.text, start),
    end: toPoints(state.item.text, end),
    content: state.item.text.slice(start, end),
  }));
  const note = byId("note").value.trim();
  const seconds = Math.round((performance.now() - state.shownAt - state.hiddenFor) / 100) / 10;
  const question = [...state.item.query].slice(0, ASKED_CHARACTERS).join("");
  const text = { question, text_hash: state.item.text_hash }; // A document of the server has no hash: it adds its own.
  const made = lineOf(place, { grade, seconds, ...text, ...(note ? { note } : {}), ...(spans.length ? { spans } : {}) });
  const saved = () => {
    state.returned = null;
    state.skipped = state.skipped.filter((each) => each !== place);
    state.actions.push({ place, skipped: false });
    drafts.set(place, null);
    drafts.save(state.skipped);
  };
  act(made, saved, `Saved: ${named(grade)}.`);
}

function named(grade) {
  const found = grades.find((each) => each.grade === grade);
  return grade === null ? "Cannot tell" : found ? `${found.key} ${found.label}` : String(grade);
}

function skip() {
  if (state.place === null || state.busy) return;
  const place = state.place;
  state.returned = null;
  if (!log.current(place)) state.skipped = [...state.skipped.filter((each) => each !== place), place];
  state.actions.push({ place, skipped: true });
  keepDraft();
  act(null, null, upNext() === place ? "This is the last document left." : "Skipped. It comes again at the end.");
}

function undo() {
  const last = state.actions.at(-1);
  if (state.busy) return;
  if (last === undefined) {
    say("There is nothing to undo.");
    return;
  }
  const { place, skipped } = last;
  const withdrawn = skipped ? null : log.current(place);
  const saved = () => {
    state.actions.pop();
    state.returned = place;
    state.skipped = state.skipped.filter((each) => each !== place);
    if (withdrawn) drafts.set(place, { note: withdrawn.note ?? "", spans: null, before: withdrawn });
    drafts.save(state.skipped);
  };
  if (withdrawn) act(lineOf(place, { undo: true }), saved, `Undone: ${named(withdrawn.grade)}.`);
  else act(null, saved, "Skipping was undone.");
}

// What is judged, the last one first; one of them can be shown again, and a new grade replaces the old one.

function review() {
  const places = [...new Set([...log.history].reverse())];
  byId("review-list").replaceChildren(
    ...places.map((place) => {
      const held = log.current(place);
      const again = () => {
        byId("review").close();
        act(null, () => (state.returned = place), `Judged before: ${named(held.grade)}. A new grade replaces it; skip keeps it.`);
      };
      const [query, doc] = data.pairs[place];
      const words = [make("b", {}, named(held.grade)), " ", make("bdi", {}, visible(held.question ?? query)), " ", make("bdi", { class: "id" }, visible(doc))];
      return make("li", {}, make("button", { type: "button", class: "quiet", onclick: again }, words));
    }),
  );
  byId("review").showModal();
}

// Show a document.

function show(before, said) {
  const [query, doc] = data.pairs[state.place];
  const wanted = terms(state.item.query);
  const sameQuery = before !== null && data.pairs[before][0] === query;
  state.shown = visible(state.item.text).replaceAll("\u240d\n", " \n");
  state.terms = termRanges(state.shown, wanted);
  state.sentences = null;
  state.sentence = null;
  restore();
  byId("query").replaceChildren(make("bdi", {}, visible(state.item.query)));
  byId("title").replaceChildren(...marked(visible(state.item.title), wanted));
  byId("doc-id").replaceChildren(make("bdi", {}, visible(doc)));
  byId("where").replaceChildren(...whereabouts(query, sameQuery));
  byId("work").hidden = false;
  byId("done").hidden = true;
  byId("grades").hidden = false;
  draw();
  progress();
  const held = state.before ?? log.current(state.place);
  for (const button of document.querySelectorAll(".grade")) {
    button.setAttribute("aria-pressed", String(held !== undefined && held.grade === Number(button.dataset.grade)));
  }
  const region = byId("document");
  region.setAttribute("aria-label", `Document ${log.history.length + 1} of ${data.pairs.length}`);
  region.focus({ preventScroll: true });
  scrollToDensest();
  fit();
  state.shownAt = performance.now();
  state.hiddenFor = 0;
  delete document.documentElement.dataset.open;
  clearTimeout(state.opening);
  state.opening = setTimeout(() => (document.documentElement.dataset.open = "yes"), TOO_SOON);
  say([said, sameQuery || !said ? "" : "New query."].filter(Boolean).join(" "));
}

function restore() {
  const draft = drafts.of(state.place);
  const text = state.item.text;
  state.before = draft?.before;
  state.spans =
    draft?.spans ?? (draft?.before?.spans ?? state.item.spans ?? []).map((span) => [toUnits(text, span.start), toUnits(text, span.end)]);
  byId("note").value = draft?.note ?? "";
  openNote(Boolean(draft?.note), false);
}

function whereabouts(query, sameQuery) {
  const queries = [...new Set(data.pairs.map(([each]) => each))];
  const docs = data.pairs.flatMap(([each], place) => (each === query ? [place] : []));
  const judged = docs.filter((place) => log.current(place)).length;
  const text = `Query ${queries.indexOf(query) + 1} of ${queries.length} · ${judged} of ${counted(docs.length, "document", "documents")} judged`;
  return sameQuery ? [text] : [make("b", {}, "New query"), ` · ${text}`];
}

function marked(text, wanted) {
  return parts(text, wanted).map((part) => (part.marked ? make("mark", { class: "term" }, part.text) : part.text));
}

function draw() {
  const here = state.sentence === null ? [] : [sentences()[state.sentence]];
  const layers = [["term", state.terms], ["span", state.spans], ["here", here]];
  const made = segments(state.shown, layers).map(({ start, text, names }) =>
    names.length ? make("mark", { class: names.join(" "), "data-at": start }, text) : text,
  );
  const region = byId("document");
  const top = region.scrollTop;
  byId("text").replaceChildren(...made);
  region.scrollTop = top;
  drawSpans();
}

function drawSpans() {
  const list = byId("spans");
  list.hidden = state.spans.length === 0;
  list.replaceChildren(
    ...state.spans.map((span) => {
      const text = state.shown.slice(...span).replace(/\s+/g, " ");
      const remove = () => {
        setSpans(state.spans.filter((each) => each !== span));
        byId("document").focus({ preventScroll: true });
      };
      const button = make("button", { type: "button", "aria-label": `Remove the mark of ${text.slice(0, 60)}`, onclick: remove }, "×");
      return make("li", {}, make("bdi", {}, text.slice(0, 300)), button);
    }),
  );
}

function scrollToDensest() {
  const region = byId("document");
  region.scrollTop = 0;
  const found = region.scrollHeight > region.clientHeight ? densest(state.shown, state.terms) : null;
  const element = (number) => byId("text").querySelector(`[data-at="${state.terms[number][0]}"]`);
  if (found && element(found.to).offsetTop + 30 > region.clientHeight)
    region.scrollTop = element(found.from).offsetTop - region.clientHeight * 0.3;
  byId("to-start").hidden = region.scrollTop === 0;
}

// A query that is too long for its place can be scrolled by keys.
function fit() {
  const asked = document.querySelector(".asked");
  asked.scrollTop = 0;
  if (asked.scrollHeight > asked.clientHeight) asked.tabIndex = 0;
  else asked.removeAttribute("tabindex");
}

// Progress, time per judgment, and what is left.

function progress() {
  const total = data.pairs.length;
  const judged = log.judged();
  const left = total - judged;
  const typical = median(data.pairs.flatMap((pair, place) => log.current(place)?.seconds ?? []));
  const words = [`${judged.toLocaleString("en")} of ${total.toLocaleString("en")} judged`];
  if (left) words.push(`${left.toLocaleString("en")} left`);
  if (state.skipped.length) words.push(`${state.skipped.length.toLocaleString("en")} skipped`);
  if (typical !== null) words.push(`${duration(typical)} each`);
  if (typical !== null && left) words.push(`about ${duration(typical * left)} to go`);
  byId("bar").max = Math.max(total, 1);
  byId("bar").value = judged;
  byId("progress").textContent = words.join(" · ");
  document.querySelector("[data-action=undo]").disabled = state.actions.length === 0;
  byId("open-review").disabled = judged === 0;
  for (const name of ["cannot", "skip", "note", "mark"]) {
    document.querySelector(`[data-action=${name}]`).hidden = state.place === null;
  }
  return typical;
}

function finish(said) {
  document.documentElement.dataset.open = "yes";
  byId("work").hidden = true;
  byId("grades").hidden = true;
  byId("spans").hidden = true;
  openNote(false, false);
  const typical = progress();
  const verdict = data.then ? " for the verdict so far" : "";
  const then = data.then ? ` Then run: ${visible(data.then)}` : "";
  const where = onServer
    ? `Your judgments are in ${visible(data.file)}. Close this page and stop the program with Ctrl-C${verdict}.`
    : "Export your judgments and send the file to the person who gave you this page.";
  const time = typical === null ? "" : ` A judgment took you ${duration(typical)} (median).`;
  byId("done-text").textContent = data.pairs.length ? `${where}${time}${then}` : "There is nothing to judge for you in this pool.";
  const values = [...grades.map((each) => each.grade), null];
  const count = (grade) => data.pairs.filter((pair, place) => log.current(place)?.grade === grade).length;
  const rows = values.map((grade) => [named(grade), count(grade)]).filter(([, number]) => number);
  byId("counts").replaceChildren(
    ...rows.map(([name, number]) =>
      make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, number.toLocaleString("en"))),
    ),
  );
  byId("done").hidden = false;
  byId("done").focus();
  say(said);
}

function say(text) {
  byId("said").textContent = text;
}

// Notes and marked spans.

function openNote(open, focus = true) {
  byId("note-part").hidden = !open;
  if (open && data.edit && !byId("note").value.trim()) byId("note").value = state.item.query;
  document.querySelector("[data-action=note]").setAttribute("aria-expanded", String(open));
  if (open && focus) byId("note").focus();
}

function closeNote() {
  keepDraft();
  if (!byId("note").value.trim()) openNote(false);
  byId("document").focus({ preventScroll: true });
}

function sentences() {
  state.sentences ??= sentenceRanges(state.shown);
  return state.sentences;
}

function choose(step) {
  if (state.place === null || !sentences().length) return;
  if (state.sentence === null) {
    const at = state.terms[densest(state.shown, state.terms)?.from ?? 0]?.[0] ?? 0;
    const found = sentences().findIndex(([, end]) => end > at);
    state.sentence = Math.max(found, 0);
  } else state.sentence = Math.min(Math.max(state.sentence + step, 0), sentences().length - 1);
  draw();
  byId("text").querySelector(".here")?.scrollIntoView({ block: "nearest" });
  say(state.shown.slice(...sentences()[state.sentence]).slice(0, 200));
}

function mark() {
  if (state.place === null) return;
  const span = selectedRange(byId("text")) ?? (state.sentence === null ? null : sentences()[state.sentence]);
  if (span === null) {
    say("Select text, or choose a sentence with j and k; then press m.");
    return;
  }
  const spans = toggled(state.spans, span);
  say(spans.every((each) => state.spans.includes(each)) ? "The mark was removed." : "Marked. It is saved with the grade.");
  setSpans(spans);
  getSelection().removeAllRanges();
}

function setSpans(spans) {
  state.spans = spans;
  keepDraft();
  draw();
}

// The single file: judgments out and in.

async function exported() {
  for (const other of await store.lines()) log.add(other);
  const content = log.lines.map((each) => `${JSON.stringify(each)}\n`).join("");
  const address = URL.createObjectURL(new Blob([content], { type: "application/x-ndjson" }));
  const name = data.judge.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "") || "judge";
  make("a", { href: address, download: `judgments-${name}.jsonl` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
  say(`${counted(log.lines.length, "line", "lines")} exported.`);
}

async function imported(file) {
  const known = new Map();
  for (const each of log.lines) known.set(JSON.stringify(each), (known.get(JSON.stringify(each)) ?? 0) + 1);
  let [added, ignored] = [0, 0];
  for (const text of (await file.text()).split("\n").filter((each) => each.trim())) {
    const found = read(text);
    if (!found) {
      ignored += 1;
      continue;
    }
    const same = JSON.stringify(found);
    if (known.get(same)) known.set(same, known.get(same) - 1);
    else {
      log.add(await store.save(found));
      added += 1;
    }
  }
  remember();
  const rest = ignored ? ` ${counted(ignored, "line", "lines")} ignored: of another judge, of other documents, or with a grade that is not on the scale.` : "";
  await act(null, null, `${counted(added, "line", "lines")} imported.${rest}`);
}

// The judgments so far can be undone, the last one first.
function remember() {
  state.returned = null;
  state.actions = log.history.map((place) => ({ place, skipped: false }));
}

function read(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    return null;
  }
  if (found === null || typeof found !== "object" || log.place(found) === undefined || found.judge !== data.judge) return null;
  const spans = found.spans ?? [];
  const whole = (span) => Number.isInteger(span?.start) && Number.isInteger(span?.end);
  if (!Array.isArray(spans) || !spans.every(whole) || typeof (found.note ?? "") !== "string") return null;
  const scale = data.guidelines.grades.map((each) => each.grade);
  return found.grade === null || scale.includes(found.grade) ? found : null;
}

// Keys and buttons.

const ACTIONS = {
  c: () => judge(null),
  s: skip,
  u: undo,
  n: () => {
    if (state.place !== null) openNote(true);
  },
  m: mark,
  j: () => choose(1),
  k: () => choose(-1),
  "?": () => byId("help").showModal(),
};
// Of drafted questions, the note is the question as it should be.
if (data.edit) {
  const button = document.querySelector("[data-action=note]");
  ACTIONS.e = ACTIONS.n;
  delete ACTIONS.n;
  button.setAttribute("aria-keyshortcuts", "e");
  button.replaceChildren(make("kbd", {}, "e"), " Edit the question");
  document.querySelector("label[for=note]").textContent = "Question";
  byId("note-key").replaceChildren(make("kbd", {}, "e"));
  byId("note-help").textContent = "Edit the question. It is saved when you accept it.";
}
for (const each of grades) ACTIONS[each.key] = () => judge(each.grade);

function pressed(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || event.isComposing) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.target instanceof Element && event.target.closest("textarea, input")) return;
  const key = [event.key.toLowerCase(), physical(event)].find((each) => Object.hasOwn(ACTIONS, each));
  if (key === undefined) return;
  event.preventDefault();
  ACTIONS[key]();
}

// The letter or digit on a key, where the keyboard writes in another script, or digits with the shift key.
function physical(event) {
  const [, kind, name] = /^(Key|Digit)(\w)$/.exec(event.code) ?? [];
  const foreign = event.key.length === 1 && event.key > "\u007f";
  return foreign || (kind === "Digit" && !event.shiftKey) ? (name ?? "").toLowerCase() : "";
}

function noteKey(event) {
  if (event.isComposing || !(event.key === "Escape" || (event.key === "Enter" && !event.shiftKey))) return;
  event.preventDefault();
  closeNote();
}

function setUp() {
  byId("grades").classList.toggle("many", grades.length > 5);
  byId("grades").append(
    ...grades.map((each) =>
      make(
        "button",
        { type: "button", class: "grade", "data-grade": each.grade, "aria-keyshortcuts": each.key, onclick: () => judge(each.grade) },
        make("kbd", {}, each.key),
        make("b", {}, each.label),
        each.description && make("span", {}, each.description),
      ),
    ),
  );
  byId("help-title").textContent = data.guidelines.title;
  byId("help-text").textContent = data.guidelines.text;
  byId("help-grades").append(
    ...grades.flatMap((each) => [
      make("dt", {}, make("kbd", {}, each.key)),
      make("dd", {}, make("b", {}, each.label), each.description),
    ]),
  );
  const buttons = { cannot: "c", skip: "s", undo: "u", note: "n", mark: "m" };
  for (const [name, key] of Object.entries(buttons)) {
    const button = document.querySelector(`[data-action=${name}]`);
    // A button that takes the focus would clear the selection that it is to mark.
    if (name === "mark") button.addEventListener("pointerdown", (event) => event.preventDefault());
    button.addEventListener("click", ACTIONS[key]);
  }
  byId("open-help").addEventListener("click", ACTIONS["?"]);
  byId("open-review").addEventListener("click", review);
  byId("close-review").addEventListener("click", () => byId("review").close());
  byId("close-help").addEventListener("click", () => byId("help").close());
  byId("help").addEventListener("close", () => byId("document").focus({ preventScroll: true }));
  byId("to-start").addEventListener("click", () => {
    byId("document").scrollTop = 0;
    byId("to-start").hidden = true;
    byId("document").focus({ preventScroll: true });
  });
  byId("again").addEventListener("click", () => state.retry?.());
  byId("note").addEventListener("keydown", noteKey);
  byId("note").addEventListener("input", keepDraft);
  byId("export").addEventListener("click", exported);
  byId("import").addEventListener("change", (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (file) imported(file);
  });
  for (const id of ["export", "import-part"]) byId(id).hidden = onServer;
  setUpTheme(byId("theme"), () => {});
  document.addEventListener("keydown", pressed);
  let hiddenAt = null;
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hiddenAt = performance.now();
    else if (hiddenAt !== null) state.hiddenFor += performance.now() - Math.max(hiddenAt, state.shownAt);
  });
}

async function start() {
  byId("judge").textContent = data.judge;
  document.title = `Judging ${data.dataset} · ${data.judge}`;
  for (const each of await store.lines()) log.add(each);
  remember();
  state.skipped = await drafts.load(log);
  await act(null, null, "");
  document.documentElement.dataset.ready = "yes";
}

// A page that was made for no judge in particular asks who judges, once.
async function askName() {
  const known = await store.name();
  const begin = (name) => {
    data.judge = name;
    start();
  };
  if (known) {
    begin(known);
    return;
  }
  byId("ask").addEventListener("cancel", (event) => event.preventDefault());
  byId("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = byId("name").value.trim();
    if (!name) return;
    store.setName(name);
    byId("ask").close();
    begin(name);
  });
  byId("ask").showModal();
  document.documentElement.dataset.ready = "yes";
}

setUp();
if (data.judge) start();
else askName();
