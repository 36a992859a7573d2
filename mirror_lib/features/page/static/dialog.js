// Confirmation dialogs. Escape and a click outside the box cancel.

import { h, put } from "./dom.js";
import { failure } from "./notices.js";

const box = document.getElementById("dialog");
box.addEventListener("click", (event) => event.target === box && box.close());

/**
 * @param {{title: string, text: (string|Node)[], yes: string, dangerous?: boolean, fields?: Node, act: Function}} question
 *   `act` gets the form's values; if it fails, the box stays open and shows the error.
 */
export function ask({ title, text, yes, dangerous = false, fields = null, act }) {
  const before = document.activeElement;
  const wrong = h("div", {});
  const confirm = h("button", { type: "submit", class: dangerous ? "dangerous" : "primary" }, yes);
  const form = h("form", { method: "dialog" },
    h("h2", { id: "dialog-title" }, title),
    text.map((each) => h("p", {}, each)),
    fields, wrong,
    h("div", { class: "buttons" },
      h("button", { type: "button", onclick: () => box.close() }, "Cancel"), confirm));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    confirm.disabled = true;
    try {
      await act(Object.fromEntries(new FormData(form)));
      box.close();
    } catch (error) {
      put(wrong, failure(error));
      confirm.disabled = false;
    }
  });
  put(box, form);
  box.showModal();
  box.addEventListener("close", () => before?.focus?.(), { once: true });
}
