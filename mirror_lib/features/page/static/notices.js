// Notices: while data is loading, if there is none, and on errors.

import { h } from "./dom.js";
import { icon } from "./state.js";

export function loading() {
  return [h("p", { class: "loading", role: "status" }, "Loading…"), h("div", { class: "skeleton", "aria-hidden": "true" })];
}

export function failure(error, again) {
  return h("section", { class: "notice danger", role: "alert" },
    h("strong", {}, icon("danger"), error.message || "Internal error of the page."),
    error.action ? h("p", {}, error.action) : null,
    again ? h("div", {}, h("button", { type: "button", onclick: again }, "Try again")) : null);
}

export function problem(each) {
  return h("section", { class: "notice danger", role: "alert" },
    h("strong", {}, icon("danger"), each.what), each.action ? h("p", {}, each.action) : null);
}

export function empty(title, ...paragraphs) {
  return h("section", { class: "panel empty" }, h("h2", {}, title), paragraphs.map((each) => h("p", {}, each)));
}

export function toast(...content) {
  const shown = h("div", { class: "toast" }, ...content);
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), 9000);
}
