// One flow: its header with the actions, its numbers, and the tabs.

import { flowButtons } from "./actions.js";
import { asOf, ago, isStale } from "./age.js";
import { dagLink } from "./airflow.js";
import { h, put } from "./dom.js";
import { bytes, count, duration, short, words } from "./format.js";
import { failure, loading } from "./notices.js";
import { badge } from "./state.js";
import { showGroups } from "./flow_groups.js";
import { showLag } from "./flow_lag.js";
import { showPartitions } from "./flow_partitions.js";
import { showProof } from "./flow_proof.js";
import { showSettings, showWork } from "./flow_work.js";

const TABS = [
  ["lag", "Lag and throughput", showLag],
  ["partitions", "Partitions", showPartitions],
  ["groups", "Consumer groups", showGroups],
  ["proof", "Verification and gaps", showProof],
  ["work", "Runs and steps", showWork],
  ["settings", "Settings", showSettings],
];

export async function showFlow(main, detail, tab, query, again, signal) {
  const { flow } = detail;
  const chosen = TABS.find(([name]) => name === tab) ?? TABS[0];
  const base = `#/flow/${encodeURIComponent(flow.dag_id)}`;
  const body = h("div", { class: "tab-body", "aria-busy": "true" }, loading());
  put(main,
    h("div", { class: "flow-head" },
      h("h2", {}, flow.source, h("span", { class: "quiet" }, " → "), flow.target),
      badge(flow.state.level, flow.state.word),
      asOf(flow.seen),
      dagLink(flow.dag_id, "DAG in Airflow"),
      flowButtons(detail, again)),
    flow.state.reasons.length ? h("ul", { class: "reasons" }, flow.state.reasons.map((each) => h("li", {}, each))) : null,
    tiles(flow),
    h("nav", { class: "tabs", "aria-label": "About this flow" }, TABS.map(([name, label]) =>
      h("a", { href: `${base}/${name}`, "aria-current": name === chosen[0] ? "page" : null }, label))),
    body);
  try {
    await chosen[2](body, detail, { query, again, base: `${base}/${chosen[0]}`, signal });
  } catch (error) {
    if (error.name === "AbortError") return;
    put(body, failure(error, again));
  }
  body.removeAttribute("aria-busy");
}

function tiles(flow) {
  const uneasy = { tight: "uneasy", "will-be-lost": "bad", "already-lost": "bad" }[flow.outlook];
  return h("div", { class: isStale(flow.seen) ? "tiles stale-numbers" : "tiles" },
    tile("Lag (records)", short(flow.records_behind), flow.seen ? bytes(flow.bytes_behind) : "not observed"),
    tile("Lag (time)", duration(flow.seconds_behind), flow.lagging === null ? "not observed" :
      `${count(flow.lagging)} of ${count(flow.partitions)} partitions lagging`),
    tile("Time to catch up", duration(flow.catch_up_seconds), flow.seen ? "at the rate of recent runs" : "not observed", flow.catch_up_seconds === "never" ? "bad" : null),
    tile("Time until deletion", duration(flow.headroom_seconds), flow.seen ? `outlook: ${words(flow.outlook)}` : "not observed", uneasy),
    tile("Stalled partitions", flow.stalled === null ? "–" : count(flow.stalled), Object.entries(flow.reasons)
      .map(([reason, times]) => `${times} ${words(reason)}`).join(", ") || (flow.seen ? "none" : "not observed"), flow.stalled ? "bad" : null),
    tile("Duplicates on failover", known(flow, flow.duplicates), flow.groups === null ? "not observed"
      : `${flow.duplicates === null ? "" : "records · "}${count(flow.groups_behind)} of ${count(flow.groups)} groups not exact`),
    tile("Skipped on failover", known(flow, flow.skipped), flow.groups === null ? "not observed" : "records that no group would read", flow.skipped ? "bad" : null),
    tile("Verified", flow.different ? `${flow.different} different` : flow.verified_at ? "equal" : "never",
      flow.verified_at ? ago(flow.verified_at) : "no recent verification", flow.different ? "bad" : null),
    tile("Open gaps", count(flow.open_gaps), flow.open_gaps ? "see Verification and gaps" : "none", flow.open_gaps ? "bad" : null));
}

/** Records of all groups; groups were observed, and their number of records may still be unknown. */
function known(flow, records) {
  return flow.groups !== null && records === null ? "unknown" : short(records);
}

function tile(label, value, note, kind = null) {
  return h("div", { class: "tile" }, h("span", { class: "label" }, label),
    h("span", { class: `value ${kind ?? ""}` }, value), h("span", { class: "note" }, note));
}
