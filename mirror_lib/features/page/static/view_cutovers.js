// Cutovers: the list, and one cutover as a timeline with its gates.

import { ago } from "./age.js";
import { dagLink } from "./airflow.js";
import { h, put } from "./dom.js";
import { count, duration, moment, words } from "./format.js";
import { empty, problem } from "./notices.js";
import { badge, carrier, icon, known, levels } from "./state.js";
import { table } from "./tables.js";

export function showCutovers(main, data) {
  const problems = data.problems.map(problem);
  if (!data.cutovers.length) {
    put(main, problems, empty("No cutovers", "A cutover moves topics and their consumer groups from one cluster to another, step by step. " +
      "Start one with `mirror cutover` or the flow's cutover DAG."));
    return;
  }
  put(main, problems, h("section", { class: "panel", "aria-label": "Cutovers" }, h("header", {}, h("h2", {}, "Cutovers")),
    table("Cutovers", [
      { label: "Cutover", plain: true, cell: (each) => h("a", { href: `#/cutover/${encodeURIComponent(each.name)}` }, each.name) },
      { label: "Flow", cell: (each) => h("a", { href: `#/flow/${encodeURIComponent(each.dag_id)}` }, each.flow.replace("->", " → ")) },
      { label: "State", cell: (each) => known("cutovers", each.state) },
      { label: "Step", cell: (each) => words(each.step) },
      { label: "Process", cell: (each) => carrier(each) },
      { label: "Started", cell: (each) => [moment(each.created_at), h("span", { class: "detail" }, `by ${each.created_by}`)] },
      { label: "Updated", cell: (each) => ago(each.updated_at) },
    ], data.cutovers)));
}

export function showCutover(main, data) {
  const { cutover, steps } = data;
  const longest = Math.max(1, ...steps.flatMap((step) => step.attempts.map((attempt) => attempt.seconds ?? 0)));
  put(main,
    h("div", { class: "flow-head" }, h("h2", {}, cutover.name), known("cutovers", cutover.state),
      h("a", { href: `#/flow/${encodeURIComponent(cutover.dag_id)}` }, cutover.flow.replace("->", " → ")),
      h("span", { class: "age" }, "updated ", ago(cutover.updated_at)), data.cutover_dag_id ? dagLink(data.cutover_dag_id, "Cutover DAG in Airflow") : null),
    h("p", { class: "who", role: "status" }, cutover.unattended ? badge(data.producers_are_stopped ? "danger" : "warning", "not running") : null,
      ` ${cutover.who} `, cutover.asks ? `It waits for an answer: ${words(cutover.asks)}. ` : null,
      cutover.choices.length ? `Possible actions: ${cutover.choices.join(", ")}.` : null),
    h("div", { class: "tiles" },
      tile("Steps passed", `${data.passed} of ${steps.length}`, progress(data.passed / steps.length)),
      tile("Writer downtime", data.producer_downtime_seconds === null ? "not yet" : duration(data.producer_downtime_seconds),
        data.producers_are_stopped ? "the writers are still stopped" : data.producer_downtime_seconds === null ? "begins at the freeze step" : "from freeze to release",
        data.producers_are_stopped ? "uneasy" : null),
      tile("Partitions cut", count(data.partitions_cut), "equal on both clusters up to the cut"),
      tile("Style", words(data.style), data.topics.length ? `topics ${data.topics.join(", ")}` : "")),
    cutover.unattended ? steps.map((step) => stopped(step, step.attempts.at(-1))) : null,
    h("section", { class: "panel", "aria-label": "Steps" }, h("header", {}, h("h2", {}, "Steps and gates")),
      h("div", { class: "panel-body" }, h("ol", { class: "timeline" }, steps.map((step) => stepLine(step, longest))))));
}

function tile(label, value, note, kind = null) {
  return h("div", { class: "tile" }, h("span", { class: "label" }, label), h("span", { class: `value ${kind ?? ""}` }, value),
    h("span", { class: "note" }, note));
}

function progress(share) {
  const percent = Math.round(share * 100);
  return h("div", { class: "progress", role: "progressbar", "aria-label": "Steps passed", "aria-valuenow": percent, "aria-valuemin": 0, "aria-valuemax": 100 },
    h("div", { style: { width: `${percent}%` } }));
}

function stepLine(step, longest) {
  const level = levels.steps[step.state] ?? "idle";
  const coming = step.state === "to come";
  const sign = { passed: "ok", failed: "danger", waiting: "waiting", running: "running", interrupted: "danger", undone: "warning" }[step.state] ?? "coming";
  return h("li", { class: coming ? "coming" : null, "data-step": step.step },
    h("span", { class: `dot-mark ${level}` }, icon(sign)),
    h("span", { class: "step-name" }, words(step.step), step.by_person ? h("span", { class: "detail quiet" }, " manual") : null),
    h("div", { class: "step-body" }, coming ? h("span", { class: "quiet" }, "pending") : step.attempts.map((attempt) => attemptLine(attempt, longest))));
}

function attemptLine(attempt, longest) {
  const state = attempt.state === "waiting" ? badge("warning", "waiting for an operator") : known("steps", attempt.state);
  return h("div", { class: "attempt" },
    h("div", { class: "row" }, state,
      h("span", { class: "quiet" }, attempt.number > 1 ? `attempt ${attempt.number}, ` : "", moment(attempt.started_at), `, by ${attempt.by}`),
      attempt.seconds === null ? null : h("span", { class: "number" }, duration(attempt.seconds))),
    attempt.seconds === null ? null : h("div", { class: "duration-bar", "aria-hidden": "true",
      style: { width: `${(attempt.seconds / longest) * 100}%`, marginTop: "4px" } }),
    attempt.error ? h("p", { class: "quiet" }, `${attempt.error}${ended(attempt.error)} `, attempt.action) : null,
    attempt.gates.length ? h("ul", { class: "gates" }, attempt.gates.map((gate) => h("li", { class: gate.passed ? "passed" : "failed" },
      icon(gate.passed ? "ok" : "danger"), h("span", {}, h("strong", {}, words(gate.name)), `: ${gate.what}`,
        gate.passed || !gate.action ? null : `${ended(gate.what)} ${gate.action}`)))) : null);
}

/** The failed gates and the error of a cutover that no process runs, above the list of all gates. */
function stopped(step, attempt) {
  if (!attempt || step.state === "passed") return null;
  const gates = attempt.gates.filter((gate) => !gate.passed);
  return [...gates.map((gate) => problem({ what: `${words(step.step)}, ${words(gate.name)}: ${gate.what}`, action: gate.action })),
    attempt.error ? problem({ what: `${words(step.step)}: ${attempt.error}`, action: attempt.action }) : null];
}

/** The full stop, if a sentence has none. */
function ended(text) {
  return /[.!?]$/.test(text) ? "" : ".";
}
