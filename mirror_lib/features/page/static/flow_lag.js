// The lag in records, bytes and seconds over time, and what each run copied.

import { read } from "./api.js";
import { h, put } from "./dom.js";
import { bytes, duration, short } from "./format.js";
import { BINARY, DECIMAL, TIME, linePlot } from "./plot_line.js";
import { throughputBars } from "./plot_bars.js";

const SPANS = [[6, "6 hours"], [24, "24 hours"], [168, "7 days"], [720, "30 days"]];

export async function showLag(body, detail, { query, base, signal }) {
  const hours = SPANS.find(([each]) => String(each) === query.get("hours"))?.[0] ?? 24;
  const path = `flows/${encodeURIComponent(detail.flow.dag_id)}`;
  const [history, runs] = await Promise.all([
    read(`${path}/history`, { hours }, signal), read(`${path}/runs`, { limit: 60 }, signal),
  ]);
  const since = new Date(history.since), until = new Date(history.now);
  const plot = (title, key, format, steps = DECIMAL) => panel(title, linePlot({ title, since, until, format, steps,
    points: history.lag.map((point) => ({ at: point.at, value: point[key] })) }));
  const spans = h("div", { class: "row" }, h("label", { class: "quiet" }, "Time range ",
    h("select", { id: "span", onchange: (event) => { location.hash = `${base.slice(1)}?hours=${event.target.value}`; } },
      SPANS.map(([each, label]) => h("option", { value: each, selected: each === hours }, label)))));
  put(body, spans, h("div", { class: "columns" },
    plot("Lag (records)", "records", short),
    plot("Lag (time): age of the oldest record not copied", "seconds", duration, TIME),
    plot("Lag (bytes)", "bytes", bytes, BINARY),
    panel("Records per second, by run", throughputBars(runs.runs)),
    plot("Records written to the source per second", "writes_per_second", short)));
}

function panel(title, content) {
  return h("section", { class: "panel", "aria-label": title }, h("header", {}, h("h3", {}, title)),
    h("div", { class: "panel-body" }, content));
}
