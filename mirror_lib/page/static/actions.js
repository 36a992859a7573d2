// What can be done with a flow. Each asks first and says what will happen.

import { act } from "./api.js";
import { runLink } from "./airflow.js";
import { ask } from "./dialog.js";
import { h } from "./dom.js";
import { count, words } from "./format.js";
import { toast } from "./notices.js";

const AUDIT = "The audit keeps that you did it.";

export function flowButtons(detail, after) {
  const { flow, may } = detail;
  const send = async (path, body) => {
    const done = await act(`flows/${encodeURIComponent(flow.dag_id)}/${path}`, body);
    toast(done.what, " ", done.run_id ? runLink(done.dag_id, done.run_id, "Show it in Airflow") : null);
    after();
  };
  const why = "You may not change this DAG in Airflow.";
  const noDag = flow.paused === null ? "Airflow has not parsed the flow's DAG." : null;
  return h("div", { class: "actions" },
    button(flow.paused ? "Unpause" : "Pause", noDag ?? (may.pause ? null : why), () => askPause(flow, send)),
    button("Run now", noDag ?? (may.run ? null : why), () => askRun(flow, send)),
    button("Verify", detail.can_be_verified ? (may.verify ? null : why) : "Airflow has no DAG for its verification.",
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
      ? "No run of the flow begins by itself until somebody unpauses it. Of a run that is under way Airflow finishes the tasks that have begun, and starts " +
        "no other: groups, for instance, may stay untranslated until then. " +
        "The source's retention goes on: what is not copied in time is lost."
      : `Runs begin by the schedule again (${flow.schedule ?? "none: by hand only"}).`, AUDIT],
    yes: pause ? "Pause" : "Unpause", dangerous: pause,
    act: () => send("pause", { paused: pause }),
  });
}

function askRun(flow, send) {
  ask({
    title: `Run ${flow.name} now?`,
    text: ["Airflow starts a run of the flow's DAG: it copies what is new since the last run. When a run is under way, " +
      "the new one waits for it.", flow.paused ? "The DAG is paused: the run waits until it is unpaused." : null, AUDIT]
      .filter(Boolean),
    fields: h("label", { class: "check" }, h("input", { type: "checkbox", name: "dry" }),
      "Dry run: print what would be done, change nothing"),
    yes: "Run now",
    act: (values) => send("run", { dry_run: Boolean(values.dry) }),
  });
}

function askVerify(flow, send) {
  ask({
    title: `Verify ${flow.name}?`,
    text: ["A Spark job reads both clusters and compares them record by record. It changes nothing on either.", AUDIT],
    fields: choices("mode", [
      ["recent", "Recent", "What came since it was last found equal."],
      ["full", "Full", "Everything that both sides still hold; takes as long as reading all of it."],
      ["sample", "Sample", "Random stretches of it."],
      ["state", "State", "The newest record of each key of compacted topics; finds deletions that were lost."],
    ]),
    yes: "Verify",
    act: (values) => send("verify", { mode: values.mode }),
  });
}

export function askGap(detail, gap, after) {
  const flow = detail.flow;
  ask({
    title: `Decide about ${gap.topic}-${gap.partition}`,
    text: [`${gap.detail} (${words(gap.cause)}, source offsets ${count(gap.first_offset)} to ${count(gap.next_offset - 1)}).`],
    fields: h("div", {}, choices("decision", [
      ["accept", "Accept", `Starts a run of the topic ${gap.topic} that goes on behind what is lost: it will never be on ` +
        "the target. It decides so about every undecided loss of this topic."],
      ["recopy", "Copy again", `Starts a run of the topic ${gap.topic} that copies the source from its start, behind what ` +
        "stands on the target: consumers see records again."],
      ["stop", "Stop", "At once: this partition is not replicated any more, until `mirror gaps resume`."],
    ]), h("label", {}, "Note for the audit", h("input", { name: "note", maxlength: 1000, autocomplete: "off" }))),
    yes: "Decide", dangerous: true,
    act: async (values) => {
      const done = await act(`flows/${encodeURIComponent(flow.dag_id)}/gaps/${encodeURIComponent(gap.id)}`,
        { decision: values.decision, note: values.note });
      toast(done.what, " ", done.run_id ? runLink(done.dag_id, done.run_id, "Show it in Airflow") : null);
      after();
    },
  });
}

function choices(name, options) {
  return h("fieldset", {}, options.map(([value, label, text], index) =>
    h("label", {}, h("input", { type: "radio", name, value, checked: index === 0 }), h("span", {}, label),
      h("span", { class: "quiet" }, text))));
}
