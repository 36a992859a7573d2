// Runs and their rounds, sync steps, heartbeats and the audit log; and the flow's settings.

import { ago, asOf } from "./age.js";
import { runLink } from "./airflow.js";
import { read } from "./api.js";
import { h, put } from "./dom.js";
import { bytes, count, duration, moment, short, words } from "./format.js";
import { badge, known } from "./state.js";
import { table } from "./tables.js";

export async function showWork(body, detail, { signal }) {
  const path = `flows/${encodeURIComponent(detail.flow.dag_id)}`;
  const [runs, rounds, steps, beats, audit] = await Promise.all(
    ["runs", "rounds", "steps", "heartbeats", "audit"].map((part) => read(`${path}/${part}`, {}, signal)));
  put(body,
    panel("Runs", runs.runs.length ? runTable(detail, runs.runs) : none("No runs recorded yet.")),
    panel("Rounds", rounds.rounds.length ? roundTable(rounds.rounds) : none("No rounds recorded yet.")),
    h("div", { class: "columns" },
      panel("Sync steps", steps.steps.length ? stepTable(steps.steps) : none("No step has reported yet.")),
      panel("Heartbeats", beats.heartbeats.length ? beatTable(beats.heartbeats) : none("No heartbeats observed yet.")),
      panel("Audit log", audit.entries.length ? auditTable(audit.entries) : none("No entries yet."))));
}

export function showSettings(body, detail) {
  const settings = detail.settings;
  const list = (values) => values.map((each) => h("div", {}, h("code", {}, each)));
  put(body, panel("Settings", h("dl", { class: "facts panel-body" }, [
    ["Configuration file", h("code", {}, settings.config_file)],
    ["Schedule", settings.schedule ?? "none (manual runs only)"],
    ["Verification schedule", settings.verify_schedule ?? "none (manual runs only)"],
    ["Topics", list(settings.topics)], ["Excluded topics", list(settings.topics_exclude)],
    ["Groups", list(settings.groups)], ["Replication policy", h("code", {}, settings.replication_policy)],
    ["Poison record policy", settings.poison_policy], ["Group translation", settings.group_translation],
    ["Isolation level", settings.isolation_level], ["Offsets on the target", settings.offsets], ["Failback flow", settings.failback ? "yes" : "no"],
    ["DAGs", [h("div", {}, h("code", {}, detail.flow.dag_id)), h("div", {}, h("code", {}, detail.verify_dag_id))]],
  ].map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))));
}

function panel(title, content) {
  return h("section", { class: "panel", "aria-label": title }, h("header", {}, h("h2", {}, title)), content);
}

function none(text) {
  return h("p", { class: "panel-body quiet" }, text);
}

function runTable(detail, runs) {
  return table("Runs", [
    { label: "Started", plain: true, cell: (run) => [moment(run.started_at), h("span", { class: "detail" }, run.airflow_run
      ? runLink(detail.flow.dag_id, run.airflow_run, run.airflow_run) : run.trigger)] },
    { label: "State", cell: (run) => [known("runs", run.state), run.ended_by ? h("span", { class: "detail" }, run.ended_by) : null,
      run.error ? h("span", { class: "detail" }, run.error, " ", run.action) : null] },
    { label: "Duration", number: true, cell: (run) => run.state === "running" || run.state === "died" ? [duration(run.seconds), h("span", { class: "detail" }, "last active ", ago(run.heartbeat_at))] : duration(run.seconds) },
    { label: "Records", number: true, cell: (run) => count(run.records) },
    { label: "Bytes", number: true, cell: (run) => bytes(run.bytes) },
    { label: "Records/s", number: true, cell: (run) => short(run.records_per_second) },
    { label: "Partitions", number: true, cell: (run) => count(run.partitions) },
    { label: "Rounds", number: true, cell: (run) => count(run.rounds) },
  ], runs);
}

function roundTable(rounds) {
  return table("Rounds", [
    { label: "Started", plain: true, cell: (round) => [moment(round.began_at),
      h("span", { class: "detail" }, `round ${round.number} of `, h("span", { class: "mono" }, round.run_id))] },
    { label: "Lag (records)", number: true, cell: (round) => count(round.outstanding) },
    { label: "Records", number: true, cell: (round) => count(round.records) },
    { label: "Bytes", number: true, cell: (round) => bytes(round.bytes) },
    { label: "Planning time", number: true, cell: (round) => duration(round.planning_seconds) },
    { label: "Duration", number: true, cell: (round) => round.committed ? duration(round.seconds) : "not committed" },
    { label: "Expected duration", number: true, cell: (round) => duration(round.expected_seconds) },
    { label: "Oldest record age", number: true, cell: (round) => duration(round.oldest_age_seconds) },
    { label: "Newest record age", number: true, cell: (round) => duration(round.newest_age_seconds) },
  ], rounds);
}

function stepTable(steps) {
  return table("Sync steps", [
    { label: "Step", plain: true, cell: (step) => h("strong", {}, words(step.step)) },
    { label: "Outcome", cell: (step) => [step.failed ? badge("danger", `${step.failed} failed`) : step.skipped ? badge("idle", "skipped") : badge("ok", "done"),
      step.skipped ? h("span", { class: "detail" }, step.skipped) : null,
      step.problems.slice(0, 3).map((each) => h("span", { class: "detail" }, each))] },
    { label: "Drift", number: true, cell: (step) => count(step.differences) },
    { label: "Last observed", cell: (step) => asOf(step.seen, "") },
  ], steps);
}

function beatTable(beats) {
  return table("Heartbeats", [
    { label: "Pair", plain: true, cell: (beat) => beat.pair.replace("->", " → ") },
    { label: "State", cell: (beat) => [known("beats", beat.verdict), beat.detail ? h("span", { class: "detail" }, beat.detail) : null] },
    { label: "Last emitted", cell: (beat) => ago(beat.emitted_at) },
    { label: "Last observed", cell: (beat) => asOf(beat.seen, "") },
  ], beats);
}

function auditTable(entries) {
  return table("Audit log", [
    { label: "Time", plain: true, cell: (entry) => moment(entry.at) },
    { label: "User", cell: (entry) => entry.by },
    { label: "Action", cell: (entry) => [words(entry.action), h("span", { class: "detail mono" }, entry.subject),
      entry.detail.note ? h("span", { class: "detail" }, entry.detail.note) : null] },
  ], entries);
}
