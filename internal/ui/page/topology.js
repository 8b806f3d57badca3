// The map's drawing: sites, or the hosts of a small job, in a circle with the job's server, and the paths
// between them. A path is as thick as much goes there; its dashes and its words say its state, its colour
// says that only again.
"use strict";

const svgName = "http://www.w3.org/2000/svg";
const mostNodes = 17; // more are in the table alone
const box = { width: 178, height: 58 };
const allLabels = 12; // up to so many paths all have their words
const mostWords = 60; // characters in a row of them
const drawn = { key: "", elements: new Map() };

const stateWords = { linked: "linked", opening: "being made", stalled: "stalled", lost: "lost, being made again", ended: "ended", "not told": "not told: no end answers" };
const stateSigns = { opening: "… ", stalled: "‖ ", lost: "✕ ", ended: "– ", "not told": "? " };
const serverWords = { linked: ["connected", ""], lost: ["not connected", ", dials again"], ended: ["lost", ", goes on without it"] };

// wordsOf says how a path is.
function wordsOf(p) {
  let text = stateWords[p.state];
  if (p.state === "stalled") text += " for " + lasting(p.still_s);
  const bad = p.links.filter((l) => l.state === p.state).reduce((n, l) => n + l.n, 0), all = p.links.reduce((n, l) => n + l.n, 0);
  if ((p.state === "lost" || p.state === "opening") && bad < all) text = `${bad} of ${all} ${text}`;
  return (p.past ? "was " : "") + text;
}

// serverState says how a site's connection with the server is.
const serverState = (l) => (l.past ? "was " : "") + serverWords[l.state][0] + (l.since ? ` since ${clock(l.since)}` : "") + serverWords[l.state][1];

// shortly names what carries a path, whatever state it is in.
function shortly(p) {
  const by = new Map();
  for (const l of p.links) {
    const what = l.what === "agents" ? "through agents" : l.channel ? "channel " + l.what : l.what;
    if (what) by.set(what, (by.get(what) || 0) + l.n);
  }
  return [...by].map(([what, n]) => (what.startsWith("channel ") && n === 1 ? what : `${what} ${n}`)).join(", ");
}

// carriedBy names what carries a path.
const carriedBy = (p) => p.links.map((l) => `${l.channel ? "channel " + l.what : l.what === "agents" ? "through agents" : l.what || "no transport yet"}${l.channel && l.n === 1 ? "" : " " + l.n}${l.state === "linked" ? "" : " " + stateWords[l.state]}`).join(", ");

// goes is how many bytes each second go each way; null: not known yet.
function goes(by, p) {
  const old = state.before && state.before.paths.get(nameOf(by, p));
  return [0, 1].map((i) => (old ? rate(p.bytes[i], old.bytes[i]) : null));
}

const sum = (pair) => (pair[0] || 0) + (pair[1] || 0);

// underWayOf says what of a path has not arrived.
function underWayOf(p) {
  const parts = [];
  if (sum(p.under_way)) parts.push(`${amount(sum(p.under_way), "B")} under way`);
  if (p.unknown) parts.push(`unknown of ${p.unknown}`);
  return parts.join(", ");
}

function procsIn(ranks) {
  const counts = new Map();
  for (const r of ranks) counts.set(r.state, (counts.get(r.state) || 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([name, n]) => `${n} ${name}`).join(", ") || "no procs told";
}

// nodesOf are the boxes that are drawn.
function nodesOf(job) {
  const nodes = [];
  job.sites.forEach((s, i) => {
    const own = job.ranks.filter((r) => r.site === i);
    if (job.draw_by === "host") {
      s.hosts.forEach((h) => nodes.push({
        id: "host " + h.rank, title: h.name, more: "site " + s.name, what: h.problem || procsIn(own.filter((r) => r.host === h.rank || s.hosts.length === 1)),
        wrong: !!h.problem || !!(s.problem && s.hosts.length === 1), act: () => explainHosts(h.rank),
      }));
      return;
    }
    nodes.push({
      id: "site " + i, title: s.name, more: `${s.hosts.length === 1 ? s.hosts[0].name : s.hosts.length + " hosts"}, ${own.length} procs`,
      what: s.problem || (s.own ? procsIn(own) : "another MPI"), wrong: !!s.problem, act: () => explainSite(i),
    });
  });
  job.servers.forEach((x, i) => {
    const bad = x.sites.filter((l) => l.state !== "linked");
    nodes.splice(i, 0, {
      id: "server " + i, title: "server " + x.address, more: x.where || "impi-server", server: true, wrong: bad.length > 0, act: () => explainServer(i),
      what: bad.length ? `${bad.length} of ${x.sites.length} sites without it` : `${x.sites.length} of ${job.sites.length} sites connected`,
    });
  });
  return nodes;
}

// linesOf are the lines between these boxes.
function linesOf(job) {
  const lines = [];
  const ways = job.draw_by === "host" ? job.host_paths : job.paths;
  for (const p of ways) {
    if (p.a === p.b) continue;
    const now = goes(job.draw_by, p);
    const speed = now[0] === null && now[1] === null ? "" : amount(sum(now), "B/s");
    const rows = [[shortly(p), speed || amount(sum(p.bytes), "B")].filter(Boolean).join(" · ")];
    const left = sum(p.under_way) ? amount(sum(p.under_way), "B") + " under way" : "";
    if (p.state !== "linked" || left) rows.push([p.state === "linked" ? "" : (stateSigns[p.state] || "") + wordsOf(p), left].filter(Boolean).join(", "));
    lines.push({
      id: nameOf(job.draw_by, p), from: `${job.draw_by} ${p.a}`, to: `${job.draw_by} ${p.b}`, state: p.state, weight: speed ? sum(now) : 0, rows,
      ends: `${placeName(job.draw_by, p.a)} – ${placeName(job.draw_by, p.b)}`, told: `path between ${placeName(job.draw_by, p.a)} and ${placeName(job.draw_by, p.b)}: ${wordsOf(p)}; ${rows.join("; ")}`,
      act: () => (job.draw_by === "host" ? explainHosts(p.a, p.b) : explainPath(p.a, p.b)),
    });
  }
  job.servers.forEach((x, i) => x.sites.forEach((l) => {
    const s = job.sites[l.site];
    const words = serverState(l);
    lines.push({
      id: `server ${i} ${l.site}`, from: "server " + i, to: job.draw_by === "host" ? `host ${(s.hosts[0] || {}).rank}` : "site " + l.site, state: l.state, weight: 0, server: true,
      rows: l.state === "linked" ? [] : [stateSigns[l.state] + words], ends: `server – ${s.name}`, told: `server and site ${s.name}: ${words}`, act: () => explainServer(i),
    });
  }));
  return lines;
}

function placeName(by, k) {
  if (by === "site") return (state.job.sites[k] || {}).name || "?";
  for (const s of state.job.sites) for (const h of s.hosts) if (h.rank === k) return `host ${k} (${h.name})`;
  return "host " + k;
}

function svgElement(name, attributes, text) {
  const e = document.createElementNS(svgName, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text) e.textContent = text;
  return e;
}

const shortened = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

// arrange puts the boxes on an ellipse, on which no line crosses another box, the first one on top.
function arrange(nodes, width) {
  const height = nodes.length <= 3 ? 260 : nodes.length <= 6 ? 380 : nodes.length <= 10 ? 500 : 740;
  const rx = Math.min((width - box.width) / 2 - 4, 560), ry = (height - box.height) / 2 - 4;
  const turn = nodes.length === 2 ? Math.PI : -Math.PI / 2;
  const places = new Map();
  nodes.forEach((n, i) => {
    const angle = turn - (2 * Math.PI * i) / nodes.length;
    places.set(n.id, { x: width / 2 + rx * Math.cos(angle), y: height / 2 + ry * Math.sin(angle) });
  });
  return { places, height };
}

// meets reports whether a line between two places goes through a rectangle.
function meets(a, b, r) {
  let from = 0, to = 1;
  for (const [d, low, high] of [[b.x - a.x, r.left - a.x, r.right - a.x], [b.y - a.y, r.top - a.y, r.bottom - a.y]]) {
    if (d === 0) {
      if (low > 0 || high < 0) return false;
      continue;
    }
    from = Math.max(from, Math.min(low / d, high / d));
    to = Math.min(to, Math.max(low / d, high / d));
  }
  return from <= to;
}

const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

// The parts of a line at which its words may be, the best first, and how far from it towards the
// middle of the map, where boxes leave no room on it. Such words name the ends of the line.
const spots = [0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.27, 0.73, 0.22, 0.78];
const asides = [0, 45, 80, 120, 160, 200];
// What is worse than words far from the middle of their line, or than those beside it.
const worse = { line: 2, words: 50, box: 50, aside: 5, asideLine: 0.1 };

const rowsAt = (l, aside) => (aside && l.rows.length ? [`${l.ends}: ${l.rows[0]}`, ...l.rows.slice(1)] : l.rows);

// wordPlaces finds where the words of each line are: clear of boxes and of other words, and where
// that can be of other lines. Widths are rounded, so that words keep their place when a number grows.
function wordPlaces(lines, places, width, height) {
  const boxes = [...places.values()].map((p) => ({ left: p.x - box.width / 2, right: p.x + box.width / 2, top: p.y - box.height / 2, bottom: p.y + box.height / 2 }));
  const found = new Map(), words = [];
  for (const l of [...lines].sort((a, b) => (b.state !== "linked") - (a.state !== "linked"))) {
    const a = places.get(l.from), b = places.get(l.to), high = 9 * l.rows.length + 2;
    let best = null;
    for (const aside of asides) {
      const rows = rowsAt(l, aside), half = 20 * Math.ceil((Math.max(0, ...rows.map((row) => Math.min(row.length, mostWords))) * 7) / 40);
      spots.forEach((k, i) => {
        const x0 = a.x + (b.x - a.x) * k, y0 = a.y + (b.y - a.y) * k, far = Math.hypot(width / 2 - x0, height / 2 - y0) || 1;
        const x = Math.min(Math.max(x0 + ((width / 2 - x0) * aside) / far, half), width - half), y = y0 + ((height / 2 - y0) * aside) / far;
        const r = { left: x - half, right: x + half, top: y - high, bottom: y + high };
        const crossed = lines.filter((o) => o !== l && meets(places.get(o.from), places.get(o.to), r)).length;
        const cost = i / spots.length + (aside ? worse.aside + aside / 10 + worse.asideLine * crossed : Math.min(worse.line * crossed, worse.aside)) +
          worse.box * boxes.filter((o) => overlap(o, r)).length + worse.words * words.filter((o) => overlap(o, r)).length;
        if (!best || cost < best.cost) best = { cost, x, y, r, rows };
      });
      if (best.cost < worse.box) break;
    }
    if (l.rows.length && (l.state !== "linked" || lines.length <= allLabels)) words.push(best.r);
    found.set(l.id, best);
  }
  return found;
}

// part makes an element that acts by mouse and keys. What it is for may change at each look.
function part(name) {
  const g = svgElement("g", { class: name, tabindex: 0, role: "button" });
  g.addEventListener("click", () => g.act());
  g.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" && e.key !== " ") return;
    e.preventDefault(); e.stopPropagation();
    g.act();
  });
  return g;
}

function drawTopology() {
  const job = state.job, svg = $("topology");
  const nodes = nodesOf(job);
  const few = nodes.length > 1 && nodes.length <= mostNodes;
  svg.toggleAttribute("hidden", !few);
  $("ways").hidden = !few;
  if (!few) return;
  const width = Math.max(520, svg.parentElement.clientWidth);
  const { places, height } = arrange(nodes, width);
  const lines = linesOf(job).filter((l) => places.has(l.from) && places.has(l.to));
  const key = JSON.stringify([width, nodes.map((n) => n.id), lines.map((l) => l.id)]);
  if (drawn.key !== key) { // else what has the focus keeps it
    drawn.key = key;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.style.height = height + "px";
    drawn.elements = new Map([...lines.map((l) => [l.id, makeLine()]), ...nodes.map((n) => [n.id, makeNode(n, places.get(n.id))])]);
    const all = [...drawn.elements.values()]; // words are above all lines
    svg.replaceChildren(...all.slice(0, lines.length), ...all.slice(0, lines.length).map((g) => g.words), ...all.slice(lines.length));
  }
  const most = lines.reduce((n, l) => Math.max(n, l.weight), 0);
  svg.setAttribute("class", lines.length > allLabels ? "crowded" : "");
  const at = wordPlaces(lines, places, width, height);
  for (const l of lines) showLine(drawn.elements.get(l.id), l, places.get(l.from), places.get(l.to), at.get(l.id), most);
  for (const n of nodes) showNode(drawn.elements.get(n.id), n);
  const states = [...new Set(["linked", ...lines.filter((l) => !l.server).map((l) => l.state)])], served = job.servers.length > 0;
  update($("ways"), [states, served], () => [...states.map((s) => sample(s, stateWords[s])), element("span", {}, "the thicker, the more bytes each second"),
    ...(served ? [sample("linked server", "connected with the job's server")] : [])]);
}

// sample shows how a line of a class is drawn, with what it means.
function sample(name, meaning) {
  const svg = svgElement("svg", { class: "sample", width: 34, height: 10, "aria-hidden": true });
  const g = svgElement("g", { class: "path " + name.replace("not told", "not-told") });
  g.append(svgElement("line", { class: "ink", x1: 0, x2: 34, y1: 5, y2: 5, "stroke-width": name.endsWith("server") ? 1.5 : 3 }));
  svg.append(g);
  return element("span", {}, svg, " " + meaning);
}

// makeLine makes a line, and the element of its words, which are seen as those of the line: they act
// as it does, and are there with the mouse or the focus on it.
function makeLine() {
  const g = part("path");
  g.append(svgElement("title", {}), svgElement("line", { class: "reach" }), svgElement("line", { class: "ink" }));
  g.words = svgElement("g", { class: "words", "aria-hidden": true });
  g.words.append(svgElement("text", { "text-anchor": "middle" }));
  g.words.addEventListener("click", () => g.act());
  for (const [event, on] of [["pointerenter", true], ["focus", true], ["pointerleave", false], ["blur", false]]) {
    g.addEventListener(event, () => g.words.classList.toggle("asked", on || document.activeElement === g));
  }
  return g;
}

function showLine(g, l, a, b, at, most) {
  g.act = l.act;
  const how = `${l.state.replace(" ", "-")}${l.server ? " server" : ""}${l.state === "linked" ? "" : " bad"}`;
  g.setAttribute("class", "path " + how);
  g.words.setAttribute("class", `words ${how}${g.words.classList.contains("asked") ? " asked" : ""}`);
  g.setAttribute("aria-label", l.told);
  g.dataset.path = g.words.dataset.of = l.id;
  const [title, reach, ink] = g.children;
  title.textContent = l.told;
  for (const e of [reach, ink]) for (const [k, v] of Object.entries({ x1: a.x, y1: a.y, x2: b.x, y2: b.y })) e.setAttribute(k, v.toFixed(1));
  ink.setAttribute("stroke-width", l.server ? 1.5 : (2 + (most > 0 ? 6 * Math.log(l.weight + 1) / Math.log(most + 1) : 0)).toFixed(1));
  g.words.firstChild.replaceChildren(...at.rows.map((row, i) => svgElement("tspan", { x: at.x.toFixed(1), y: (at.y + 4 + 18 * (i - (at.rows.length - 1) / 2)).toFixed(1), class: i || l.server ? "state" : "" }, shortened(row, mostWords))));
}

function makeNode(n, at) {
  const g = part("node" + (n.server ? " server" : ""));
  const left = at.x - box.width / 2, top = at.y - box.height / 2;
  g.append(svgElement("title", {}), svgElement("rect", { x: left, y: top, width: box.width, height: box.height, rx: n.server ? 16 : 5 }));
  for (const [i, name] of ["title", "more", "what"].entries()) g.append(svgElement("text", { x: left + box.width / 2, y: top + 18 + 16 * i, "text-anchor": "middle", class: name }));
  return g;
}

function showNode(g, n) {
  g.act = n.act;
  g.classList.toggle("wrong", n.wrong);
  g.dataset.node = n.id;
  const told = `${n.title}, ${n.more}: ${n.what}`;
  g.setAttribute("aria-label", told);
  g.children[0].textContent = told;
  [n.title, n.more, (n.wrong ? "✕ " : "") + n.what].forEach((text, i) => { g.children[2 + i].textContent = shortened(text, i ? 26 : 23); });
}

// pathText is what the panel says of a path.
function pathText(by, p) {
  const now = goes(by, p);
  const way = (from, to, i) => `${placeName(by, from)} → ${placeName(by, to)}: ${amount(p.messages[i])} messages, ${amount(p.bytes[i], "B")}` +
    (now[i] === null ? "" : `, ${amount(now[i], "B/s")} now`) + (p.under_way[i] ? `, ${amount(p.under_way[i], "B")} under way` : "");
  const resumes = p.links.reduce((n, l) => n + (l.resumes || 0), 0);
  return [
    `${wordsOf(p)}: ${carriedBy(p)}`, way(p.a, p.b, 0), p.a === p.b ? "" : way(p.b, p.a, 1),
    resumes ? resumes + " resumes" : "", p.unknown ? `What is under way is not known of ${p.unknown} links.` : "", ...p.notes.map((n) => "lost: " + n),
  ].filter(Boolean).join("\n");
}

// explainPath shows what is known of the path between two sites, with buttons for those of their hosts.
function explainPath(a, b) {
  const job = state.job, p = job.paths.find((x) => x.a === a && x.b === b);
  if (!p) return;
  const siteOf = new Map(job.sites.flatMap((s, i) => s.hosts.map((h) => [h.rank, i])));
  const hosts = job.host_paths.filter((x) => siteOf.get(x.a) === a && siteOf.get(x.b) === b);
  const fewer = hosts.length ? "" : "\n\nOf a large job paths between hosts are listed here if they do not work. The matrix has all.";
  panel(`${job.sites[a].name} – ${job.sites[b].name}`, hosts.map((x) => choice(`hosts ${x.a} and ${x.b}: ${wordsOf(x)}`, false, () => explainHosts(x.a, x.b))), pathText("site", p) + fewer);
}

function explainSite(i) {
  const s = state.job.sites[i], ranks = state.job.ranks.filter((r) => r.site === i);
  const server = state.job.servers.flatMap((x) => x.sites.filter((l) => l.site === i).map((l) => `server ${x.address}: ${serverLine(l)}`));
  panel("site " + s.name, s.hosts.map((h) => choice(`host ${h.rank}: ${h.name}${h.problem ? " ✕" : ""}`, false, () => explainHosts(h.rank))),
    [s.problem || s.phase, procsIn(ranks), ...server, ...s.plugins.map((p) => `plugin ${p.name}${p.host ? " on " + p.host : ""}: ${p.state}`)].filter(Boolean).join("\n"));
}

const serverLine = (l) => serverState(l) + (l.why ? ": " + l.why : "");

function explainServer(i) {
  const x = state.job.servers[i];
  const silent = state.job.sites.filter((s, k) => s.own && !x.sites.some((l) => l.site === k)).map((s) => `site ${s.name}: not told`);
  panel("server " + x.address, [], [x.where || "impi-server, a process of its own", ...x.sites.map((l) => `site ${state.job.sites[l.site].name}: ${serverLine(l)}`), ...silent].join("\n"));
}

// drawBetween lists how sites are linked among themselves and with each other, and how much goes there.
function drawBetween() {
  const { paths, sites } = state.job;
  $("between").hidden = !paths.length;
  $("between").tBodies[0].replaceChildren(...paths.map((p) => {
    const now = goes("site", p);
    return element("tr", {},
      element("td", {}, p.a === p.b ? `within ${sites[p.a].name}` : `${sites[p.a].name} – ${sites[p.b].name}`),
      element("td", { class: p.state === "linked" || p.state === "ended" ? "" : "bad" }, (stateSigns[p.state] || "") + wordsOf(p)),
      element("td", {}, carriedBy(p)),
      element("td", { class: "n" }, amount(sum(p.bytes), "B")), element("td", { class: "n" }, now[0] === null && now[1] === null ? "" : amount(sum(now), "B/s")),
      element("td", { class: "n" }, underWayOf(p) || "none"));
  }));
}
