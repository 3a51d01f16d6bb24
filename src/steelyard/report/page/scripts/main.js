// Start of the page: read the data and the state, and set up every part.

import { setUpCharts } from "./charts.js";
import { unpack } from "./data.js";
import { byId, setSharedEnds, whenParsed } from "./dom.js";
import { setUpLeaderboard } from "./leaderboard.js";
import { setUpOpeners } from "./openers.js";
import { setUpPickers } from "./picker.js";
import { setUpQueries } from "./queries.js";
import { setUpQuery } from "./query.js";
import { createStore } from "./state.js";
import { setUpTheme } from "./theme.js";

export function start() {
  const data = unpack(JSON.parse(byId("summary-data").textContent));
  setSharedEnds(data.shared);
  const store = createStore(location, history);
  setUpLeaderboard(data, store);
  setUpPickers(data, store);
  setUpOpeners(data, store);
  const order = setUpQueries(data, store);
  const redraw = setUpCharts(data, store);
  setUpTheme(byId("theme"), redraw);
  setUpQuery(data, store, order);
  addEventListener("hashchange", () => store.follow());
  addEventListener("popstate", () => store.follow());
  for (const link of document.querySelectorAll("a[data-section]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const section = byId(link.dataset.section);
      section.scrollIntoView();
      section.querySelector("h2").focus({ preventScroll: true });
    });
  }
  const ready = () => (document.documentElement.dataset.ready = "yes");
  if (store.get().query) whenParsed(ready);
  else ready();
}

start();
