// The charts: drawn with the bundled Vega when they come into view, and again when the theme changes.

import { append, byId, make, option } from "./dom.js";
import { visible } from "./text.js";
import { isDark } from "./theme.js";

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
        figure.seen = true;
        draw(figure, store.get());
      }),
    { rootMargin: "200px" },
  );
  figures.forEach((figure) => watcher.observe(figure.element));
  byId("chart-measure").value = shownMeasure(data, store.get());
  store.watch((state, before) => {
    if (state.measure === before.measure) return;
    byId("chart-measure").value = shownMeasure(data, state);
    figures.forEach((figure) => point(figure, state));
  });
  addEventListener("beforeprint", () => figures.filter((each) => !each.seen).forEach((each) => draw(each, store.get())));
  return () => figures.filter((each) => each.seen).forEach((figure) => draw(figure, store.get()));
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

async function draw(figure, state) {
  figure.seen = true;
  caption(figure, state);
  drawing ??= loadVega();
  const embed = await drawing;
  const spec = { ...figure.chart.spec };
  const chosen = { ...selected(figure, state), ...colours().inks };
  spec.params = (spec.params ?? []).map((each) => (chosen[each.name] === undefined ? each : { ...each, value: chosen[each.name] }));
  const stage = figure.element.querySelector(".drawing");
  const result = await embed(stage, spec, { actions: false, ast: true, renderer: "svg", config: config(), tooltip: { theme: isDark() ? "dark" : "light" } });
  figure.view?.finalize();
  figure.view = result.view;
  label(figure, stage);
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

function loadVega() {
  const script = document.createElement("script");
  script.textContent = byId("vega").textContent;
  document.head.append(script);
  return Promise.resolve(globalThis.vegaEmbed);
}

const LIGHT = {
  ink: "#1c2524",
  soft: "#56615f",
  line: "#e4e2db",
  inks: { inkLow: "#000000", inkHigh: "#ffffff", inkAt: 0.72 },
  ramp: ["#eaf3f1", "#a9d3cc", "#5aa9a0", "#1f7a72", "#0b4f4a"],
  levels: ["#0b4f4a", "#1f7a72", "#8cc4bc", "#f1f1ee", "#d9d9d6"],
  runs: ["#0072b2", "#d55e00", "#00805a", "#b0468f", "#8a6d00", "#5b4bb7", "#c0392b", "#3d7ea6", "#6a7b0f", "#7a5c46"],
};
const DARK = {
  ink: "#e4eae8",
  soft: "#a2afac",
  line: "#2c3739",
  inks: { inkLow: "#ffffff", inkHigh: "#000000", inkAt: 0.5 },
  ramp: ["#1d2a2c", "#205450", "#2e7f78", "#4fa9a0", "#8be0d6"],
  levels: ["#8be0d6", "#4fa9a0", "#205450", "#1d2629", "#33393b"],
  runs: ["#58b4e9", "#ff9a4d", "#3fcf9f", "#ea8fc8", "#e5c646", "#a99cf5", "#ff8073", "#8fc1dd", "#bfd14a", "#cfa98c"],
};

function colours() {
  return isDark() ? DARK : LIGHT;
}

function config() {
  const { ink, soft, line, runs, ramp, levels } = colours();
  const text = { labelColor: ink, titleColor: soft, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" };
  return {
    background: "transparent",
    font: "system-ui, sans-serif",
    range: { category: runs, ramp, ordinal: levels },
    view: { stroke: null },
    axis: { ...text, gridColor: line, domainColor: soft, tickColor: soft },
    legend: text,
    text: { color: ink },
    rule: { color: ink },
  };
}
