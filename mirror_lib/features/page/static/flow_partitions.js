// Partitions: all in one strip, and a paged table that the server sorts and filters.

import { asOf } from "./age.js";
import { read } from "./api.js";
import { h, put } from "./dom.js";
import { bytes, count, duration, moment, words } from "./format.js";
import { failure } from "./notices.js";
import { partitionStrip } from "./plot_strip.js";
import { known } from "./state.js";
import { pager, table } from "./tables.js";

const SIZE = 50;

export async function showPartitions(body, detail, { signal }) {
  const path = `flows/${encodeURIComponent(detail.flow.dag_id)}/partitions`;
  const view = { page: 1, sort: "behind", descending: true, topic: "", reason: "", outlook: "", lagging: false };
  const list = h("div", {}), between = h("div", {});
  let newest = 0;
  const load = async () => {
    const mine = (newest += 1);
    try {
      const found = await read(path, { ...view, size: SIZE, lagging: view.lagging || null }, signal);
      if (mine === newest) put(list, partitionTable(found, view, change)), put(between, pager(found, (page) => change({ page })));
      return found;
    } catch (error) {
      if (error.name !== "AbortError") put(list, failure(error, load));
      return null;
    }
  };
  const change = (changed) => {
    Object.assign(view, { page: 1 }, changed);
    load();
  };
  const topic = h("input", { type: "search", placeholder: "Topic", "aria-label": "Topic contains",
    oninput: (event) => change({ topic: event.target.value.trim() }) });
  const [strip, first] = await Promise.all([read(`${path}/strip`, {}, signal), load()]);
  put(body,
    h("section", { class: "panel", "aria-label": "Lag by partition" },
      h("header", {}, h("h2", {}, "Lag by partition"), asOf(strip.seen)),
      h("div", { class: "panel-body" }, strip.cells.length
        ? partitionStrip(strip, (name) => { topic.value = name; change({ topic: name }); })
        : h("p", { class: "quiet" }, "No partitions observed yet."))),
    h("section", { class: "panel", "aria-label": "Partitions" },
      h("header", {}, h("h2", {}, "Partitions"), h("div", { class: "row" }, topic,
        select("Reason", "reason", first?.reasons ?? {}, change),
        select("Outlook", "outlook", first?.outlooks ?? {}, change),
        h("label", { class: "check" }, h("input", { type: "checkbox", id: "lagging",
          onchange: (event) => change({ lagging: event.target.checked }) }), "Only lagging"))),
      list, h("div", { class: "panel-body" }, between)));
}

function select(label, key, counts, change) {
  return h("select", { "aria-label": label, onchange: (event) => change({ [key]: event.target.value }) },
    h("option", { value: "" }, `${label}: any`),
    Object.entries(counts).map(([name, times]) => h("option", { value: name }, `${words(name)} (${count(times)})`)));
}

function partitionTable(found, view, change) {
  if (!found.rows.length) return h("p", { class: "empty" }, "No matching partitions.");
  const sorting = { by: view.sort, descending: view.descending, change: (sort, descending) => change({ sort, descending }) };
  return table("Partitions", [
    { label: "Partition", sort: "topic", plain: true, cell: (row) => [h("strong", {}, `${row.topic}-${row.partition}`),
      h("span", { class: "detail" }, `to ${row.target_topic}`)] },
    { label: "Lag (records)", sort: "behind", number: true, cell: (row) => count(row.records_behind) },
    { label: "Lag (bytes)", sort: "bytes", number: true, cell: (row) => bytes(row.bytes_behind) },
    { label: "Lagging since", sort: "since", cell: (row) => moment(row.behind_since) },
    { label: "Time to catch up", sort: "catch-up", number: true, cell: (row) => duration(row.catch_up_seconds) },
    { label: "Time until deletion", sort: "headroom", number: true, cell: (row) => duration(row.headroom_seconds) },
    { label: "Outlook", sort: "outlook", cell: (row) => known("outlooks", row.outlook) },
    { label: "Stall reason", sort: "reason", cell: (row) => row.reason
      ? h("span", {}, words(row.reason), row.detail ? h("span", { class: "detail" }, row.detail) : null) : "" },
    { label: "Position", number: true, cell: (row) => [count(row.position), h("span", { class: "detail" }, `log end ${count(row.log_end)}`)] },
    { label: "Last observed", cell: (row) => asOf(row.seen, "") },
  ], found.rows, { sorting });
}
