// Requests to the page's own server. Addresses count from this file, so that any prefix of Airflow's works.

export const ROOT = new URL("../", import.meta.url);

/** An error response, or a failed connection. */
export class ApiError extends Error {
  constructor(what, action, status) {
    super(what);
    this.action = action;
    this.status = status;
  }
}

// The server's clock less this machine's, in milliseconds.
let clockAhead = 0;

/** This moment by the server's clock. */
export function serverNow() {
  return Date.now() + clockAhead;
}

/** Reads `/api/<path>`. */
export async function read(path, query = {}, signal = undefined) {
  const url = new URL(`api/${path}`, ROOT);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
  }
  const answer = await ask(url, { signal }, taken(path));
  if (answer.now) clockAhead = Date.parse(answer.now) - Date.now();
  return answer;
}

/** Does something; the header is what a forged request of another page cannot have. */
export async function act(path, body) {
  return ask(new URL(`api/${path}`, ROOT), {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Replication-Action": "1" },
    body: JSON.stringify(body),
  });
}

/** The answer that early.js requested, for the first question only: later it would be an old one. */
function taken(path) {
  const { early } = globalThis;
  globalThis.early = { path: null };
  return early?.path === path ? early.answer : null;
}

async function ask(url, options, asked = null) {
  let response;
  try {
    response = await (asked ?? fetch(url, { credentials: "same-origin", cache: "no-store", ...options }));
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("Airflow's API server does not respond.", "Check that it is running and that you are connected to the network.", 0);
  }
  if (response.ok) return response.json();
  throw await refused(response);
}

async function refused(response) {
  if (response.status === 401) {
    return new ApiError("You are no longer logged in to Airflow.", "Log in again in this browser, then refresh this page.", 401);
  }
  let detail = null;
  try {
    detail = (await response.json()).detail;
  } catch {
    // Not a response of the page's server.
  }
  if (detail?.what) return new ApiError(detail.what, detail.action, response.status);
  const what = typeof detail === "string" ? detail : `The server responded with status ${response.status}.`;
  return new ApiError(what, response.status >= 500 ? "Check the log of Airflow's API server." : "", response.status);
}
