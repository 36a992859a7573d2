// Consumer groups: duplicates and skipped records of each group on failover, with reasons.

import { asOf } from "./age.js";
import { read } from "./api.js";
import { h, put } from "./dom.js";
import { count, words } from "./format.js";
import { failure, loading } from "./notices.js";
import { badge } from "./state.js";
import { pager, table } from "./tables.js";

export async function showGroups(body, detail, { signal }) {
  const path = `flows/${encodeURIComponent(detail.flow.dag_id)}/groups`;
  const view = { page: 1, size: 50, name: "", behind: false };
  const list = h("div", {}), between = h("div", { class: "panel-body" }), one = h("div", {});
  const load = async () => {
    try {
      const found = await read(path, { ...view, behind: view.behind || null }, signal);
      put(list, groupTable(found, open));
      put(between, pager(found, (page) => { view.page = page; load(); }));
    } catch (error) {
      if (error.name !== "AbortError") put(list, failure(error, load));
    }
  };
  const open = async (group) => {
    put(one, loading());
    try {
      put(one, groupPanel(await read(`${path}/partitions`, { group }, signal)));
      one.scrollIntoView({ block: "nearest" });
    } catch (error) {
      if (error.name !== "AbortError") put(one, failure(error));
    }
  };
  await load();
  put(body,
    h("section", { class: "panel", "aria-label": "Consumer groups" },
      h("header", {}, h("h2", {}, "Consumer groups"), h("div", { class: "row" },
        h("input", { type: "search", placeholder: "Group", "aria-label": "Group contains",
          oninput: (event) => { Object.assign(view, { page: 1, name: event.target.value.trim() }); load(); } }),
        h("label", { class: "check" }, h("input", { type: "checkbox",
          onchange: (event) => { Object.assign(view, { page: 1, behind: event.target.checked }); load(); } }), "Only groups that are not exact"))),
      list, between),
    one);
}

function groupTable(found, open) {
  if (!found.rows.length) return h("p", { class: "empty" }, "No consumer groups found. The flow's group translation step reports them.");
  return table("Consumer groups", [
    { label: "Group", plain: true, cell: (row) => h("button", { type: "button", class: "quiet-button", onclick: () => open(row.group) }, row.group) },
    { label: "On failover now", cell: (row) => outlook(row) },
    { label: "Duplicates on failover", number: true, cell: (row) => count(row.duplicates) },
    { label: "Skipped on failover", number: true, cell: (row) => count(row.skipped) },
    { label: "Partitions", number: true, cell: (row) => count(row.partitions) },
    { label: "Partitions not exact", number: true, cell: (row) => count(row.behind) },
    { label: "Reason", cell: (row) => Object.entries(row.reasons).map(([reason, times]) => `${count(times)} ${words(reason)}`).join(", ") },
    { label: "Last observed", cell: (row) => asOf(row.seen, "") },
  ], found.rows);
}

function outlook(row) {
  if (row.skipped) return badge("danger", "skips records");
  if (row.behind) return badge("warning", "re-reads records");
  return row.partitions ? badge("ok", "continues exactly") : badge("idle", "no topics of this flow");
}

function groupPanel(found) {
  return h("section", { class: "panel", "aria-label": `Group ${found.group}` },
    h("header", {}, h("h3", {}, `Group ${found.group}`)),
    table(`Group ${found.group}`, [
      { label: "Partition", plain: true, cell: (row) => [`${row.topic}-${row.partition}`, h("span", { class: "detail" }, `to ${row.target_topic}`)] },
      { label: "Source offset", number: true, cell: (row) => count(row.upstream) },
      { label: "Target offset", number: true, cell: (row) => count(row.target_offset) },
      { label: "Committed on target", number: true, cell: (row) => count(row.target_committed) },
      { label: "Duplicates on failover", number: true, cell: (row) => count(row.duplicates) },
      { label: "Skipped on failover", number: true, cell: (row) => count(row.skipped) },
      { label: "Reason", cell: (row) => [words(row.reason ?? "") === "–" ? "exact" : words(row.reason), row.what ? h("span", { class: "detail" }, row.what) : null] },
    ], found.rows));
}
