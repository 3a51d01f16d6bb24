// Texts for display: control characters visible, query terms marked, long texts cut.

const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}'’_-]*/gu;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;
const COMMON = new Set(
  ("a an and are as at be by can did do does for from had has have how i if in into is it its many me much my of on or " +
    "s that the their there these they this to was we were what when where which who why will with you your").split(" "),
);

export function visible(text) {
  return text.replace(CONTROLS, (found) =>
    found === "\u007f" ? "\u2421" : String.fromCharCode(0x2400 + found.charCodeAt(0)),
  );
}

// The words of a query to mark; in scripts without spaces, pairs of characters.
export function terms(query) {
  const found = new Set();
  for (const [word] of query.slice(0, 2000).toLowerCase().matchAll(WORD)) {
    if (UNSPACED.test(word)) {
      const characters = [...word];
      for (let at = 0; at + 1 < characters.length; at += 1) found.add(characters[at] + characters[at + 1]);
    } else if (!COMMON.has(word)) found.add(word);
  }
  return found;
}

// The text in parts, each marked or not. Whole words match, also with a common ending.
export function parts(text, queryTerms) {
  const made = [];
  let from = 0;
  const keep = (to, marked) => {
    if (to > from) made.push({ text: text.slice(from, to), marked });
    from = to;
  };
  for (const match of text.matchAll(WORD)) {
    const word = match[0];
    const start = match.index;
    if (UNSPACED.test(word)) {
      for (const [at, end] of pairsIn(word, queryTerms)) {
        keep(start + at, false);
        keep(start + end, true);
      }
    } else if (isTerm(word.toLowerCase(), queryTerms)) {
      keep(start, false);
      keep(start + word.length, true);
    }
  }
  keep(text.length, false);
  return made;
}

const SCANNED = 20000;

// As `parts`, but only the start of a long text is searched.
export function partsOfLong(text, queryTerms) {
  if (text.length <= SCANNED) return parts(text, queryTerms);
  return [...parts(text.slice(0, SCANNED), queryTerms), { text: text.slice(SCANNED), marked: false }];
}

// The part of a text that is shown first: its start, or from shortly before the first term.
export function excerpt(text, queryTerms, size = 320) {
  if (text.length <= size) return text;
  let at = 0;
  for (const part of parts(text.slice(0, 5000), queryTerms)) {
    if (part.marked) break;
    at += part.text.length;
  }
  if (at < size / 2 || at >= Math.min(text.length, 5000)) return `${text.slice(0, size)}…`;
  const from = text.indexOf(" ", at - 80) + 1;
  const start = from > 0 && from <= at ? from : at;
  return `… ${text.slice(start, start + size)}${start + size < text.length ? "…" : ""}`;
}

function isTerm(word, queryTerms) {
  if (queryTerms.has(word)) return true;
  const stem = word.replace(/(?:['’]s|ing|ed|es|s)$/, "");
  return stem.length > 2 && [stem, `${stem}s`, `${stem}es`, `${stem}e`].some((form) => queryTerms.has(form));
}

function pairsIn(word, queryTerms) {
  const found = [];
  for (let at = 0; at + 1 < word.length; at += 1) {
    if (!queryTerms.has(word.slice(at, at + 2).toLowerCase())) continue;
    const last = found[found.length - 1];
    if (last && last[1] >= at) last[1] = at + 2;
    else found.push([at, at + 2]);
  }
  return found;
}

export function number(value, digits = 4) {
  if (Number.isNaN(value)) return "–";
  if (value !== 0 && Math.abs(value) < 10 ** -digits) return value.toExponential(1);
  return value.toFixed(digits);
}

// A value in the units of its measure: seconds are shown as milliseconds.
export function inUnits(measure, value, digits = 4) {
  if (measure.unit !== "s" || Number.isNaN(value)) return number(value, digits);
  return `${Number((value * 1000).toPrecision(3))} ms`;
}

export function signed(value, digits = 4) {
  if (Number.isNaN(value)) return "–";
  return `${value > 0 ? "+" : value < 0 ? "−" : "±"}${number(Math.abs(value), digits)}`;
}

export function counted(count, one, many) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
