// The composite with other weights.

import { bytes } from "./data.js";

export function unpackBoard(board) {
  return { ...board, covariance: new Float64Array(bytes(board.covariance)) };
}

export function readWeights(text, given) {
  const found = text.split(",").map(Number);
  const right = text !== "" && found.length === given.length && found.every((each) => each >= 0 && Number.isFinite(each));
  return right && found.some((each) => each > 0) ? found : [...given];
}

// The composite of each run with the half-width of its interval, the runs best first, and the lead of the first.
export function weigh(board, weights) {
  const total = weights.reduce((sum, each) => sum + each, 0);
  const shares = weights.map((each) => each / total);
  const means = board.means.map((parts) => parts.reduce((sum, mean, part) => sum + mean * shares[part], 0));
  const order = means.map((_, run) => run).sort((a, b) => means[b] - means[a] || a - b);
  const halves = means.map((_, run) => board.reach * Math.sqrt(covariance(board, shares, run, run) / board.queries));
  const [first, second] = order;
  let lead = null;
  if (second !== undefined) {
    const spread =
      covariance(board, shares, first, first) +
      covariance(board, shares, second, second) -
      2 * covariance(board, shares, first, second);
    lead = {
      first,
      second,
      gap: means[first] - means[second],
      half: board.reach * Math.sqrt(Math.max(0, spread) / board.queries),
    };
  }
  return { means, halves, order, lead };
}

// The covariance of the composites of two runs over queries.
function covariance(board, shares, one, other) {
  const parts = shares.length;
  const width = board.means.length * parts;
  let sum = 0;
  for (let a = 0; a < parts; a += 1) {
    for (let b = 0; b < parts; b += 1) {
      sum += shares[a] * shares[b] * board.covariance[(one * parts + a) * width + other * parts + b];
    }
  }
  return sum;
}
