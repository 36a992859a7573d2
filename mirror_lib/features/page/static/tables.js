// Tables, their sortable heads and the buttons between their pages.

import { h } from "./dom.js";
import { count } from "./format.js";

/**
 * @param {{label: string, cell: Function, number?: boolean, sort?: string, plain?: boolean}[]} columns
 * @param {{by: string, descending: boolean, change: Function}=} sorting
 */
export function table(caption, columns, rows, { sorting = null, rowOf = null } = {}) {
  return h("div", { class: "table-scroll" }, h("table", { class: "cards" },
    h("caption", { class: "hidden" }, caption),
    h("thead", {}, h("tr", {}, columns.map((column) => head(column, sorting)))),
    h("tbody", {}, rows.map((row) => h("tr", rowOf?.(row) ?? {}, columns.map((column) => h("td",
      { class: [column.number ? "number" : "", column.plain ? "plain" : ""].join(" ").trim() || null,
        "data-label": column.label },
      h("div", {}, column.cell(row)))))))));
}

function head(column, sorting) {
  const kind = column.number ? "number" : null;
  if (!sorting || !column.sort) return h("th", { scope: "col", class: kind }, column.label);
  const mine = sorting.by === column.sort;
  const order = mine ? (sorting.descending ? "descending" : "ascending") : "none";
  return h("th", { scope: "col", class: kind, "aria-sort": order },
    h("button", { type: "button", "data-sort": column.sort,
      onclick: () => sorting.change(column.sort, mine ? !sorting.descending : Boolean(column.number)) }, column.label));
}

export function pager({ page, size, total }, go) {
  const last = Math.max(1, Math.ceil(total / size));
  const first = total ? (page - 1) * size + 1 : 0;
  return h("div", { class: "row" },
    h("span", { class: "quiet", role: "status" }, `${count(first)}–${count(Math.min(page * size, total))} of ${count(total)}`),
    h("button", { type: "button", disabled: page <= 1, onclick: () => go(page - 1) }, "Previous"),
    h("button", { type: "button", disabled: page >= last, onclick: () => go(page + 1) }, "Next"));
}
