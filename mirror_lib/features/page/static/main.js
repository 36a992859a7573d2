// The address after the # selects the view; this module fetches its data, shows it, and refreshes it.

import { read } from "./api.js";
import { put } from "./dom.js";
import { failure, loading } from "./notices.js";
import { startTheme } from "./theme.js";

const AGAIN_MS = 30_000;
const main = document.getElementById("main");
const freshness = document.getElementById("freshness");
let underWay = new AbortController();
let shown = null;

/** `#/flow/<dag>/<tab>?<query>`, `#/cutover/<name>`, `#/cutovers`, `#/`. */
function address() {
  const [path, query] = location.hash.slice(2).split("?");
  const [view, name, tab] = path.split("/").map(decoded);
  return { view: view || "overview", name, tab, query: new URLSearchParams(query) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function show(quietly = false) {
  underWay.abort();
  underWay = new AbortController();
  const { signal } = underWay;
  const { view, name, tab, query } = address();
  const group = view.startsWith("cutover") ? "cutovers" : "overview";
  for (const link of document.querySelectorAll(".bar nav a")) {
    if (link.dataset.view === group) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  main.setAttribute("aria-busy", "true");
  if (!quietly) put(main, loading());
  const scroll = quietly ? window.scrollY : 0;
  try {
    // What shows it and what is shown are fetched at the same time: an overview does not wait for the code of a flow.
    if (view === "flow") {
      const [{ showFlow }, detail] = await Promise.all(
        [import("./view_flow.js"), read(`flows/${encodeURIComponent(name)}`, {}, signal)]);
      document.title = `${detail.flow.name} – Replication`;
      await showFlow(main, detail, tab, query, () => show(true), signal);
    } else if (view === "cutovers") {
      const [{ showCutovers }, all] = await Promise.all([import("./view_cutovers.js"), read("cutovers", {}, signal)]);
      showCutovers(main, all);
    } else if (view === "cutover") {
      const [{ showCutover }, one] = await Promise.all(
        [import("./view_cutovers.js"), read(`cutovers/${encodeURIComponent(name)}`, {}, signal)]);
      showCutover(main, one);
    } else {
      const [{ showOverview }, all] = await Promise.all([import("./view_overview.js"), read("overview", {}, signal)]);
      showOverview(main, all);
    }
    if (view !== "flow") document.title = "Replication";
    freshness.textContent = `updated ${new Date().toLocaleTimeString()}`;
    shown = location.hash;
  } catch (error) {
    if (error.name === "AbortError") return;
    put(main, failure(error, () => show()));
    freshness.textContent = "not updated";
  }
  main.removeAttribute("aria-busy");
  if (quietly) window.scrollTo(0, scroll);
}

/** A refresh must not discard a sorted table, a filter, an open dialog, or the focus. */
function mayChange() {
  const held = document.activeElement;
  return !document.hidden && !document.querySelector("dialog[open]") && (!held || held === document.body || held === main)
    && !/\/(partitions|groups)/.test(location.hash) && !main.querySelector(".tip:not(.hidden)");
}

const asked = new URLSearchParams(location.search).get("dag");
if (asked && !location.hash) history.replaceState(null, "", `#/flow/${encodeURIComponent(asked)}`);
startTheme(document.getElementById("theme"));
document.getElementById("refresh").addEventListener("click", () => show(true));
window.addEventListener("hashchange", async () => {
  const sameFlow = shown && location.hash.split("/")[2] === shown.split("/")[2] && location.hash.startsWith("#/flow/");
  await show(sameFlow);
  if (!sameFlow) main.focus({ preventScroll: true });
});
setInterval(() => mayChange() && show(true), AGAIN_MS);
show();
