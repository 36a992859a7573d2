// Elements from values. Text is always text: nothing that comes from a ledger is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element; `on…` are listeners, other values attributes; null, undefined and false leave them out. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Puts these children in the place of all that an element has. */
export function put(element, ...children) {
  element.replaceChildren(...flat(children));
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    // The page's policy forbids style attributes; properties are not text that somebody could smuggle in.
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...flat(children));
  return element;
}

function flat(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}
