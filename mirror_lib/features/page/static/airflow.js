// Ways from the page to Airflow's own pages. Airflow's frame forbids to navigate the window around it, so its own
// router is asked to.

import { h } from "./dom.js";
import { ROOT } from "./api.js";

/** A link to a page of Airflow, `dags/<id>` for example. */
export function airflowLink(path, ...children) {
  const url = new URL(`../${path}`, ROOT);
  return h("a", { href: url.href, target: "_top", onclick: (event) => follow(event, url) }, ...children);
}

function follow(event, url) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || window.parent === window) return;
  try {
    window.parent.history.pushState(null, "", url.href);
    window.parent.dispatchEvent(new PopStateEvent("popstate"));
    event.preventDefault();
  } catch {
    // The browser follows the link as it can.
  }
}

export function dagLink(dagId, ...children) {
  return airflowLink(`dags/${encodeURIComponent(dagId)}`, ...children);
}

export function runLink(dagId, runId, ...children) {
  return airflowLink(`dags/${encodeURIComponent(dagId)}/runs/${encodeURIComponent(runId)}`, ...children);
}
