// Verified parts of the copy, and known gaps.

import { askGap } from "./actions.js";
import { ago } from "./age.js";
import { read } from "./api.js";
import { h, put } from "./dom.js";
import { bytes, count, moment, words } from "./format.js";
import { badge, known } from "./state.js";
import { table } from "./tables.js";

export async function showProof(body, detail, { again, signal }) {
  const path = `flows/${encodeURIComponent(detail.flow.dag_id)}`;
  const [proof, gaps] = await Promise.all([read(`${path}/verification`, {}, signal), read(`${path}/gaps`, {}, signal)]);
  put(body, gapPanel(detail, gaps, again), differencePanel(proof), h("div", { class: "columns" },
    topicPanel(proof), verificationPanel(proof)));
}

function panel(title, content, end = null) {
  return h("section", { class: "panel", "aria-label": title }, h("header", {}, h("h2", {}, title), end), content);
}

function none(text) {
  return h("p", { class: "panel-body quiet" }, text);
}

function gapPanel(detail, gaps, again) {
  const end = gaps.open ? badge("danger", `${gaps.open} open`) : badge("ok", "none open");
  const notes = gaps.uncommitted.map((note) => h("p", { class: "panel-body" }, note));
  if (!gaps.gaps.length) return panel("Gaps", [none("No source records are known to be missing on the target."), ...notes], end);
  return panel("Gaps", [table("Gaps", [
    { label: "Partition", plain: true, cell: (gap) => [h("strong", {}, `${gap.topic}-${gap.partition}`), h("span", { class: "detail" }, gap.detail)] },
    { label: "Cause", cell: (gap) => words(gap.cause) },
    { label: "Source offsets", number: true, cell: (gap) => `${count(gap.first_offset)} – ${count(gap.next_offset - 1)}` },
    { label: "Record times", cell: (gap) => [moment(gap.first_time), h("span", { class: "detail" }, `to ${moment(gap.last_time)}`)] },
    { label: "Found", cell: (gap) => ago(gap.found_at) },
    { label: "State", cell: (gap) => [known("gaps", gap.state), gap.decided_by ? h("span", { class: "detail" },
      `by ${gap.decided_by}${gap.note ? `: ${gap.note}` : ""}`) : null] },
    { label: "", cell: (gap) => gap.state !== "open" ? "" : h("button", { type: "button", disabled: !detail.may.decide,
      title: detail.may.decide ? null : "You have no permission to edit this DAG in Airflow.", onclick: () => askGap(detail, gap, again) }, "Resolve…") },
  ], gaps.gaps), ...notes], end);
}

function differencePanel(proof) {
  if (!proof.differences.length) return null;
  return panel("Differences", table("Differences", [
    { label: "Partition", plain: true, cell: (row) => [h("strong", {}, `${row.topic}-${row.partition}`), h("span", { class: "detail" }, `on ${row.target_topic}`)] },
    { label: "Found", cell: (row) => ago(row.finished_at) },
    { label: "Differences", number: true, cell: (row) => count(row.difference_count) },
    { label: "First differences", cell: (row) => row.differences.map((each) => h("code", { class: "detail" },
      Object.entries(each).filter(([, value]) => value !== null).map(([name, value]) => `${words(name)} ${value}`).join(", "))) },
  ], proof.differences), badge("danger", `${count(proof.different)} partitions differ`));
}

function topicPanel(proof) {
  const end = proof.last_at ? h("span", { class: "quiet" }, `${count(proof.equal)} partitions equal, `, ago(proof.last_at)) : null;
  if (!proof.topics.length) return panel("Verified topics", none("Not verified yet. “Verify” compares the target with the source."), end);
  return panel("Verified topics", table("Verified topics", [
    { label: "Topic", plain: true, cell: (row) => row.topic },
    { label: "Partitions", number: true, cell: (row) => count(row.partitions) },
    { label: "Verified offsets", number: true, cell: (row) => count(row.verified_offsets) },
    { label: "Oldest verification", cell: (row) => ago(row.oldest_at) },
  ], proof.topics), end);
}

function verificationPanel(proof) {
  if (!proof.verifications.length) return panel("Verifications", none("No verifications yet."));
  return panel("Verifications", table("Verifications", [
    { label: "Started", plain: true, cell: (row) => [moment(row.started_at), h("span", { class: "detail mono" }, row.id)] },
    { label: "Mode", cell: (row) => row.mode },
    { label: "Result", cell: (row) => row.different ? badge("danger", `${row.different} different`)
      : row.unverifiable ? badge("warning", `${row.unverifiable} not comparable`) : badge("ok", "equal") },
    { label: "Partitions", number: true, cell: (row) => count(row.partitions) },
    { label: "Records", number: true, cell: (row) => [count(row.records), h("span", { class: "detail" }, bytes(row.bytes))] },
  ], proof.verifications));
}
