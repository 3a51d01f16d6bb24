// Ranges of a text, each [start, end] in UTF-16 units: terms of the query, sentences, and what the judge marked.

import { parts } from "./text.js";

const WINDOW = 500;
const MOST_TERMS = 5000;
const SEGMENTED = 200000;

export function termRanges(text, wanted) {
  const found = [];
  let at = 0;
  for (const part of parts(text, wanted)) {
    if (part.marked && found.length < MOST_TERMS) found.push([at, at + part.text.length]);
    at += part.text.length;
  }
  return found;
}

// The window with the most different terms, then with the most terms: numbers of its first and its last term.
export function densest(text, ranges) {
  const counts = new Map();
  const term = (number) => text.slice(...ranges[number]).toLowerCase();
  let best = null;
  let from = 0;
  for (let to = 0; to < ranges.length; to += 1) {
    counts.set(term(to), (counts.get(term(to)) ?? 0) + 1);
    while (ranges[to][1] - ranges[from][0] > WINDOW && from < to) {
      const left = counts.get(term(from)) - 1;
      if (left) counts.set(term(from), left);
      else counts.delete(term(from));
      from += 1;
    }
    const value = counts.size * MOST_TERMS + to - from;
    if (!best || value > best.value) best = { value, from, to };
  }
  return best;
}

export function sentenceRanges(text) {
  const made = [];
  const keep = (start, sentence) => {
    const range = trimmed(start, sentence);
    if (range) made.push(range);
  };
  if (globalThis.Intl?.Segmenter && text.length <= SEGMENTED) {
    const segmenter = new Intl.Segmenter(undefined, { granularity: "sentence" });
    for (const each of segmenter.segment(text)) keep(each.index, each.segment);
  } else for (const match of text.matchAll(/[^.!?\n]+[.!?]*/g)) keep(match.index, match[0]);
  return made;
}

// A range without the white space around it, or null where there is nothing else.
export function trimmed(start, text) {
  const content = text.trim();
  const from = start + text.indexOf(content);
  return content ? [from, from + content.length] : null;
}

// The text cut where a range starts or ends, each part with the names of the layers it is in. The ranges of a layer
// are in order and do not overlap.
export function segments(text, layers) {
  const cuts = new Set([0, text.length]);
  for (const [, ranges] of layers) for (const range of ranges) range.forEach((at) => cuts.add(at));
  const sorted = [...cuts].sort((a, b) => a - b);
  const next = layers.map(() => 0);
  return sorted.slice(0, -1).map((start, number) => {
    const names = layers.flatMap(([name, ranges], layer) => {
      while (next[layer] < ranges.length && ranges[next[layer]][1] <= start) next[layer] += 1;
      return ranges[next[layer]]?.[0] <= start ? [name] : [];
    });
    return { start, text: text.slice(start, sorted[number + 1]), names };
  });
}

// The marked spans with one more, joined with those it touches; without those around it, where it is marked already.
export function toggled(spans, [start, end]) {
  const around = spans.filter((each) => each[0] <= start && end <= each[1]);
  if (around.length) return spans.filter((each) => !around.includes(each));
  const touching = spans.filter((each) => each[0] <= end && start <= each[1]);
  const from = Math.min(start, ...touching.map((each) => each[0]));
  const to = Math.max(end, ...touching.map((each) => each[1]));
  return [...spans.filter((each) => !touching.includes(each)), [from, to]].sort((a, b) => a[0] - b[0]);
}

// The part of an element's text that is selected.
export function selectedRange(element) {
  const selection = getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  if (!range.intersectsNode(element)) return null;
  const within = document.createRange();
  within.selectNodeContents(element);
  if (range.comparePoint(element, 0) < 0) within.setStart(range.startContainer, range.startOffset);
  if (range.comparePoint(element, element.childNodes.length) > 0) within.setEnd(range.endContainer, range.endOffset);
  const ahead = document.createRange();
  ahead.selectNodeContents(element);
  ahead.setEnd(within.startContainer, within.startOffset);
  return trimmed(ahead.toString().length, within.toString());
}

// Offsets in a judgments file count characters, those in a page UTF-16 units.

export function toPoints(text, units) {
  let points = units;
  for (let at = 0; at + 1 < units; at += 1) if (isHigh(text, at)) points -= 1;
  return points;
}

export function toUnits(text, points) {
  let at = 0;
  for (let count = 0; count < points && at < text.length; count += 1) at += isHigh(text, at) ? 2 : 1;
  return at;
}

function isHigh(text, at) {
  const unit = text.charCodeAt(at);
  return unit >= 0xd800 && unit <= 0xdbff;
}
