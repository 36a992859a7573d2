// All clusters and flows: number of flows by level, the graph, and the list.

import { asOf, ago, isStale } from "./age.js";
import { h, put } from "./dom.js";
import { bytes, count, duration, short, words } from "./format.js";
import { empty, problem } from "./notices.js";
import { flowGraph } from "./plot_graph.js";
import { sparkline } from "./plot_line.js";
import { badge, carrier, known } from "./state.js";
import { table } from "./tables.js";

const LEVELS = [["danger", "Needs attention"], ["warning", "Degraded"], ["idle", "Idle"], ["ok", "Healthy"]];
const URGENCY = { danger: 0, warning: 1, idle: 2, ok: 3 };
/** More arrows are unreadable: then the graph shows the most urgent flows. */
const ALL_DRAWN = 40, URGENT_DRAWN = 24;
let chosen = { level: null, text: "" };

export function showOverview(main, data) {
  const problems = data.problems.map(problem);
  if (!data.flows.length) {
    put(main, problems, nothing(data));
    return;
  }
  const list = h("div", {});
  const tiles = h("div", { class: "tiles" });
  const fill = () => {
    put(tiles, levelTiles(data, fill), totals(data));
    put(list, flowTable(data));
  };
  const search = h("input", { type: "search", placeholder: "Filter flows", "aria-label": "Filter flows", value: chosen.text,
    oninput: (event) => { chosen.text = event.target.value; put(list, flowTable(data)); } });
  put(main, problems, tiles, cutoversUnderWay(data), graph(data),
    h("section", { class: "panel", "aria-label": "Flows" }, h("header", {}, h("h2", {}, "Flows"), search), list));
  fill();
}

function nothing(data) {
  if (data.hidden) return empty("No flows visible", `${count(data.hidden)} flows are configured, and you have no permission to read any of their DAGs. ` +
    "Ask your Airflow administrator for permission to read the DAGs whose names begin with mirror__.");
  const files = data.files.length ? data.files.join(", ") : "files that you have no permission to see";
  return empty("No flows to show", `Airflow reads flows from ${files} (set by MIRROR_CONFIG). ` +
    'To enable a flow, add a line such as "primary->backup.enabled = true".', "This page reloads the files automatically.");
}

function levelTiles(data, fill) {
  return LEVELS.map(([level, label]) => {
    const flows = data.flows.filter((flow) => flow.state.level === level);
    return h("button", { type: "button", class: "tile", "data-level": level, "aria-pressed": String(chosen.level === level),
      onclick: () => { chosen.level = chosen.level === level ? null : level; fill(); } },
      h("span", { class: "label" }, badge(level, label)),
      h("span", { class: "value" }, count(flows.length)),
      h("span", { class: "note" }, flows.length ? summed(flows) : "none"));
  });
}

function summed(flows) {
  const said = new Map();
  for (const flow of flows) said.set(flow.state.word, (said.get(flow.state.word) ?? 0) + 1);
  return [...said].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([word, times]) => `${times} ${word}`).join(", ");
}

function totals(data) {
  const looked = data.flows.filter((flow) => flow.seen);
  const sum = (key) => looked.reduce((total, flow) => total + (flow[key] ?? 0), 0);
  const oldest = looked.reduce((old, flow) => (!old || flow.seen.at < old.at ? flow.seen : old), null);
  return [
    h("div", { class: "tile" }, h("span", { class: "label" }, "Lag, all flows"),
      h("span", { class: "value" }, short(sum("records_behind"))),
      h("span", { class: "note" }, `records, ${bytes(sum("bytes_behind"))}`)),
    h("div", { class: "tile" }, h("span", { class: "label" }, "Partitions"),
      h("span", { class: "value" }, count(sum("partitions"))),
      h("span", { class: "note" }, `${count(sum("lagging"))} lagging, ${count(sum("stalled"))} stalled`)),
    h("div", { class: "tile" }, h("span", { class: "label" }, "Last observed"),
      h("span", { class: "value" }, oldest ? ago(oldest.at) : "–"),
      h("span", { class: "note" }, `${looked.length} of ${data.flows.length} flows observed`)),
  ];
}

function cutoversUnderWay(data) {
  if (!data.cutovers.length) return null;
  return h("section", { class: "panel", "aria-label": "Active cutovers" }, h("header", {}, h("h2", {}, "Active cutovers")),
    table("Active cutovers", [
      { label: "Cutover", plain: true, cell: (each) => h("a", { href: `#/cutover/${encodeURIComponent(each.name)}` }, each.name) },
      { label: "Flow", cell: (each) => each.flow },
      { label: "State", cell: (each) => known("cutovers", each.state) },
      { label: "Step", cell: (each) => words(each.step) },
      { label: "Process", cell: (each) => carrier(each) },
      { label: "Updated", cell: (each) => ago(each.updated_at) },
    ], data.cutovers));
}

function graph(data) {
  const all = data.flows.length <= ALL_DRAWN;
  const flows = all ? data.flows : data.flows.filter((flow) => flow.state.level !== "ok").sort(byUrgency).slice(0, URGENT_DRAWN);
  const clusters = all ? data.clusters : data.clusters.filter((name) => flows.some((f) => f.source === name || f.target === name));
  const title = all ? "Clusters" : `Most urgent flows (${count(flows.length)} of ${count(data.flows.length)})`;
  return h("section", { class: "panel", "aria-label": title }, h("header", {}, h("h2", {}, title),
    h("span", { class: "legend" }, Object.entries({ ok: "healthy", warning: "degraded", danger: "needs attention", idle: "idle" })
      .map(([level, text]) => badge(level, text)))),
    flows.length ? h("div", { class: "panel-body graph-scroll" }, flowGraph(clusters, flows))
      : h("p", { class: "empty" }, "All flows are healthy."));
}

function byUrgency(a, b) {
  return URGENCY[a.state.level] - URGENCY[b.state.level] || a.name.localeCompare(b.name);
}

function flowTable(data) {
  const text = chosen.text.trim().toLowerCase();
  const rows = data.flows
    .filter((flow) => (!chosen.level || flow.state.level === chosen.level) && flow.name.toLowerCase().includes(text))
    .sort(byUrgency);
  if (!rows.length) return h("p", { class: "empty" }, "No matching flows.");
  return table("Flows", [
    { label: "Flow", plain: true, cell: (flow) => [h("a", { class: "flow-name", href: `#/flow/${encodeURIComponent(flow.dag_id)}` },
      flow.source, h("span", { class: "arrow" }, "→"), flow.target)] },
    { label: "State", cell: (flow) => badge(flow.state.level, flow.state.word, flow.state.reasons.join(" ")) },
    { label: "Lag (records)", number: true, cell: (flow) => short(flow.records_behind) },
    { label: "Lag, last 6 h", cell: (flow) => sparkline(flow.spark) },
    { label: "Lag (time)", number: true, cell: (flow) => duration(flow.seconds_behind) },
    { label: "Time to catch up", number: true, cell: (flow) => duration(flow.catch_up_seconds) },
    { label: "Stalled", number: true, cell: (flow) => flow.stalled ? h("span", { title: Object.entries(flow.reasons)
      .map(([reason, times]) => `${times} ${words(reason)}`).join(", ") }, count(flow.stalled)) : flow.seen ? "0" : "–" },
    { label: "Duplicates on failover", number: true, cell: (flow) => short(flow.duplicates) },
    { label: "Skipped on failover", number: true, cell: (flow) => short(flow.skipped) },
    { label: "Verified", cell: (flow) => flow.different ? badge("danger", `${flow.different} different`) : ago(flow.verified_at) },
    { label: "Last run", cell: (flow) => flow.last_run_state ? [known("runs", flow.last_run_state), " ", ago(flow.last_run_at)] : "–" },
    { label: "Last observed", cell: (flow) => asOf(flow.seen, "") },
  ], rows, { rowOf: (flow) => (isStale(flow.seen) ? { class: "stale-numbers" } : {}) });
}

