"use strict";
// Draws the scenes that the page carries: scene 0 is the graph, the others what is nested in it.
// A node is known by its key: the places of the nodes it lies in and its own, such as "12.0".
const { scenes, hues, header } = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const [picture, world, panel, query] = ["picture", "world", "panel", "query"].map(byId);
const MOST_EDGES = 6000, TOP = 30, SIDE = 14, FAR = 0.42;

const open = new Set();
let parts = new Map(), nodes = new Map();
let chosen = null, pointed = null, every = false;
const view = { x: 0, y: 0, k: 1 };

function element(space, tag, attributes, children) {
  const made = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
const svg = (tag, attributes = {}, ...children) =>
  element("http://www.w3.org/2000/svg", tag, attributes, children);
const html = (tag, attributes = {}, ...children) =>
  element("http://www.w3.org/1999/xhtml", tag, attributes, children);
const button = (text, act, attributes = {}) => {
  const made = html("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", act);
  return made;
};

const below = (key, place) => (key === "" ? `${place}` : `${key}.${place}`);
const above = (key) => key.slice(0, Math.max(key.lastIndexOf("."), 0));
const placeOf = (key) => Number(key.slice(key.lastIndexOf(".") + 1));
const sceneIn = (key) => (key === "" ? scenes[0] : scenes[nodeAt(key).inside]);
const nodeAt = (key) => sceneIn(above(key)).nodes[placeOf(key)];
const size = (frame) => frame.lanes.reduce((sum, count) => sum + count);
const hue = (number) => `color-mix(in srgb, var(--hue-${number % hues}), white var(--tint, 0%))`;
const trail = (key) => key.split(".").map((_, at, all) => all.slice(0, at + 1).join("."));

// Layout: places as given, pushed right and down by what is unfolded.

function arrange(key) {
  const scene = sceneIn(key), at = [], frames = [], home = [], columns = [];
  let next = 0, pushed = 0;
  for (const { stage, frames: inColumn } of scene.columns) {
    const column = { stage, boxes: [], frames: [], height: 0 }, wider = [];
    let down = 0;
    for (const frame of inColumn) {
      const [x, y, w, h] = frame.at;
      let taller = 0;
      frame.lanes.forEach((count, lane) => {
        let lower = 0;
        for (const last = next + count; next < last; next++) {
          const [bx, by, bw, bh] = scene.nodes[next].at, own = below(key, next);
          const inner = open.has(own) ? arrange(own) : null;
          const grown = inner ? Math.max(inner.width + 2 * SIDE - bw, 0) : 0;
          const tall = inner ? inner.height + TOP + SIDE : bh;
          column.boxes.push({ x: bx, y: by + down + lower, w: bw, h: tall, lane, inner });
          home.push(frames.length + column.frames.length);
          lower += tall - bh;
          wider[lane] = Math.max(wider[lane] ?? 0, grown);
        }
        taller = Math.max(taller, lower);
      });
      column.frames.push({ frame, x: x + pushed, y: y + down, w, h: h + taller });
      down += taller;
    }
    const shift = [0];
    wider.forEach((more, lane) => shift.push(shift[lane] + more));
    for (const frame of column.frames) frame.w += shift[frame.frame.lanes.length];
    for (const box of column.boxes) {
      box.x += pushed + shift[box.lane];
      box.w += wider[box.lane];
    }
    const last = column.frames.at(-1);
    column.height = last.y + last.h - column.frames[0].y;
    pushed += shift.at(-1);
    columns.push(column);
    frames.push(...column.frames);
    at.push(...column.boxes);
  }
  const tallest = Math.max(...columns.map(({ height }) => height));
  for (const column of columns) {
    const rise = header + (tallest - column.height) / 2 - column.frames[0].y;
    for (const each of [...column.frames, ...column.boxes]) {
      each.y += rise;
      each.middle = each.y + each.h / 2;
    }
  }
  return { scene, at, frames, home, columns, width: scene.width + pushed, height: header + tallest };
}

function curve(a, b, leaves = 0, arrives = 0) {
  let [top, bottom] = [a.middle + leaves, b.middle + arrives];
  if (a === b) [top, bottom] = [top - 10, bottom + 10];
  let [start, end] = a.x > b.x + b.w ? [a.x, b.x + b.w] : [a.x + a.w, b.x];
  let [one, two] = [start + (end - start) * 0.45, end - (end - start) * 0.45];
  if (start > end && a.x <= b.x + b.w) {
    end = b.x + b.w;
    one = two = Math.max(start, end) + 30 + Math.abs(bottom - top) / 4;
  }
  return `M${start},${top} C${one},${top} ${two},${bottom} ${end},${bottom}`;
}

// Drawing.

function draw() {
  parts = new Map();
  nodes = new Map();
  world.replaceChildren(drawScene("", arrange(""), 0, 0));
  rescale();
  mark();
}

function drawScene(key, placed, left, top) {
  const layers = Object.fromEntries(
    ["ribbons", "frames", "edges", "nodes", "counts", "titles"].map((name) => [name, svg("g", { class: name })]));
  const g = svg("g", { transform: `translate(${left} ${top})` }, ...Object.values(layers));
  parts.set(key, { key, g, placed, layers });
  if (key === "") drawStages(placed.columns, layers.frames);
  placed.frames.forEach((at, number) => drawFrame(layers, at, number));
  drawRibbons(placed, layers);
  placed.at.forEach((box, place) => layers.nodes.append(drawNode(below(key, place), box)));
  return g;
}

function drawStages(columns, into) {
  for (const stage of new Set(columns.map((column) => column.stage))) {
    const frames = columns.filter((column) => column.stage === stage).flatMap((column) => column.frames);
    const left = Math.min(...frames.map(({ x }) => x)), right = Math.max(...frames.map(({ x, w }) => x + w));
    into.append(svg("text", { class: "stage", x: (left + right) / 2, y: 12 }, `${stage}`));
  }
}

function drawFrame(layers, at, number) {
  const { x, y, w, h, frame } = at, count = size(frame);
  const rect = svg("rect", { class: "frame", x, y, width: w, height: h, rx: 10 });
  layers.frames.append(rect, svg("text", { class: "family", x: x + 14, y: y + 18 }, frame.family));
  // Seen from afar a frame has one large title instead, upright where it is narrow.
  at.upright = h > 1.5 * w;
  at.title = svg("text", { class: "far-title", transform: `translate(${x + w / 2} ${y + h / 2})${at.upright ? " rotate(-90)" : ""}` },
    count > 1 ? `${frame.family} · ${count}` : frame.family);
  layers.titles.append(at.title);
  const light = (on) => layers.ribbons.querySelectorAll(`[data-ends~="${number}"]`)
    .forEach((ribbon) => ribbon.classList.toggle("lit", on));
  rect.addEventListener("pointerenter", () => light(true));
  rect.addEventListener("pointerleave", () => light(false));
}

function drawRibbons({ scene, frames }, layers) {
  const ribbons = scene.bundles.filter((each) => each.ribbon);
  layers.ribbons.classList.toggle("crowd", ribbons.length > 60);
  for (const each of ribbons) {
    const [a, b] = [frames[each.from], frames[each.to]];
    const path = svg("path", {
      class: each.carried === each.count ? "ribbon carried" : "ribbon", "data-ends": `${each.from} ${each.to}`,
      stroke: hue(each.from), "stroke-width": each.width, d: curve(a, b, each.leaves, each.arrives),
    }, svg("title", {}, `${a.frame.family} → ${b.frame.family}: ${each.count} edges, ${each.carried} of them carried`));
    layers.ribbons.append(path);
    if (ribbons.length > 60) continue;
    const text = each.count.toLocaleString("en"), w = text.length * 6.5 + 10;
    const { x, y } = path.getPointAtLength(path.getTotalLength() * 0.2);
    layers.counts.append(svg("g", { class: "count", transform: `translate(${x} ${y})` }, svg("g", {},
      svg("rect", { x: -w / 2, y: -8, width: w, height: 16, rx: 8 }), svg("text", { y: 4 }, text))));
  }
}

function drawNode(key, box) {
  const node = nodeAt(key), { x, y, w, h, inner } = box, scene = sceneIn(above(key));
  const ends = [scene.source, scene.target].includes(placeOf(key));
  const g = svg("g", {
    class: `node${ends ? " end" : ""}${inner ? " open" : ""}`, transform: `translate(${x} ${y})`,
    tabindex: 0, role: "button", "aria-label": `${node.kind} ${node.name}`, "data-key": key,
  }, svg("title", {}, node.name),
  svg("rect", { class: "box", width: w, height: h, rx: node.kind === "node" ? 12 : 4 }));
  node.lines.slice(0, inner ? 1 : undefined).forEach((line, row) => g.append(
    svg("text", { class: row ? "detail" : "name", x: 10, y: 5 + 16 * (row + 0.8) }, line)));
  if (node.inside !== null) {
    g.append(svg("g", { class: "handle", transform: `translate(${w - 20} 6)` },
      svg("title", {}, inner ? "Fold" : "Unfold"), svg("rect", { width: 14, height: 14, rx: 3 }),
      svg("path", { d: inner ? "M4,7 h6" : "M4,7 h6 M7,4 v6" })));
  }
  if (inner) g.append(drawScene(key, inner, SIDE, TOP));
  nodes.set(key, { g, box });
  return g;
}

// What is looked at: the node pointed at, else the one chosen.

function linesOf(scene) {
  return scene.pairs ??= scene.edges.flatMap(([tight, carried], from) =>
    [...tight.map((to) => [from, to, "tight"]), ...carried.map((to) => [from, to, "carried"])]);
}

function mark() {
  const focus = pointed ?? chosen;
  const home = focus === null ? null : above(focus);
  world.querySelectorAll(".near, .chosen").forEach((each) => each.classList.remove("near", "chosen"));
  for (const part of parts.values()) {
    const place = part.key === home ? placeOf(focus) : null;
    part.g.classList.toggle("focus", place !== null);
    part.g.classList.toggle("every", every && linesOf(part.placed.scene).length <= MOST_EDGES);
    drawEdges(part, place);
  }
  nodes.get(chosen)?.g.classList.add("chosen");
}

function drawEdges({ key, g, placed, layers }, focus) {
  const { scene, at, home } = placed;
  const all = linesOf(scene);
  const single = new Set(scene.bundles.filter((each) => !each.ribbon).map((each) => `${each.from} ${each.to}`));
  const shown = focus !== null ? all.filter(([a, b]) => a === focus || b === focus)
    : g.classList.contains("every") ? all
    : single.size ? all.filter(([a, b]) => single.has(`${home[a]} ${home[b]}`)) : [];
  const many = focus === null && shown.length > 400 ? " many" : "";
  layers.edges.replaceChildren(...shown.map(([a, b, kind]) => svg("path", {
    class: `edge ${kind}${many}`, stroke: hue(a), d: curve(at[a], at[b]),
  })));
  if (focus !== null)
    for (const place of new Set([focus, ...shown.flat().filter((each) => typeof each === "number")]))
      nodes.get(below(key, place)).g.classList.add("near");
}
