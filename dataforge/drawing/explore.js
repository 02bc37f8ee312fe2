// What the reader does: pan and zoom, choose, fold, search. What is chosen stands in the address.

function move() {
  world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`);
}

function rescale() {
  move();
  picture.classList.toggle("far", view.k < FAR);
  world.style.setProperty("--up", Math.max(1, 0.85 / view.k));
  if (view.k >= FAR) return;
  for (const { placed } of parts.values())
    for (const { title, w, h, upright } of placed.frames) {
      const [long, high] = upright ? [h, w] : [w, h];
      title.style.fontSize = `${Math.min((long * 1.6) / title.textContent.length, high * 0.7, 15 / view.k)}px`;
    }
}

function zoom(factor, x = picture.clientWidth / 2, y = picture.clientHeight / 2) {
  const k = Math.min(Math.max(view.k * factor, 0.02), 4);
  Object.assign(view, { x: x - ((x - view.x) * k) / view.k, y: y - ((y - view.y) * k) / view.k, k });
  rescale();
}

function pan(x, y) {
  view.x += x;
  view.y += y;
  move();
}

function look({ x, y, w, h }) {
  const { clientWidth: width, clientHeight: height } = picture;
  const k = Math.min((width - 48) / w, (height - 40) / h, 1.25);
  Object.assign(view, { k, x: width / 2 - (x + w / 2) * k, y: height / 2 - (y + h / 2) * k });
  rescale();
}

function fit() {
  const { width, height } = parts.get("").placed;
  look({ x: 0, y: 0, w: width, h: height });
}

function reveal(key) {
  const spot = () => nodes.get(key).g.querySelector(".box").getBoundingClientRect();
  const all = picture.getBoundingClientRect(), box = spot();
  if (view.k < FAR) zoom(0.9 / view.k);
  else if (box.left >= all.left && box.right <= all.right && box.top >= all.top && box.bottom <= all.bottom) return;
  const now = spot();
  const [w, h] = [Math.min(now.width, all.width - 40), Math.min(now.height, all.height - 40)];
  pan(all.left + (all.width - w) / 2 - now.left, all.top + (all.height - h) / 2 - now.top);
}

// Choosing and folding.

const link = (key) => `#${new URLSearchParams(trail(key).map((each) => ["node", nodeAt(each).name]))}`;
let still = false;

// `stay`: whether to leave the view as it is.
function choose(key, stay = false) {
  const to = key === null ? "" : link(key);
  if (location.hash === to) return;
  still = stay;
  location.hash = to;
}

function follow() {
  let key = "";
  for (const name of new URLSearchParams(location.hash.slice(1)).getAll("node")) {
    const place = key !== "" && nodeAt(key).inside === null ? -1 : sceneIn(key).nodes.findIndex((node) => node.name === name);
    if (place < 0) break;
    key = below(key, place);
  }
  chosen = key || null;
  const folded = chosen === null ? [] : trail(chosen).slice(0, -1).filter((each) => !open.has(each));
  folded.forEach((each) => open.add(each));
  if (folded.length) draw(); else mark();
  tell();
  if (chosen !== null && !still) reveal(chosen);
  still = false;
}

function toggle(key) {
  if (nodeAt(key).inside === null) return;
  const before = nodes.get(key).g.getBoundingClientRect();
  if (!open.delete(key)) open.add(key);
  if (chosen !== null && !open.has(key) && chosen.startsWith(`${key}.`)) choose(key);
  draw();
  const after = nodes.get(key).g.getBoundingClientRect();
  pan(before.left - after.left, before.top - after.top);
  nodes.get(key).g.focus({ preventScroll: true });
  search();
  tell();
}

function unfoldAll() {
  const shut = open.size === 0;
  open.clear();
  // Each is looked at once as it is drawn, so that what it holds is unfolded too.
  for (let more = shut; more;) {
    draw();
    const found = [...nodes.keys()].filter((key) => nodeAt(key).inside !== null && !open.has(key));
    found.forEach((key) => open.add(key));
    more = found.length > 0 && nodes.size < 5000;
  }
  byId("unfold").textContent = shut ? "Fold all" : "Unfold all";
  draw();
  search();
  fit();
}

// The panel.

const table = (rows) => html("table", {}, html("tbody", {}, ...rows.map(([name, said, implied]) =>
  html("tr", implied ? { class: "implied" } : {}, html("td", {}, name),
    html("td", {}, implied ? `${said}, since it is written here` : said)))));
const titled = (title, ...content) => (content.length ? [html("h3", {}, title), ...content] : []);
const list = (keys, kinds) => html("ul", { class: "edges" }, ...keys.map((key, at) =>
  html("li", { class: kinds[at] }, button(nodeAt(key).name, () => choose(key)))));

function tell() {
  panel.replaceChildren(...(chosen === null ? overview() : told(chosen)));
  panel.scrollTop = 0;
}

function told(key) {
  const node = nodeAt(key), home = above(key), scene = sceneIn(home), place = placeOf(key);
  const lines = linesOf(scene);
  const edges = (title, own, other) => {
    const found = lines.filter((line) => line[own] === place);
    const carried = found.filter((line) => line[2] === "carried").length;
    return found.length ? titled(`${title} (${found.length - carried} tight, ${carried} carried)`,
      list(found.map((line) => below(home, line[other])), found.map((line) => line[2]))) : [];
  };
  const way = trail(key).slice(0, -1).flatMap((each) => [button(nodeAt(each).name, () => choose(each)), " › "]);
  return [
    html("p", { class: "path" }, button(scenes[0].name, () => choose(null)), " › ", ...way),
    html("h2", {}, node.name),
    html("span", { class: "badge" }, node.kind),
    ...(place === scene.source ? [html("span", { class: "badge" }, "source")] : []),
    ...(place === scene.target ? [html("span", { class: "badge" }, "target")] : []),
    ...(node.inside === null ? [] : [html("div", {}, button(open.has(key) ? "Fold" : "Unfold", () => toggle(key)))]),
    ...titled("Needs", node.needs.length ? table(node.needs) : html("p", { class: "soft" }, "nothing")),
    ...titled("Gives", node.gives.length ? table(node.gives) : html("p", { class: "soft" }, "nothing new")),
    ...titled("About", table(node.about)),
    ...edges("Follows on", 1, 0),
    ...edges("Is followed by", 0, 1),
  ];
}

function overview() {
  const key = (dash, text) => html("p", { class: "key" }, svg("svg", { width: 36, height: 8 },
    svg("path", { d: "M0,4 h36", stroke: "currentColor", "stroke-width": 2, "stroke-dasharray": dash })), text);
  const { idle } = scenes[0];
  const keys = [["+ −", "zoom"], ["0", "see all"], ["arrows", "move"], ["/", "search"], ["Tab", "next node"], ["Enter", "choose"], ["Space", "unfold"], ["u", "unfold all"], ["e", "every edge"], ["Esc", "let go"]];
  return [
    html("h2", {}, scenes[0].name),
    html("p", { class: "soft" }, scenes[0].summary),
    html("p", { class: "soft" }, "Click a node to see what it needs and gives, and its edges."),
    ...titled("Edges", key("none", "tight: what a node promises is enough"),
      key("5 4", "carried: earlier facts needed too"),
      html("p", { class: "soft" }, "A broad one stands for as many edges between two families as it says.")),
    ...titled("Families, by stage", html("ul", {}, ...parts.get("").placed.frames.map((at) =>
      html("li", {}, button(`${at.frame.family} (${size(at.frame)})`, () => look(at)))))),
    ...(idle.length ? titled(`On no walk (${idle.length})`, html("p", { class: "soft" }, idle.join(", "))) : []),
    ...titled("Keys", ...keys.map(([press, does]) => html("p", { class: "soft" }, html("kbd", {}, press), ` ${does}`))),
  ];
}

// Searching: over the whole graph, what is folded away too.

function matches(wanted) {
  const [, field, text] = /^(?:(needs|gives|role|tag):)?(.*)$/.exec(wanted.trim().toLowerCase());
  const about = (node, name) => node.about.filter(([what]) => what === name).map(([, said]) => said);
  const names = { needs: (node) => node.needs.filter((need) => !need[2]).map(([name]) => name),
    gives: (node) => node.gives.map(([name]) => name),
    role: (node) => about(node, "roles"), tag: (node) => about(node, "tags") };
  const seek = field ? names[field] : (node) => [node.name];
  const found = [], waiting = [""];
  while (text && waiting.length && found.length < 2000) {
    const home = waiting.shift();
    sceneIn(home).nodes.forEach((node, place) => {
      const key = below(home, place);
      if (seek(node).some((name) => name.toLowerCase().includes(text))) found.push(key);
      if (node.inside !== null) waiting.push(key);
    });
  }
  return found;
}

function search() {
  const found = matches(query.value), here = new Set(found), shown = byId("found"), busy = query.value.trim() !== "";
  const holds = new Set(found.flatMap((key) => trail(key).slice(0, -1)));
  world.classList.toggle("searching", busy);
  for (const [key, { g }] of nodes) {
    g.classList.toggle("found", here.has(key));
    g.classList.toggle("holds", holds.has(key));
  }
  const names = (key) => trail(key).map((each) => nodeAt(each).name).join(" › ");
  shown.replaceChildren(...found.slice(0, 50).map((key) => html("li", {}, button(names(key), () => { shown.hidden = true; choose(key); }))),
    ...(found.length > 50 ? [html("li", {}, `and ${found.length - 50} more`)] : []),
    ...(busy && !found.length ? [html("li", {}, "no such node")] : []));
  shown.hidden = !busy || document.activeElement !== query;
  return found;
}

// Hands.

let held = null;
picture.addEventListener("pointerdown", ({ clientX: x, clientY: y, button: which }) => { if (which === 0) held = { x, y, moved: false }; });
window.addEventListener("pointermove", ({ clientX: x, clientY: y }) => {
  if (!held || (!held.moved && Math.hypot(x - held.x, y - held.y) < 4)) return;
  held.moved = true;
  picture.classList.add("moving");
  pan(x - held.x, y - held.y);
  Object.assign(held, { x, y });
});
window.addEventListener("pointerup", () => { setTimeout(() => { held = null; }); picture.classList.remove("moving"); });
const keyUnder = (event) => event.target.closest?.(".node")?.dataset.key ?? null;
picture.addEventListener("click", (event) => {
  if (held?.moved) return;
  const key = keyUnder(event);
  if (key !== null && event.target.closest(".handle")) toggle(key);
  else choose(key, true);
});
picture.addEventListener("dblclick", (event) => { if (keyUnder(event) !== null) toggle(keyUnder(event)); });
picture.addEventListener("pointerover", (event) => point(held?.moved ? pointed : keyUnder(event)));
picture.addEventListener("pointerleave", () => point(null));
function point(key) {
  if (key === pointed) return;
  pointed = key;
  mark();
}
picture.addEventListener("focusin", (event) => {
  const key = keyUnder(event);
  if (key !== null && event.target.matches(":focus-visible")) reveal(key);
});
picture.addEventListener("wheel", (event) => {
  event.preventDefault();
  const at = picture.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.clientX - at.left, event.clientY - at.top);
}, { passive: false });

function everyEdge() {
  every = !every;
  byId("every").setAttribute("aria-pressed", every);
  mark();
}
const keys = { "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: fit, e: everyEdge, u: unfoldAll,
  "/": () => query.focus(), ArrowLeft: () => pan(80, 0), ArrowRight: () => pan(-80, 0), ArrowUp: () => pan(0, 80), ArrowDown: () => pan(0, -80),
  Escape: () => { query.value = ""; search(); choose(null); } };
document.addEventListener("keydown", (event) => {
  const key = keyUnder(event);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === query && event.key !== "Escape") {
    if (event.key === "Enter") { const found = search(); byId("found").hidden = true; if (found.length) choose(found[(found.indexOf(chosen) + 1) % found.length]); }
    return;
  }
  if (event.target.closest("aside, #found") && event.key.startsWith("Arrow")) return;
  const act = key !== null && event.key === "Enter" ? () => choose(key) : key !== null && event.key === " " ? () => toggle(key) : keys[event.key];
  if (!act || (event.target.tagName === "BUTTON" && [" ", "Enter"].includes(event.key))) return;
  event.preventDefault();
  act();
});
query.addEventListener("input", search);
query.addEventListener("focus", search);
document.addEventListener("pointerdown", (event) => { if (!event.target.closest(".find")) byId("found").hidden = true; });
for (const [id, act] of Object.entries({ every: everyEdge, unfold: unfoldAll, out: () => zoom(0.8), in: () => zoom(1.25), fit }))
  byId(id).addEventListener("click", act);
window.addEventListener("hashchange", follow);

byId("summary").textContent = scenes[0].summary;
byId("unfold").hidden = scenes.length === 1;
byId("every").hidden = !scenes[0].bundles.some((each) => each.ribbon);
draw();
fit();
if (linesOf(scenes[0]).length > MOST_EDGES)
  Object.assign(byId("every"), { disabled: true, title: `${linesOf(scenes[0]).length} edges are too many to draw at once; click a node for its own` });
follow();
