// The judgments of one judge, as the lines of a judgments file say: of several lines for a document the last one
// counts, and a line with `undo` withdraws the one before it.

export class Log {
  constructor(pairs) {
    this.places = new Map(pairs.map((pair, place) => [JSON.stringify(pair), place]));
    this.held = pairs.map(() => []);
    this.history = [];
    this.lines = [];
  }

  place(line) {
    return this.places.get(JSON.stringify([line.query_id, line.doc_id]));
  }

  add(line) {
    const place = this.place(line);
    if (place === undefined) return;
    this.lines.push(line);
    if (line.undo === true) {
      this.held[place].pop();
      const at = this.history.lastIndexOf(place);
      if (at >= 0) this.history.splice(at, 1);
    } else {
      this.held[place].push(line);
      this.history.push(place);
    }
  }

  current(place) {
    return this.held[place].at(-1);
  }

  judged() {
    return this.held.filter((lines) => lines.length).length;
  }
}

export function median(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (!sorted.length) return null;
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

export function duration(seconds) {
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 360) / 10} h`;
}
