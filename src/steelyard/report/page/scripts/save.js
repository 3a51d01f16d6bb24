// Files that the page saves.

import { make } from "./dom.js";

export function saveFile(name, content, type) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  saveAddress(name, address);
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

export function saveAddress(name, address) {
  make("a", { href: address, download: name.replace(/[^\p{L}\p{N}._-]+/gu, "-") || "file" }).click();
}

// Rows of values as CSV; the first row has the names of the columns.
export function csvOf(rows) {
  const cell = (value) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "";
    const text = String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\n`).join("");
}
