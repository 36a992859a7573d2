// Every partition as a small cell, by topic: a darker cell has more lag, a red one is stalled.

import { h } from "./dom.js";
import { count, words } from "./format.js";

export function partitionStrip(strip, choose) {
  const topics = Map.groupBy ? Map.groupBy(strip.cells, (cell) => cell.topic) : grouped(strip.cells);
  const most = Math.max(1, ...strip.cells.map((cell) => cell.behind));
  return h("div", {},
    h("div", { class: "strip" },
      [...topics].map(([topic, cells]) => h("div", { class: "strip-topic" },
        h("span", { class: "quiet" }, topic),
        h("div", { class: "strip-cells", role: "group", "aria-label": topic }, cells.map((cell) => one(cell, most, choose)))))),
    h("p", { class: "legend" },
      ["no lag", "low lag", "", "", `lag ${count(most)}`].map((text, heat) =>
        h("span", {}, h("span", { class: `cell heat-${heat}` }), text)),
      h("span", {}, h("span", { class: "cell stands" }), "stalled"),
      strip.not_shown ? h("span", {}, `${count(strip.not_shown)} more partitions with less lag`) : null));
}

function one(cell, most, choose) {
  // On a logarithmic scale: on a linear one, a single partition with a large lag would make all others look the same.
  const heat = cell.behind <= 0 ? 0 : 1 + Math.min(3, Math.floor((Math.log1p(cell.behind) / Math.log1p(most)) * 3.999));
  const text = `${cell.topic}-${cell.partition}: lag ${count(cell.behind)}` +
    (cell.reason ? `, stalled: ${words(cell.reason)}` : "");
  return h("button", { type: "button", class: `cell heat-${heat}${cell.reason ? " stands" : ""}`, title: text,
    "aria-label": text, tabindex: cell.reason ? 0 : -1, onclick: () => choose(cell.topic) });
}

function grouped(cells) {
  const found = new Map();
  for (const cell of cells) found.set(cell.topic, [...(found.get(cell.topic) ?? []), cell]);
  return found;
}
