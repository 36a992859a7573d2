// Elements from values. Text is always text: nothing that comes from a ledger is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element; `on…` are listeners, other values attributes; null, undefined and false are omitted. */
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
    // The page's policy forbids style attributes; properties are not text that could be injected.
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : SHOWN.has(name) ? printable(String(value)) : String(value));
  }
  element.append(...flat(children));
  return element;
}

function flat(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(printable(String(child)))));
}

/** Attributes that people read. */
const SHOWN = new Set(["aria-label", "title", "placeholder"]);
/** What is no letter, mark, number, sign or blank: control characters, and those that turn the direction of writing. */
const HIDDEN = /[^\P{C}\n\t]|[\u2028\u2029]/gu;

/** A text that others chose, with everything that is not printable written as an escape, as on the command line. */
export function printable(text) {
  return text.replace(HIDDEN, (each) => {
    const code = each.codePointAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
  });
}
