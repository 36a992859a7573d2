// All clusters and flows: how many are how, the picture, and the list.

import { asOf, ago, isStale } from "./age.js";
import { h, put } from "./dom.js";
import { bytes, count, duration, short, words } from "./format.js";
import { empty, problem } from "./notices.js";
import { flowGraph } from "./plot_graph.js";
import { sparkline } from "./plot_line.js";
import { badge, known } from "./state.js";
import { table } from "./tables.js";

const LEVELS = [["danger", "Need somebody"], ["warning", "To be watched"], ["idle", "Resting"], ["ok", "Fine"]];
const URGENCY = { danger: 0, warning: 1, idle: 2, ok: 3 };
/** More arrows are a ball of wool: then the picture is of the most urgent ones. */
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
  if (data.hidden) return empty("No flow for you", `${count(data.hidden)} flows are configured, and you may read the DAG of none of them. ` +
    "Ask who gives permissions in Airflow for the DAGs whose names begin with mirror__.");
  const files = data.files.length ? data.files.join(", ") : "files that you may not see";
  return empty("No flow can be shown", `Airflow serves the flows of ${files}; MIRROR_CONFIG names these files. ` +
    'A line such as "primary->backup.enabled = true" makes a flow.', "This page reads the files again by itself.");
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
    h("div", { class: "tile" }, h("span", { class: "label" }, "Behind, all flows"),
      h("span", { class: "value" }, short(sum("records_behind"))),
      h("span", { class: "note" }, `records, ${bytes(sum("bytes_behind"))}`)),
    h("div", { class: "tile" }, h("span", { class: "label" }, "Partitions"),
      h("span", { class: "value" }, count(sum("partitions"))),
      h("span", { class: "note" }, `${count(sum("lagging"))} with something to copy, ${count(sum("stalled"))} standing still`)),
    h("div", { class: "tile" }, h("span", { class: "label" }, "Oldest look"),
      h("span", { class: "value" }, oldest ? ago(oldest.at) : "–"),
      h("span", { class: "note" }, `${looked.length} of ${data.flows.length} flows were looked at`)),
  ];
}

function cutoversUnderWay(data) {
  if (!data.cutovers.length) return null;
  return h("section", { class: "panel", "aria-label": "Cutovers under way" }, h("header", {}, h("h2", {}, "Cutovers under way")),
    table("Cutovers under way", [
      { label: "Cutover", plain: true, cell: (each) => h("a", { href: `#/cutover/${encodeURIComponent(each.name)}` }, each.name) },
      { label: "Flow", cell: (each) => each.flow },
      { label: "State", cell: (each) => known("cutovers", each.state) },
      { label: "Step", cell: (each) => words(each.step) },
      { label: "Carried out", cell: (each) => each.unattended ? badge("warning", "by nobody") : each.who },
      { label: "Changed", cell: (each) => ago(each.updated_at) },
    ], data.cutovers));
}

function graph(data) {
  const all = data.flows.length <= ALL_DRAWN;
  const flows = all ? data.flows : data.flows.filter((flow) => flow.state.level !== "ok").sort(byUrgency).slice(0, URGENT_DRAWN);
  const clusters = all ? data.clusters : data.clusters.filter((name) => flows.some((f) => f.source === name || f.target === name));
  const title = all ? "Clusters" : `The ${count(flows.length)} most urgent of ${count(data.flows.length)} flows`;
  return h("section", { class: "panel", "aria-label": title }, h("header", {}, h("h2", {}, title),
    h("span", { class: "legend" }, Object.entries({ ok: "fine", warning: "to be watched", danger: "needs somebody", idle: "resting" })
      .map(([level, text]) => badge(level, text)))),
    flows.length ? h("div", { class: "panel-body graph-scroll" }, flowGraph(clusters, flows))
      : h("p", { class: "empty" }, "All flows are fine."));
}

function byUrgency(a, b) {
  return URGENCY[a.state.level] - URGENCY[b.state.level] || a.name.localeCompare(b.name);
}

function flowTable(data) {
  const text = chosen.text.trim().toLowerCase();
  const rows = data.flows
    .filter((flow) => (!chosen.level || flow.state.level === chosen.level) && flow.name.toLowerCase().includes(text))
    .sort(byUrgency);
  if (!rows.length) return h("p", { class: "empty" }, "No flow is like that.");
  return table("Flows", [
    { label: "Flow", plain: true, cell: (flow) => [h("a", { class: "flow-name", href: `#/flow/${encodeURIComponent(flow.dag_id)}` },
      flow.source, h("span", { class: "arrow" }, "→"), flow.target)] },
    { label: "State", cell: (flow) => badge(flow.state.level, flow.state.word, flow.state.reasons.join(" ")) },
    { label: "Records behind", number: true, cell: (flow) => short(flow.records_behind) },
    { label: "Last 6 h", cell: (flow) => sparkline(flow.spark) },
    { label: "Behind", number: true, cell: (flow) => duration(flow.seconds_behind) },
    { label: "Caught up in", number: true, cell: (flow) => duration(flow.catch_up_seconds) },
    { label: "Still", number: true, cell: (flow) => flow.stalled ? h("span", { title: Object.entries(flow.reasons)
      .map(([reason, times]) => `${times} ${words(reason)}`).join(", ") }, count(flow.stalled)) : flow.seen ? "0" : "–" },
    { label: "Would read again", number: true, cell: (flow) => short(flow.read_again) },
    { label: "Would skip", number: true, cell: (flow) => short(flow.skipped) },
    { label: "Verified", cell: (flow) => flow.different ? badge("danger", `${flow.different} differ`) : ago(flow.verified_at) },
    { label: "Last run", cell: (flow) => flow.last_run_state ? [known("runs", flow.last_run_state), " ", ago(flow.last_run_at)] : "–" },
    { label: "Looked at", cell: (flow) => asOf(flow.seen) },
  ], rows, { rowOf: (flow) => (isStale(flow.seen) ? { class: "stale-numbers" } : {}) });
}

