// The age of displayed values. Ages keep counting while the page is open, and turn stale.

import { h } from "./dom.js";
import { duration, moment } from "./format.js";
import { serverNow } from "./api.js";

/** "observed 3 min ago"; `seen` is the time of the observation, and the age at which it is stale. */
export function asOf(seen, word = "observed") {
  if (!seen) return h("span", { class: "age" }, "never observed");
  const element = h("time", {
    class: "age", datetime: seen.at, title: moment(seen.at), "data-word": word,
    "data-stale-after": seen.stale_after_seconds,
  });
  tell(element);
  return element;
}

/** True if an observation is too old to describe the present state. */
export function isStale(seen) {
  return Boolean(seen) && (serverNow() - Date.parse(seen.at)) / 1000 > seen.stale_after_seconds;
}

/** "3 min ago" of something that cannot be stale, such as when a run began. */
export function ago(at) {
  if (!at) return h("span", { class: "age" }, "never");
  const element = h("time", { class: "age", datetime: at, title: moment(at), "data-word": "" });
  tell(element);
  return element;
}

function tell(element) {
  const seconds = Math.max((serverNow() - Date.parse(element.getAttribute("datetime"))) / 1000, 0);
  const limit = Number(element.dataset.staleAfter ?? Infinity);
  const text = seconds < 5 ? "just now" : `${duration(seconds)} ago`;
  const stale = seconds > limit;
  element.classList.toggle("stale", stale);
  element.textContent = [stale ? "stale:" : "", element.dataset.word, text].filter(Boolean).join(" ");
}

setInterval(() => document.querySelectorAll("time.age").forEach(tell), 5000);
