// Actions on a flow. Each one asks for confirmation and says what will happen.

import { act } from "./api.js";
import { runLink } from "./airflow.js";
import { ask } from "./dialog.js";
import { h } from "./dom.js";
import { count, words } from "./format.js";
import { toast } from "./notices.js";

const AUDIT = "The audit log records this action.";

export function flowButtons(detail, after) {
  const { flow, may } = detail;
  const send = async (path, body) => {
    const done = await act(`flows/${encodeURIComponent(flow.dag_id)}/${path}`, body);
    toast(done.what, " ", done.run_id ? runLink(done.dag_id, done.run_id, "Show it in Airflow") : null);
    after();
  };
  const why = "You have no permission to edit this DAG in Airflow.";
  const noDag = flow.paused === null ? "Airflow has not parsed the flow's DAG." : null;
  return h("div", { class: "actions" },
    button(flow.paused ? "Unpause" : "Pause", noDag ?? (may.pause ? null : why), () => askPause(flow, send)),
    button("Run now", noDag ?? (may.run ? null : why), () => askRun(flow, send)),
    button("Verify", detail.can_be_verified ? (may.verify ? null : why) : "Airflow has no DAG for the verification of this flow.",
      () => askVerify(flow, send)));
}

function button(text, blocked, onclick) {
  return h("button", { type: "button", disabled: Boolean(blocked), title: blocked, onclick }, text);
}

function askPause(flow, send) {
  const pause = !flow.paused;
  ask({
    title: `${pause ? "Pause" : "Unpause"} ${flow.name}?`,
    text: [pause
      ? "No scheduled run starts until the DAG is unpaused. In a run in progress, Airflow finishes the tasks that have started, and starts " +
        "no others: consumer groups, for example, may stay untranslated until then. " +
        "The source's retention continues: records that are not copied in time are lost."
      : `Runs start on schedule again (${flow.schedule ?? "none: manual runs only"}).`, AUDIT],
    yes: pause ? "Pause" : "Unpause", dangerous: pause,
    act: () => send("pause", { paused: pause }),
  });
}

function askRun(flow, send) {
  ask({
    title: `Run ${flow.name} now?`,
    text: ["Airflow starts a run of the flow's DAG. It copies the records that are new since the last run. If a run is in progress, " +
      "the new run waits for it.", flow.paused ? "The DAG is paused: the run waits until it is unpaused." : null, AUDIT]
      .filter(Boolean),
    fields: h("label", { class: "check" }, h("input", { type: "checkbox", name: "dry" }),
      "Dry run: print the plan, change nothing"),
    yes: "Run now",
    act: (values) => send("run", { dry_run: Boolean(values.dry) }),
  });
}

function askVerify(flow, send) {
  ask({
    title: `Verify ${flow.name}?`,
    text: ["A Spark job reads both clusters and compares them record by record. It changes nothing on either cluster.", AUDIT],
    fields: choices("mode", [
      ["recent", "Recent", "Records since the last comparison that found both clusters equal."],
      ["full", "Full", "All records that both clusters still hold; takes as long as reading all of them."],
      ["sample", "Sample", "Random ranges of offsets."],
      ["state", "State", "The newest record of each key of compacted topics; finds lost deletions."],
    ]),
    yes: "Verify",
    act: (values) => send("verify", { mode: values.mode }),
  });
}

export function askGap(detail, gap, after) {
  const flow = detail.flow;
  ask({
    title: `Resolve the gap in ${gap.topic}-${gap.partition}`,
    text: [`${capitalized(gap.detail)} (${words(gap.cause)}, source offsets ${count(gap.first_offset)} to ${count(gap.next_offset - 1)}).`],
    fields: h("div", {}, choices("decision", [
      ["accept", "Accept", `Starts a run of topic ${gap.topic} that continues after the lost records: they will never be on ` +
        "the target. It accepts every open gap of this topic."],
      ["recopy", "Copy again", `Starts a run of topic ${gap.topic} that copies the source again from its start and appends to the ` +
        "target topic: consumers see duplicates."],
      ["stop", "Stop", "Stops replicating this partition now, until `mirror gaps resume`."],
    ]), h("label", {}, "Note for the audit log", h("input", { name: "note", maxlength: 1000, autocomplete: "off" }))),
    yes: "Resolve", dangerous: true,
    act: async (values) => {
      const done = await act(`flows/${encodeURIComponent(flow.dag_id)}/gaps/${encodeURIComponent(gap.id)}`,
        { decision: values.decision, note: values.note });
      toast(done.what, " ", done.run_id ? runLink(done.dag_id, done.run_id, "Show it in Airflow") : null);
      after();
    },
  });
}

function capitalized(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function choices(name, options) {
  return h("fieldset", {}, options.map(([value, label, text], index) =>
    h("label", {}, h("input", { type: "radio", name, value, checked: index === 0 }), h("span", {}, label),
      h("span", { class: "quiet" }, text))));
}
