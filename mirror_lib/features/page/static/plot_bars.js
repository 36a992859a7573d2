// What each run copied, oldest first: the height is its speed, the colour and a sign how it ended.

import { h, s } from "./dom.js";
import { bytes, count, duration, moment, short } from "./format.js";
import { niceTop, plotWidth } from "./plot_line.js";

const H = 190, LEFT = 62, RIGHT = 10, TOP = 14, BOTTOM = 24;

export function throughputBars(runs) {
  const W = plotWidth();
  const shown = [...runs].reverse();
  if (!shown.length) return h("p", { class: "quiet" }, "No runs yet.");
  const top = niceTop(Math.max(...shown.map((run) => run.records_per_second ?? 0)));
  const step = (W - LEFT - RIGHT) / shown.length;
  const height = (run) => ((run.records_per_second ?? 0) / top) * (H - TOP - BOTTOM);
  const failed = shown.filter((run) => run.state !== "succeeded" && run.state !== "running").length;
  return s("svg", { class: "plot", viewBox: `0 0 ${W} ${H}`, role: "img",
    "aria-label": `Records per second of the last ${shown.length} runs, ${failed} of them not successful` },
    [0, 0.5, 1].map((part) => {
      const y = H - BOTTOM - part * (H - TOP - BOTTOM);
      return [s("line", { class: "axis", x1: LEFT, x2: W - RIGHT, y1: y, y2: y }),
        s("text", { x: LEFT - 7, y: y + 4, "text-anchor": "end" }, short(top * part))];
    }),
    shown.map((run, index) => {
      const tall = Math.max(height(run), run.state === "succeeded" ? 1.5 : 4);
      const x = LEFT + index * step;
      const width = Math.min(step * 0.76, 40);
      return s("g", {},
        s("rect", { class: `bar-${run.state}`, x: x + step * 0.12, y: H - BOTTOM - tall, width, height: tall, rx: 1.5 },
          s("title", {}, `${moment(run.started_at)}: ${run.state}, ${count(run.records)} records, ` +
            `${bytes(run.bytes)} in ${duration(run.seconds)}`)),
        run.state === "failed" ? s("text", { x: x + step * 0.12 + width / 2, y: H - BOTTOM - tall - 4, "text-anchor": "middle" }, "✕") : null);
    }),
    s("text", { x: LEFT, y: H - 7 }, "older"),
    s("text", { x: W - RIGHT, y: H - 7, "text-anchor": "end" }, "newest"));
}
