// The charts: drawn with the bundled Vega when they come into view, and again when the theme changes.

import { append, byId, make, option, whenParsed } from "./dom.js";
import { pickedRuns } from "./picker.js";
import { csvOf, saveAddress, saveFile } from "./save.js";
import { visible } from "./text.js";
import { isDark } from "./theme.js";

const LOWEST = 340;
let drawing = null;

export function setUpCharts(data, store) {
  const figures = [...document.querySelectorAll("figure.chart")].map((element) => ({
    element,
    chart: JSON.parse(element.querySelector("script[type='application/json']").textContent),
    view: null,
    seen: false,
  }));
  if (!figures.length) return () => {};
  setUpSelect("chart-measure", data.measures.map((each) => each.label), (value) => store.set({ measure: value, page: 1 }));
  const columns = figures.flatMap((figure) => figure.chart.columns);
  setUpSelect("chart-column", columns, () => figures.forEach((figure) => point(figure, store.get())));
  const watcher = new IntersectionObserver(
    (entries) =>
      entries.forEach((entry) => {
        if (!entry.isIntersecting) return;
        watcher.unobserve(entry.target);
        const figure = figures.find((each) => each.element === entry.target);
        draw(figure, data, store.get());
      }),
    { rootMargin: "200px" },
  );
  for (const figure of figures) {
    reserve(figure, shownLabels(figure, data, store.get()));
    watcher.observe(figure.element);
  }
  byId("chart-measure").value = shownMeasure(data, store.get());
  const redraw = (which) => figures.filter(which).forEach((figure) => draw(figure, data, store.get()));
  store.watch((state, before) => {
    if (state.runs !== before.runs) redraw((each) => each.seen);
    if (state.measure === before.measure) return;
    byId("chart-measure").value = shownMeasure(data, state);
    figures.forEach((figure) => point(figure, state));
    figures.forEach((figure) => showNumbers(figure, data, state));
  });
  for (const figure of figures) {
    figure.element.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-save]");
      if (button && figure.view) save(figure, data, store.get(), button.dataset.save);
    });
    const numbers = figure.element.querySelector(".numbers");
    numbers.hidden = false;
    numbers.addEventListener("toggle", () => showNumbers(figure, data, store.get()));
  }
  setUpPrinting(redraw);
  return () => redraw((each) => each.seen);
}

// In print every chart is drawn, in light colours, and nothing is folded.
function setUpPrinting(redraw) {
  let folded = [];
  const before = () => {
    folded = [...folded, ...document.querySelectorAll("details:not([open]):has(figure.chart)")];
    folded.forEach((fold) => (fold.open = true));
    redraw(() => true);
  };
  const after = () => {
    folded.forEach((fold) => (fold.open = false));
    folded = [];
    redraw((each) => each.seen);
  };
  addEventListener("beforeprint", before);
  addEventListener("afterprint", after);
  matchMedia("print").addEventListener("change", (event) => (event.matches ? before() : after()));
}

// The labels of the runs that a chart shows, in its order: the chosen ones, or all beside a table of all runs.
function shownLabels(figure, data, state) {
  if (!figure.element.closest("#charts")) return figure.chart.runs;
  const picked = pickedRuns(data, state);
  return figure.chart.runs.filter((_, at) => picked.includes(figure.chart.numbers[at]));
}

// The height of a chart: tall charts have one row per run.
function heightOf(figure, labels) {
  const { spec, runs } = figure.chart;
  return Math.max(Math.min(spec.height, LOWEST), Math.round((spec.height * labels.length) / runs.length));
}

function reserve(figure, labels) {
  figure.element.querySelector(".drawing").style.minHeight = `${heightOf(figure, labels)}px`;
}

// The rows of a chart for the runs that are shown.
function rowsOf(figure, labels) {
  const pairs = ["p-values", "agreement"].includes(figure.chart.name);
  const shown = new Set(labels);
  return figure.chart.spec.datasets.rows.filter((row) => row.run === undefined || (shown.has(row.run) && (!pairs || shown.has(row.vs))));
}

// What a chart shows as a table: the heads, then the rows of the chosen measure and column.
function shownTable(figure, data, state) {
  const { measure, column } = selected(figure, state);
  const rows = rowsOf(figure, shownLabels(figure, data, state)).filter(
    (row) => (measure === undefined || row.measure === measure) && (column === undefined || row.column === column),
  );
  const heads = Object.keys(rows[0] ?? {});
  return [heads, ...rows.map((row) => heads.map((head) => row[head]))];
}

// The numbers of a chart, for those who cannot see it.
function showNumbers(figure, data, state) {
  const numbers = figure.element.querySelector(".numbers");
  if (!numbers.open) return;
  const [heads, ...rows] = shownTable(figure, data, state);
  const isNumber = (value) => typeof value === "number" && "number";
  const text = (value) => (isNumber(value) && !Number.isInteger(value) ? value.toFixed(4) : String(value ?? "–"));
  const cell = (value) => make("td", { class: isNumber(value) }, visible(text(value)));
  const head = make("tr", {}, heads.map((name, at) => make("th", { scope: "col", class: isNumber(rows[0]?.[at]) }, name)));
  const body = rows.map((row) => make("tr", {}, row.map(cell)));
  numbers.lastElementChild.replaceChildren(make("table", { class: "plain" }, make("thead", {}, head), make("tbody", {}, body)));
}

async function save(figure, data, state, kind) {
  const { name } = figure.chart;
  if (kind === "csv") return saveFile(`${name}.csv`, csvOf(shownTable(figure, data, state)), "text/csv");
  figure.view.background(getComputedStyle(figure.element).backgroundColor);
  await figure.view.runAsync();
  if (kind === "svg") saveFile(`${name}.svg`, await figure.view.toSVG(), "image/svg+xml");
  else saveAddress(`${name}.png`, await figure.view.toImageURL("png", 2));
}

function shownMeasure(data, state) {
  return data.measures.some((each) => each.label === state.measure) ? state.measure : data.measures[0].label;
}

function setUpSelect(id, values, changed) {
  const select = byId(id);
  append(select, values.map((value) => option(value, visible(value), false)));
  select.addEventListener("change", () => changed(select.value));
  select.closest("label").hidden = values.length < 2;
}

// The measure and column of a chart: the chosen ones, or its first where it does not have them.
function selected(figure, state) {
  const { measures, columns } = figure.chart;
  const column = byId("chart-column").value;
  return {
    measure: measures.includes(state.measure) ? state.measure : measures[0],
    column: columns.includes(column) ? column : columns[0],
  };
}

function point(figure, state) {
  caption(figure, state);
  if (!figure.view) return;
  for (const [name, value] of Object.entries(selected(figure, state))) {
    if (value !== undefined) figure.view.signal(name, value);
  }
  figure.view.runAsync();
}

function caption(figure, state) {
  const { measure, column } = selected(figure, state);
  const shown = figure.element.querySelector(".shown");
  shown.replaceChildren();
  if (measure !== undefined) append(shown, [make("bdi", {}, visible(measure))]);
  if (column !== undefined) append(shown, [", by ", make("bdi", {}, visible(column))]);
}

async function draw(figure, data, state) {
  figure.seen = true;
  caption(figure, state);
  drawing ??= loadVega();
  const embed = await drawing;
  const labels = shownLabels(figure, data, state);
  const spec = { ...withLegend(figure.chart.spec, labels), height: heightOf(figure, labels) };
  spec.datasets = { rows: rowsOf(figure, labels) };
  reserve(figure, labels);
  const chosen = { ...selected(figure, state), ...colours().inks };
  spec.params = (spec.params ?? []).map((each) => (chosen[each.name] === undefined ? each : { ...each, value: chosen[each.name] }));
  const stage = figure.element.querySelector(".drawing");
  const result = await embed(stage, spec, { actions: false, ast: true, renderer: "svg", config: config(figure.chart.colours), tooltip: { theme: isDark() ? "dark" : "light" } });
  figure.view?.finalize();
  figure.view = result.view;
  figure.element.classList.add("drawn");
  label(figure, stage);
  showNumbers(figure, data, state);
}

// A specification whose legend of runs has only some of them; the scale keeps all, so that colours stay.
function withLegend(spec, labels) {
  if (Array.isArray(spec)) return spec.map((part) => withLegend(part, labels));
  if (spec === null || typeof spec !== "object") return spec;
  const made = Object.fromEntries(Object.entries(spec).map(([key, part]) => [key, key === "datasets" ? part : withLegend(part, labels)]));
  if (made.field === "run" && made.legend) {
    made.legend = { ...made.legend, values: labels };
    if (matchMedia("(max-width: 45rem)").matches) Object.assign(made.legend, { columns: 2, labelLimit: 120 });
  }
  return made;
}

// The drawing as one image with a label for screen readers.
function label(figure, stage) {
  const svg = stage.querySelector("svg");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", figure.chart.title);
  svg.querySelectorAll("[role]").forEach((part) => part.removeAttribute("role"));
  svg.querySelectorAll("[aria-label], [aria-roledescription]").forEach((part) => {
    part.removeAttribute("aria-label");
    part.removeAttribute("aria-roledescription");
  });
}

async function loadVega() {
  await new Promise(whenParsed);
  const script = document.createElement("script");
  script.textContent = byId("vega").textContent;
  document.head.append(script);
  return globalThis.vegaEmbed;
}

const LIGHT = {
  ink: "#1c2524",
  soft: "#56615f",
  line: "#e4e2db",
  inks: { inkLow: "#000000", inkHigh: "#ffffff", inkAt: 0.72 },
  ramp: ["#eaf3f1", "#a9d3cc", "#5aa9a0", "#1f7a72", "#0b4f4a"],
  levels: ["#0b4f4a", "#1f7a72", "#8cc4bc", "#f1f1ee", "#efd9a8", "#d9d9d6"],
  runs: ["#0b655f", "#85857f", "#0072b2", "#d55e00", "#b0468f", "#8a6d00", "#5b4bb7", "#c0392b", "#3d7ea6", "#6a7b0f", "#7a5c46", "#00805a"],
};
const DARK = {
  ink: "#e4eae8",
  soft: "#a2afac",
  line: "#2c3739",
  inks: { inkLow: "#ffffff", inkHigh: "#000000", inkAt: 0.5 },
  ramp: ["#1d2a2c", "#205450", "#2e7f78", "#4fa9a0", "#8be0d6"],
  levels: ["#8be0d6", "#4fa9a0", "#205450", "#1d2629", "#5c4a1e", "#33393b"],
  runs: ["#74cbc1", "#9aa3a1", "#58b4e9", "#ff9a4d", "#ea8fc8", "#e5c646", "#a99cf5", "#ff8073", "#8fc1dd", "#bfd14a", "#cfa98c", "#3fcf9f"],
};

function colours() {
  return isDark() ? DARK : LIGHT;
}

function config(numbers) {
  const { ink, soft, line, runs, ramp, levels } = colours();
  const text = { labelColor: ink, titleColor: soft, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" };
  return {
    background: "transparent",
    font: "system-ui, sans-serif",
    range: { category: numbers.map((number) => runs[number]), ramp, ordinal: levels },
    view: { stroke: null },
    axis: { ...text, gridColor: line, domainColor: soft, tickColor: soft },
    legend: text,
    text: { color: ink },
    rule: { color: ink },
  };
}
