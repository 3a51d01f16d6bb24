// Elements are built without HTML, so that any text stays text.

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function drawn(tag, properties = {}) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, String(value));
  return element;
}

const LONG_NAME = 24;
let sharedEnds = [0, 0];

// The number of characters at the start and at the end that all long names of runs share.
export function setSharedEnds(ends) {
  sharedEnds = ends;
}

// The name of a run; of a long one the shared ends are hidden, and its middle is cut where it does not fit. If there are
// no such ends and it has words, it is broken between them.
export function nameOf(text) {
  const [head, tail] = sharedEnds;
  const words = head + tail === 0 && text.length <= 36 && text.includes(" ");
  if (text.length <= LONG_NAME || words) return make("bdi", { class: "name" }, text);
  const middle = text.slice(head, text.length - tail);
  const start = middle.length > 12 ? middle.length - 10 : 0;
  return make(
    "bdi",
    { class: "name", title: text },
    head > 0 && make("span", { class: "shared" }, text.slice(0, head)),
    start > 0 && make("span", { class: "start" }, middle.slice(0, start)),
    make("span", { class: "end" }, middle.slice(start)),
    tail > 0 && make("span", { class: "shared" }, text.slice(-tail)),
  );
}

// The name of a run as plain text.
export function shortNameOf(text, most = 32) {
  if (text.length <= LONG_NAME) return text;
  const [head, tail] = sharedEnds;
  const middle = text.slice(head, text.length - tail);
  const half = Math.floor((most - 1) / 2);
  const cut = middle.length <= most ? middle : `${middle.slice(0, most - 1 - half)}…${middle.slice(-half)}`;
  return `${head ? "…" : ""}${cut}${tail ? "…" : ""}`;
}

export function option(value, text, selected) {
  const element = make("option", { value }, text);
  element.selected = selected;
  return element;
}

// Do something when the whole page is there: it starts before its lists and the script of the charts are.
export function whenParsed(work) {
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", work, { once: true });
  else work();
}

export function byId(id) {
  return document.getElementById(id);
}
