// A value over time as a line, with a cursor that shows the value under the pointer.

import { h, s } from "./dom.js";
import { clock } from "./format.js";

const H = 190, LEFT = 62, RIGHT = 10, TOP = 10, BOTTOM = 24;

/**
 * @param {{title: string, points: {at: string, value: number|null}[], since: Date, until: Date, format: Function}} plot
 *   a null value breaks the line: nothing was known then.
 */
export function linePlot({ title, points, since, until, format, steps = DECIMAL }) {
  const W = plotWidth();
  const known = points.filter((point) => typeof point.value === "number");
  if (!known.length) return h("p", { class: "quiet" }, "No observations in this time range.");
  const top = niceTop(Math.max(...known.map((point) => point.value)), steps);
  const x = (at) => LEFT + ((at - since) / Math.max(until - since, 1)) * (W - LEFT - RIGHT);
  const y = (value) => H - BOTTOM - (value / top) * (H - TOP - BOTTOM);
  const placed = points.map((point) => ({ ...point, time: new Date(point.at), x: x(new Date(point.at)) }));
  const pieces = unbroken(placed);
  const last = placed.filter((point) => typeof point.value === "number").at(-1);
  const label = `${title}: from ${format(Math.min(...known.map((p) => p.value)))} to ` +
    `${format(Math.max(...known.map((p) => p.value)))}, latest ${format(last.value)}`;
  const cursor = s("line", { class: "cursor hidden", y1: TOP, y2: H - BOTTOM });
  const dot = s("circle", { class: "dot hidden", r: 4 });
  const svg = s("svg", { class: "plot", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label },
    [0, 0.5, 1].map((part) => [
      s("line", { class: "axis", x1: LEFT, x2: W - RIGHT, y1: y(top * part), y2: y(top * part) }),
      s("text", { x: LEFT - 7, y: y(top * part) + 4, "text-anchor": "end" }, format(top * part)),
    ]),
    timeTicks(since, until).map((at) => s("text", { x: x(at), y: H - 7, "text-anchor": "middle" },
      clock(at, until - since > 36 * 3600e3))),
    // Nothing is known from the last observation to now.
    until - last.time > 1 ? s("rect", { class: "stale-zone", x: last.x, y: TOP, width: Math.max(x(until) - last.x, 0),
      height: H - TOP - BOTTOM }, s("title", {}, "Not observed since")) : null,
    pieces.map((piece) => [
      s("path", { class: "area", d: `${path(piece, y)}L${piece.at(-1).x} ${y(0)}L${piece[0].x} ${y(0)}Z` }),
      s("path", { class: "line", d: path(piece, y) }),
    ]),
    cursor, dot);
  const tip = h("div", { class: "tip hidden" });
  const frame = h("div", { class: "plot-frame" }, svg, tip);
  frame.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const wanted = ((event.clientX - box.left) / box.width) * W;
    const near = placed.filter((p) => typeof p.value === "number")
      .reduce((best, p) => (Math.abs(p.x - wanted) < Math.abs(best.x - wanted) ? p : best));
    cursor.setAttribute("x1", near.x);
    cursor.setAttribute("x2", near.x);
    dot.setAttribute("cx", near.x);
    dot.setAttribute("cy", y(near.value));
    tip.textContent = `${clock(near.time, true)}: ${format(near.value)}`;
    const share = near.x / W;
    tip.style.left = share > 0.6 ? "auto" : `${share * 100}%`;
    tip.style.right = share > 0.6 ? `${(1 - share) * 100}%` : "auto";
    [cursor, dot, tip].forEach((each) => each.classList.remove("hidden"));
  });
  frame.addEventListener("pointerleave", () => [cursor, dot, tip].forEach((each) => each.classList.add("hidden")));
  return frame;
}

/** The lag of the last hours, as small as a word. */
export function sparkline(values) {
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return null;
  const top = Math.max(...known, 1);
  const placed = values.map((value, index) => ({ value, x: 2 + (index / (values.length - 1)) * 92 }));
  const y = (value) => 21 - (value / top) * 18;
  const line = placed.filter((point) => point.value !== null);
  return s("svg", { class: "spark", viewBox: "0 0 96 24", role: "img", "aria-label": "Lag of the last 6 hours" },
    s("path", { class: "area", d: `${path(line, y)}L${line.at(-1).x} 22L${line[0].x} 22Z` }),
    s("path", { d: path(line, y) }));
}

export const DECIMAL = { base: 10, numbers: [1, 2, 5, 10] };
export const BINARY = { base: 1024, numbers: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] };
export const TIME = { base: 10, numbers: [10, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800] };

function path(points, y) {
  return points.map((p, index) => `${index ? "L" : "M"}${p.x.toFixed(1)} ${y(p.value).toFixed(1)}`).join("");
}

function unbroken(points) {
  const pieces = [];
  let piece = [];
  for (const point of points) {
    if (typeof point.value === "number") piece.push(point);
    else if (piece.length) pieces.push(piece), (piece = []);
  }
  if (piece.length) pieces.push(piece);
  return pieces;
}

/** A picture that is made smaller has letters that nobody can read: it is drawn as wide as there is room. */
export function plotWidth() {
  return window.innerWidth < 720 ? 340 : 640;
}

/** The least of the round numbers that is not less; beyond them powers of their base. */
export function niceTop(value, steps = DECIMAL) {
  if (value <= 0) return steps.numbers[0];
  let scale = 1;
  while (steps.numbers.at(-1) * scale < value) scale *= steps.base;
  return steps.numbers.map((each) => each * scale).find((each) => each >= value);
}

function timeTicks(since, until) {
  const parts = 4;
  return Array.from({ length: parts }, (_, index) => new Date(+since + ((until - since) * (index + 0.5)) / parts));
}
