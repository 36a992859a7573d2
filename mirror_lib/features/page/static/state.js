// States by colour, by icon and by word: never by colour alone.

import { h, s } from "./dom.js";

const SHAPES = {
  ok: "M3 8.5l3.2 3.2L13 5",
  warning: "M8 2.2L14.5 13.6H1.5zM8 6.4v3.4M8 11.9v.1",
  danger: "M5.2 1.8h5.6l3.4 3.4v5.6l-3.4 3.4H5.2l-3.4-3.4V5.2zM8 4.8v4M8 11.1v.1",
  idle: "M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2M6.4 5.8v4.4M9.6 5.8v4.4",
  running: "M13.5 8A5.5 5.5 0 1 1 8 2.5M8 2.5h3M11 2.5L8.8.6M11 2.5L8.8 4.4",
  waiting: "M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2M8 4.8V8l2.2 1.6",
  coming: "M8 6.6a1.4 1.4 0 1 0 0 2.8 1.4 1.4 0 1 0 0-2.8",
};

export function icon(kind) {
  return s(
    "svg",
    { viewBox: "0 0 16 16", "aria-hidden": "true", fill: "none", stroke: "currentColor", "stroke-width": 1.9,
      "stroke-linecap": "round", "stroke-linejoin": "round" },
    s("path", { d: SHAPES[kind] ?? SHAPES.coming }),
  );
}

/** A badge. */
export function badge(level, word, title = null, sign = level) {
  return h("span", { class: `state ${level}`, title }, icon(sign), word);
}

/** The process of a cutover; without one it is urgent while the writers wait. */
export function carrier(cutover) {
  if (!cutover.unattended) return cutover.who;
  return cutover.writers_wait ? badge("danger", "not running, writers stopped") : badge("warning", "not running");
}

const RUNS = { succeeded: "ok", running: "idle", partial: "warning", failed: "danger", died: "warning" };
const OUTLOOKS = { ok: "ok", unknown: "idle", tight: "warning", "will-be-lost": "danger", "already-lost": "danger" };
const STEPS = { passed: "ok", running: "idle", interrupted: "danger", waiting: "warning", failed: "danger", undone: "warning" };
const CUTOVERS = { running: "idle", interrupted: "danger", waiting: "warning", failed: "danger", finished: "ok", "rolled-back": "idle",
  defined: "idle", stopped: "idle", "stopped-frozen": "danger", "stopped-released": "warning" };
const GAPS = { open: "danger", accepted: "ok", recopied: "ok", stopped: "idle" };
const BEATS = { fresh: "ok", stale: "danger", missing: "danger", "clock-ahead": "warning" };

export const levels = { runs: RUNS, outlooks: OUTLOOKS, steps: STEPS, cutovers: CUTOVERS, gaps: GAPS, beats: BEATS };

export function known(kind, word) {
  const level = levels[kind][word] ?? "idle";
  return badge(level, (word ?? "unknown").replaceAll("-", " "), null, word === "running" ? "running" : level);
}
