// Not a module: it runs before they are there, so that the server answers while the browser still loads them.
// What is asked for here is taken by `read` of api.js, which sets `early` itself if this file arrives after its first question.

if (!globalThis.early && !/^#\/./.test(location.hash) && !new URLSearchParams(location.search).has("dag")) {
  const path = "overview";
  globalThis.early = { path, answer: fetch(`api/${path}`, { credentials: "same-origin", cache: "no-store" }) };
  // `read` of api.js reports a failure.
  globalThis.early.answer.catch(() => {});
}
