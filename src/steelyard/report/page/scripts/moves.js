// Lines between lists side by side, from each document to its position in the next list, if that one is compared with it.

import { drawn } from "./dom.js";

export function drawMoves(stage, canvas) {
  canvas.replaceChildren();
  const columns = [...stage.querySelectorAll(".list")];
  if (columns.length < 2 || getComputedStyle(canvas).display === "none") return;
  const frame = stage.getBoundingClientRect();
  canvas.setAttribute("width", String(stage.scrollWidth));
  canvas.setAttribute("height", String(stage.scrollHeight));
  for (let at = 0; at + 1 < columns.length; at += 1) {
    if (columns[at + 1].dataset.from.split(" ").at(-1) !== String(at)) continue;
    const right = new Map(
      [...columns[at + 1].querySelectorAll("li[data-doc]")].map((item) => [item.dataset.doc, item]),
    );
    for (const item of columns[at].querySelectorAll("li[data-doc]")) {
      const other = right.get(item.dataset.doc);
      if (other && !item.hidden && !other.hidden) canvas.append(line(item, other, frame, stage));
    }
  }
}

function line(item, other, frame, stage) {
  const [a, b] = [middle(item), middle(other)];
  const shift = (x, y) => [x - frame.left + stage.scrollLeft, y - frame.top + stage.scrollTop];
  const [x1, y1] = shift(a.right + 2, a.y);
  const [x2, y2] = shift(b.left - 2, b.y);
  const bend = (x2 - x1) / 2;
  return drawn("path", {
    d: `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`,
    class: `move ${item.dataset.kind}`,
  });
}

function middle(item) {
  const box = item.getBoundingClientRect();
  const head = item.querySelector(".head").getBoundingClientRect();
  return { left: box.left, right: box.right, y: head.top + head.height / 2 };
}
