// Clusters as boxes and flows as arrows between them, from left to right as records go.

import { s } from "./dom.js";
import { duration, short } from "./format.js";

const NODE_W = 132, NODE_H = 44, GAP_X = 128, GAP_Y = 24, EDGE = 10, THROUGH_H = 22;
const SIGNS = { ok: "✓", warning: "▲", danger: "✕", idle: "‖" };

export function flowGraph(clusters, flows) {
  const { columns, ways } = layered(clusters, flows);
  const tallest = Math.max(...columns.map((column) => column.reduce((sum, item) => sum + tall(item), 0)));
  const height = tallest + EDGE * 2;
  const width = columns.length * NODE_W + (columns.length - 1) * GAP_X + EDGE * 2 + 40;
  const place = new Map();
  columns.forEach((column, index) => {
    // Spread over the whole height, so that neighbours in order are neighbours in place.
    const free = (tallest - column.reduce((sum, item) => sum + tall(item), 0)) / column.length;
    let y = EDGE + free / 2;
    for (const item of column) {
      place.set(item, { x: EDGE + 20 + index * (NODE_W + GAP_X), y: y + GAP_Y / 2, column: index });
      y += tall(item) + free;
    }
  });
  return s("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, width, role: "group",
    // A little smaller rather than cut off; names must stay legible.
    style: { minWidth: `${width * 0.75}px` },
    "aria-label": `${clusters.length} clusters and ${flows.length} flows between them` },
    spread(flows, place, ways).map((each) => edge(each)),
    clusters.map((name) => node(name, place.get(name), flows)));
}

/** Clusters are names; a place where a long arrow goes through a column is an object. */
function tall(item) {
  return (typeof item === "string" ? NODE_H : THROUGH_H) + GAP_Y;
}

/** Where each arrow leaves and arrives, so that those of one box do not lie on each other. */
function spread(flows, place, ways) {
  const ends = (key, next) => {
    const rank = new Map();
    for (const [, members] of grouped(flows, key)) {
      members.sort((a, b) => place.get(next(a)).y - place.get(next(b)).y || a.name.localeCompare(b.name));
      members.forEach((flow, index) => rank.set(flow, (index + 1) / (members.length + 1)));
    }
    return rank;
  };
  const through = (flow) => ways.get(flow) ?? [];
  const leave = ends("source", (flow) => through(flow)[0] ?? flow.target);
  const arrive = ends("target", (flow) => through(flow).at(-1) ?? flow.source);
  const hasOpposite = (flow) => flows.some((other) => other.source === flow.target && other.target === flow.source);
  return flows.map((flow) => ({ flow, from: place.get(flow.source), to: place.get(flow.target),
    over: through(flow).map((item) => place.get(item)), out: leave.get(flow), in: arrive.get(flow),
    paired: hasOpposite(flow) }));
}

function edge({ flow, from, to, over, out, in: into, paired }) {
  const back = to.column < from.column, beside = to.column === from.column;
  // Both directions between two clusters would lie on each other.
  const apart = paired ? (back ? 11 : -11) : 0;
  const x1 = from.x + (back ? 0 : NODE_W), y1 = from.y + NODE_H * out + apart;
  const x2 = back || beside ? to.x + NODE_W : to.x, y2 = to.y + NODE_H * into + apart;
  const side1 = back ? -1 : 1, side2 = back || beside ? 1 : -1;
  const tipX = x2 + side2 * 9;
  let way = `M${x1} ${y1}`, x = x1, y = y1;
  for (const each of over) {
    const at = each.y + THROUGH_H / 2;
    way += curve(x, y, 1, each.x, at, -1) + `L${each.x + NODE_W} ${at}`;
    [x, y] = [each.x + NODE_W, at];
  }
  way += curve(x, y, over.length ? 1 : side1, tipX, y2, side2);
  const middle = over.length
    ? { x: over[0].x + NODE_W / 2, y: over[0].y + THROUGH_H / 2 }
    : { x: (x1 + tipX) / 2 + (beside ? 46 : 0), y: (y1 + y2) / 2 };
  const level = flow.state.level;
  const behind = flow.records_behind ? ` ${short(flow.records_behind)}` : "";
  const sign = `${SIGNS[level]}${behind}`;
  const half = 9 + sign.length * 3.4;
  const told = `${flow.source} to ${flow.target}: ${flow.state.word}` +
    (flow.records_behind === null ? "" : `, lag ${short(flow.records_behind)} records, ${duration(flow.seconds_behind)}`);
  return s("a", { href: `#/flow/${encodeURIComponent(flow.dag_id)}`, "aria-label": told },
    s("g", { class: `edge ${level}` },
      s("title", {}, told),
      s("path", { class: "way", d: way }),
      s("path", { class: "hit", d: way }),
      s("path", { class: "head", d: `M${x2} ${y2}l${side2 * 11} -5.5v11z` }),
      s("rect", { class: "mark-ground", x: middle.x - half, y: middle.y - 10, width: half * 2, height: 20, rx: 10 }),
      s("text", { class: "mark", x: middle.x, y: middle.y + 4, "text-anchor": "middle" }, sign)));
}

function curve(x1, y1, side1, x2, y2, side2) {
  const bend = Math.max(Math.abs(x2 - x1) / 2, 54);
  return `C${x1 + side1 * bend} ${y1} ${x2 + side2 * bend} ${y2} ${x2} ${y2}`;
}

function node(name, at, flows) {
  const out = flows.filter((flow) => flow.source === name).length;
  const into = flows.filter((flow) => flow.target === name).length;
  return s("g", { class: "node" },
    s("title", {}, `${name}: ${into} incoming and ${out} outgoing flows`),
    s("rect", { x: at.x, y: at.y, width: NODE_W, height: NODE_H, rx: 8 }),
    s("text", { x: at.x + NODE_W / 2, y: at.y + 19, "text-anchor": "middle" }, name.length > 17 ? `${name.slice(0, 16)}…` : name),
    s("text", { class: "sub", x: at.x + NODE_W / 2, y: at.y + 35, "text-anchor": "middle" }, `${into} in · ${out} out`));
}

/** Clusters in columns: each to the right of those that it gets records from, as far as there is no circle. */
function layered(clusters, flows) {
  const level = new Map(clusters.map((name) => [name, 0]));
  const forward = withoutCircles(clusters, flows);
  for (let round = 0; round < clusters.length; round += 1) {
    let moved = false;
    for (const flow of forward) {
      const wanted = level.get(flow.source) + 1;
      if (level.get(flow.target) < wanted) level.set(flow.target, wanted), (moved = true);
    }
    if (!moved) break;
  }
  const columns = [];
  for (const name of clusters) (columns[level.get(name)] ??= []).push(name);
  const filled = columns.filter(Boolean);
  const at = new Map(filled.flatMap((column, index) => column.map((name) => [name, index])));
  const ways = new Map(), near = new Map(clusters.map((name) => [name, []]));
  for (const flow of flows) {
    const through = [];
    for (let index = at.get(flow.source) + 1; index < at.get(flow.target); index += 1) {
      const item = { flow };
      filled[index].push(item);
      near.set(item, []);
      through.push(item);
    }
    ways.set(flow, through);
    const stops = [flow.source, ...through, flow.target];
    for (let index = 1; index < stops.length; index += 1) {
      near.get(stops[index - 1]).push(stops[index]);
      near.get(stops[index]).push(stops[index - 1]);
    }
  }
  // A few rounds of sorting by the middle of the neighbours leave few crossings.
  for (let round = 0; round < 6; round += 1) {
    for (const column of round % 2 ? filled : [...filled].reverse()) {
      const row = new Map(filled.flatMap((each) => each.map((item, index) => [item, (index + 0.5) / each.length])));
      const middle = new Map(column.map((item) => {
        const rows = near.get(item).map((other) => row.get(other));
        return [item, rows.length ? rows.reduce((a, b) => a + b) / rows.length : row.get(item)];
      }));
      column.sort((a, b) => middle.get(a) - middle.get(b));
    }
  }
  return { columns: filled, ways };
}

function withoutCircles(clusters, flows) {
  const from = grouped(flows, "source");
  const state = new Map(), kept = [];
  const visit = (name) => {
    state.set(name, "open");
    for (const flow of from.get(name) ?? []) {
      if (state.get(flow.target) === "open") continue;
      kept.push(flow);
      if (!state.has(flow.target)) visit(flow.target);
    }
    state.set(name, "done");
  };
  const arrived = new Set(flows.map((flow) => flow.target));
  [...clusters].sort((a, b) => arrived.has(a) - arrived.has(b)).forEach((name) => state.has(name) || visit(name));
  return kept;
}

function grouped(flows, key) {
  const found = new Map();
  for (const flow of flows) found.set(flow[key], [...(found.get(flow[key]) ?? []), flow]);
  return found;
}
