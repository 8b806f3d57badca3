// The page asks its server each second for all that it shows (see model.go), and draws it anew.
// Names and texts are of programs and of other sites: they become text nodes only, never markup.
"use strict";

const every = 1000;
const ended = "the job has ended: this is what was seen last";
const gone = "nothing answers here any more: the job is over, or impi-node ui was ended";
const views = ["map", "matrix", "procs", "events", "log"];
const $ = (id) => document.getElementById(id);
const state = {
  view: "map", model: null, job: null, before: null, // before: cells and ranks of the look before, for rates
  offered: [], paused: false, lost: 0, at: [0, 1], sort: "rank", down: false,
  awaited: "", end: null, // the ID of the job whose end is awaited, and how one has ended
  turn: 0, back: null, // questions in the panel so far, and what had the focus before
};

// element makes an element with attributes and children; children that are strings become text.
function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v !== null && v !== undefined) e.setAttribute(k, v);
  }
  e.append(...children);
  return e;
}

// amount is quantity.Text of the Go code.
function amount(n, unit = "") {
  if (n === null || n === undefined || Number.isNaN(n)) return "";
  const steps = ["", "k", "M", "G", "T", "P"];
  let i = 0;
  while (n >= 999.5 && i < steps.length - 1) { n /= 1000; i++; }
  return (i === 0 ? String(Math.round(n)) : n.toFixed(n < 9.995 ? 2 : n < 99.95 ? 1 : 0)) + (unit || steps[i] ? " " : "") + steps[i] + unit;
}

function lasting(s) {
  if (s < 1) return "";
  if (s < 120) return s.toFixed(0) + " s";
  if (s < 7200) return (s / 60).toFixed(0) + " min";
  return (s / 3600).toFixed(1) + " h";
}

const clock = (t) => new Date(t).toLocaleTimeString([], { hour12: false });

// look asks the server and shows the answer.
async function look() {
  if (!state.paused) {
    try {
      const answer = await fetch("api/job", { cache: "no-store" });
      if (!answer.ok) throw new Error(await answer.text());
      take(await answer.json());
      state.lost = 0;
    } catch (e) {
      state.lost++;
      live(e instanceof TypeError ? (state.job && endOf(state.job).length ? ended : gone) : e.message, true);
      if (e instanceof TypeError) past("unknown");
    }
  }
  setTimeout(look, every);
}

function live(text, lost) {
  $("live").textContent = text;
  $("live").className = lost ? "lost" : "";
}

function take(model) {
  const jobs = model.jobs;
  let job = jobs[0];
  if (state.job) {
    const same = jobs.filter((j) => j.name === state.job.name);
    job = same.find((j) => j.id === state.job.id) || (state.job.id || state.job.past ? undefined : same[0]); // one that starts has no ID yet
  }
  offer(jobs, job);
  if (!job) {
    live(state.job ? "the job is over: this is what was seen last" : "no job of yours runs on this machine", true);
    past("ended");
    return;
  }
  const old = state.job;
  if (old && old.id === job.id) state.before = { at: state.model.at, ranks: new Map(old.ranks.map((r) => [r.rank, r])), cells: cellsOf(old), paths: pathsOf(old) };
  state.model = model;
  state.job = job;
  live(clock(model.at), false);
  draw();
  if (job.id && state.awaited !== job.id) awaitEnd(state.awaited = job.id);
}

// awaitEnd asks how a job ends until it does: its nodes can say that only when they are about to end.
async function awaitEnd(id) {
  while (state.awaited === id) {
    const asked = Date.now();
    try {
      const answer = await fetch(`api/ending?job=${encodeURIComponent(id)}`, { cache: "no-store" });
      const end = answer.ok ? await answer.json() : null;
      if (end) {
        state.end = { id, at: new Date().toISOString(), level: end.failure ? "error" : "info", site: end.site, from: "impi-node", event: true, text: "the job has ended: " + (end.failure || "in order") };
        if (state.awaited === id) draw();
        return;
      }
    } catch { /* its server is gone; look says that */ }
    if (Date.now() - asked < every) await new Promise((done) => setTimeout(done, every)); // else it was told to ask again
  }
}

// endOf is how the job that is shown has ended, as a line of its log; none if that is not known.
const endOf = (job) => (state.end && state.end.id === job.id ? [state.end] : []);
const logOf = (job) => [...job.log, ...endOf(job)];

// past makes what is shown what was: nobody says any more how it is.
function past(how) {
  const job = state.job;
  if (!job || job.past) return;
  const over = (s) => s === "ended" || s === "finished" || s === "lost";
  const old = (x) => ({ ...x, past: true });
  state.job = {
    ...job, past: true, deadlock: null, problems: [],
    ranks: job.ranks.map((r) => (over(r.state) ? r : { ...r, state: how, does: `was ${r.does.startsWith("in ") || r.state !== "blocked" ? "" : "blocked "}${r.does}` })),
    paths: job.paths.map(old), host_paths: job.host_paths.map(old), servers: job.servers.map((s) => ({ ...s, sites: s.sites.map(old) })),
    sites: job.sites.map((s) => ({ ...s, phase: s.phase && "was " + s.phase, plugins: s.plugins.map((p) => ({ ...p, state: "was " + p.state })) })),
  };
  state.before = null;
  draw();
}

// offer lists the jobs that can be shown, beside the one that is, even if that is over.
function offer(jobs, job) {
  state.offered = jobs;
  const select = $("job");
  const names = jobs.map((j) => `${j.name} ${j.id}`);
  const values = names.map((_, i) => i);
  if (state.job && !job) {
    names.unshift(`${state.job.name} ${state.job.id} (over)`);
    values.unshift(-1);
  }
  if (select.dataset.names !== names.join("\n")) {
    select.dataset.names = names.join("\n");
    select.replaceChildren(...names.map((name, i) => element("option", { value: values[i] }, name)));
    select.hidden = names.length < 2;
  }
  select.value = String(jobs.indexOf(job));
}

const cellsOf = (job) => new Map(job.matrix.cells.map((c) => [c.from + "," + c.to, c]));

// pathsOf has all paths by their names.
const nameOf = (by, p) => `${by} ${p.a},${p.b}`;
const pathsOf = (job) => new Map([...job.paths.map((p) => [nameOf("site", p), p]), ...job.host_paths.map((p) => [nameOf("host", p), p])]);

// since is the time between the last two looks in seconds.
const since = () => (state.before ? (new Date(state.model.at) - new Date(state.before.at)) / 1000 : 0);

function rate(now, then) {
  const d = since();
  return d > 0 && then !== undefined && now >= then ? (now - then) / d : null;
}

function draw() {
  const job = state.job;
  if (!job) return;
  $("name").replaceChildren(job.name + " ", element("small", {}, job.id));
  document.title = `impi: ${job.name}`;
  const alarm = [];
  if (job.deadlock) {
    const c = job.deadlock.cycle, jobs = job.deadlock.jobs;
    const over = jobs ? " of jobs " + jobs.join(" and ") + (job.deadlock.across ? ": " + job.deadlock.across : "") : "";
    alarm.push("Probable deadlock for " + lasting(job.deadlock.for_s) + over + (c && c.length ? ": rank " + c.concat(c[0]).join(" waits for rank ") : ""));
  }
  alarm.push(...job.problems, ...endOf(job).map((l) => l.text));
  $("alarm").hidden = !alarm.length;
  $("alarm").textContent = alarm.join("\n");
  ({ map: drawMap, matrix: drawMatrix, procs: drawProcs, events: drawEvents, log: drawLog })[state.view]();
}

// update replaces the children of an element if its content is another one, so that what the mouse
// is over and what has the focus stays.
function update(parent, key, make) {
  const text = JSON.stringify(key);
  if (parent.dataset.key === text) return;
  parent.dataset.key = text;
  parent.replaceChildren(...make());
}

function drawMap() {
  const job = state.job;
  const by = new Map();
  let agents = 0, resumes = 0;
  for (const l of job.paths.flatMap((p) => p.links)) {
    resumes += l.resumes || 0;
    if (l.what === "agents") agents += l.n;
    else if (l.state === "linked" && !l.channel) by.set(l.what, (by.get(l.what) || 0) + l.n);
  }
  const hosts = job.sites.reduce((n, s) => n + s.hosts.length, 0);
  $("sum").textContent = [
    `${job.sites.length} sites, ${hosts} hosts, ${job.ranks.length} procs`,
    [...by].map(([t, n]) => `${n} links by ${t}`).join(", "),
    agents ? `${agents} pairs through agents` : "",
    resumes ? `${resumes} resumes` : "",
    job.worlds ? `${job.worlds} links to other jobs` : "",
    ...job.spares.map((s) => `spare site ${s.name} ${s.state}${s.procs ? ` (${s.procs} procs)` : ""}`),
  ].filter(Boolean).join(" · ");
  const many = hosts > 48;
  update($("sites"), [job.sites, job.ranks.map((r) => [r.rank, r.state, r.does])], () => job.sites.map((s, i) => element("div", { class: "site" },
    element("h2", {}, s.name + " ", element("small", {}, s.problem || (s.own ? s.phase || "does not answer" : "another MPI"))),
    element("div", { class: "hosts" + (many ? " many" : "") }, ...s.hosts.map((h) => {
      const ranks = job.ranks.filter((r) => r.site === i && (r.host === h.rank || s.hosts.length === 1));
      return element("div", { class: "host" + (h.problem ? " wrong" : "") + (ranks.length > 128 ? " large" : ""), title: h.problem || `host ${h.rank}, ${h.name}` },
        element("button", { class: "name", onclick: () => explainHosts(h.rank) }, h.name),
        element("div", { class: "ranks" }, ...ranks.map((r) => element("i", {
          class: r.state, title: `rank ${r.rank}: ${r.does}`, "data-rank": r.rank, onclick: () => explain(r.rank),
        }))));
    })),
    element("ul", { class: "plugins" }, ...s.plugins.map((p) => element("li", { class: /^(was )?healthy$/.test(p.state) ? "" : "bad" },
      `plugin ${p.name}${p.host ? " on " + p.host : ""}: ${p.state}, ${p.links} links made${p.note ? ", " + p.note : ""}`))))));
  drawTopology();
  drawBetween();
  const counts = new Map();
  for (const r of job.ranks) counts.set(r.state, (counts.get(r.state) || 0) + 1);
  $("states").replaceChildren(...[...counts].sort().map(([name, n]) => element("span", {}, element("i", { class: name }), `${n} ${name}`)));
}

// The matrix is drawn on a canvas: a row for who sends, a column for who receives.
const faintest = 0.3; // of the least value, so that it does not look like none
const plot = { side: 0, size: 0, left: 44, top: 22, max: 0 };

function metricOf(c) {
  const metric = $("metric").value;
  if (metric !== "rate") return c[metric] || 0;
  const old = state.before && state.before.cells.get(c.from + "," + c.to);
  return (old && rate(c.bytes, old.bytes)) || 0;
}

function drawMatrix() {
  const { matrix } = state.job;
  const canvas = $("cells");
  plot.size = matrix.size;
  const room = Math.min(document.documentElement.clientWidth - 80, innerHeight - 240);
  plot.side = Math.max(2, Math.min(matrix.size > 8 ? 28 : 48, Math.floor(room / Math.max(1, matrix.size))));
  const width = plot.left + plot.side * plot.size + 2, height = plot.top + plot.side * plot.size + 2;
  const dots = devicePixelRatio || 1;
  if (canvas.width !== width * dots || canvas.height !== height * dots) {
    canvas.width = width * dots; canvas.height = height * dots;
    canvas.style.width = width + "px"; canvas.style.height = height + "px";
  }
  const g = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const low = style.getPropertyValue("--cell0").split(" ").map(Number), high = style.getPropertyValue("--cell1").split(" ").map(Number);
  g.setTransform(dots, 0, 0, dots, 0, 0);
  g.clearRect(0, 0, width, height);
  g.fillStyle = `rgb(${low})`;
  g.fillRect(plot.left, plot.top, plot.side * plot.size, plot.side * plot.size);
  const values = matrix.cells.map(metricOf);
  plot.max = values.reduce((a, b) => Math.max(a, b), 0);
  const least = values.reduce((a, b) => (b > 0 ? Math.min(a, b) : a), plot.max);
  const span = Math.log(plot.max + 1) - Math.log(least + 1);
  const gap = plot.side > 6 ? 1 : 0;
  matrix.cells.forEach((c, i) => {
    if (values[i] <= 0) return;
    const x = faintest + (1 - faintest) * Math.max(0, Math.min(1, span ? (Math.log(values[i] + 1) - Math.log(least + 1)) / span : 1));
    g.fillStyle = `rgb(${low.map((v, k) => Math.round(v + (high[k] - v) * x))})`;
    g.fillRect(plot.left + c.to * plot.side, plot.top + c.from * plot.side, plot.side - gap, plot.side - gap);
  });
  g.fillStyle = style.getPropertyValue("--soft");
  g.font = "11px system-ui";
  const step = Math.ceil(28 / plot.side);
  for (let k = 0; k < plot.size; k += step) {
    g.textAlign = "center"; g.fillText(String(k), plot.left + (k + 0.5) * plot.side, plot.top - 6);
    g.textAlign = "right"; g.fillText(String(k), plot.left - 6, plot.top + (k + 0.5) * plot.side + 4);
  }
  state.at = state.at.map((v) => Math.max(0, Math.min(v, plot.size - 1)));
  const [row, column] = state.at;
  if (row < plot.size && column < plot.size) {
    g.strokeStyle = style.getPropertyValue("--fault");
    g.lineWidth = 2;
    g.strokeRect(plot.left + column * plot.side - 1, plot.top + row * plot.side - 1, plot.side + 1, plot.side + 1);
  }
  tellCell();
  const unit = { bytes: "B", rate: "B/s", half_trip_us: "µs", messages: "" }[$("metric").value];
  const ramp = element("span", { class: "ramp" });
  ramp.style.background = `linear-gradient(90deg, rgb(${low}), rgb(${high}))`;
  $("scale").replaceChildren(
    `rows send, columns receive; ${matrix.by === "host" ? "hosts" : "ranks"}`, ramp, plot.max ? `up to ${amount(plot.max, unit)}, logarithmic` : "nothing yet",
    element("span", {}, matrix.left_out ? `${matrix.left_out} pairs are left out` : ""));
}

// toldOf is what is known of a cell of the matrix.
const toldOf = (c) => c ? [
  `${amount(c.messages)} messages, ${amount(c.bytes, "B")}`, c.pairs ? `${c.pairs} pairs of procs` : "", c.transport ? "by " + c.transport : c.state || "",
  c.half_trip_us ? c.half_trip_us.toFixed(1) + " µs" : "", c.resumes ? c.resumes + " resumes" : "",
].filter(Boolean).join(", ") : "nothing is known to have been sent";

function tellCell() {
  const [from, to] = state.at;
  const { matrix } = state.job;
  const itself = matrix.by === "rank" && from === to;
  $("cell").textContent = itself ? `rank ${from}: itself` : `${matrix.by} ${from} → ${to}: ${toldOf(matrix.cells.find((x) => x.from === from && x.to === to))}`;
}

function cellAt(event) {
  const box = $("cells").getBoundingClientRect();
  const column = Math.floor((event.clientX - box.left - plot.left) / plot.side), row = Math.floor((event.clientY - box.top - plot.top) / plot.side);
  return row >= 0 && column >= 0 && row < plot.size && column < plot.size ? [row, column] : null;
}

const columns = [
  ["rank", "rank", true, (r) => r.rank], ["pid", "pid", true, (r) => r.pid || null],
  ["site", "site", false, (r) => state.job.sites[r.site].name], ["host", "host", false, hostOf],
  ["state", "state", false, (r) => r.state], ["blocked", "for", true, (r) => r.blocked_s],
  ["sent", "sent/s", true, (r) => rateOf(r, "sent")], ["received", "received/s", true, (r) => rateOf(r, "received")],
  ["messages", "messages/s", true, (r) => rateOf(r, "messages")], ["slept", "asleep", true, (r) => rateOf(r, "slept_s")],
  ["does", "does", false, (r) => r.does],
];

// hostOf is the address of a proc's host.
function hostOf(r) {
  const { hosts } = state.job.sites[r.site];
  const host = hosts.find((h) => h.rank === r.host) || (hosts.length === 1 ? hosts[0] : null);
  return host ? host.name : "?";
}

function rateOf(r, field) {
  const old = state.before && state.before.ranks.get(r.rank);
  return old ? rate(r[field], old[field]) : null;
}

function drawProcs() {
  const head = $("ranks").tHead;
  if (!head.rows.length) {
    head.append(element("tr", {}, ...columns.map(([id, title, number]) => element("th", { class: number ? "n" : "" },
      element("button", { "data-sort": id, onclick: () => { state.down = state.sort === id ? !state.down : number && id !== "rank"; state.sort = id; drawProcs(); } }, title)))));
  }
  for (const b of head.querySelectorAll("button")) b.parentElement.setAttribute("aria-sort", b.dataset.sort !== state.sort ? "none" : state.down ? "descending" : "ascending");
  const wanted = $("filter").value.toLowerCase();
  const of = columns.find((c) => c[0] === state.sort)[3];
  const rows = state.job.ranks.filter((r) => !wanted || `${r.rank} ${state.job.sites[r.site].name} host ${r.host} ${hostOf(r)} ${r.state} ${r.does}`.toLowerCase().includes(wanted));
  rows.sort((a, b) => {
    const x = of(a), y = of(b);
    const order = typeof x === "string" ? x.localeCompare(y) : (x ?? -1) - (y ?? -1);
    return (state.down ? -order : order) || a.rank - b.rank;
  });
  const most = 500;
  $("shown").textContent = rows.length > most ? `${most} of ${rows.length} are shown: filter or sort` : `${rows.length} of ${state.job.ranks.length}`;
  const body = $("ranks").tBodies[0];
  body.replaceChildren(...rows.slice(0, most).map((r) => element("tr", { "data-rank": r.rank, onclick: () => explain(r.rank) },
    ...columns.map(([id, , number, get]) => {
      const v = get(r);
      const text = v === null ? "" : id === "blocked" ? lasting(v) : id === "slept" ? Math.min(100, v * 100).toFixed(0) + " %" :
        id === "sent" || id === "received" ? amount(v, "B") : id === "messages" ? amount(v) : String(v);
      return element("td", { class: id === "does" ? "wide" : number ? "n" : "" }, ...(id === "state" ? [element("i", { class: v }), text] : [text]));
    }))));
}

function drawEvents() {
  const events = logOf(state.job).filter((l) => l.event);
  const svg = $("time");
  const width = svg.clientWidth || 800, height = 60;
  const now = Math.max(new Date(state.model.at).getTime(), ...endOf(state.job).map((l) => new Date(l.at).getTime()));
  const first = state.job.log.length ? new Date(state.job.log[0].at).getTime() : now - 60000;
  const x = (t) => 10 + ((t - first) / Math.max(1, now - first)) * (width - 20);
  const node = (name, attributes, text) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    if (text) e.textContent = text;
    return e;
  };
  svg.replaceChildren(
    node("line", { x1: 10, x2: width - 10, y1: 38, y2: 38 }),
    node("text", { x: 10, y: 54 }, clock(first)), node("text", { x: width - 10, y: 54, "text-anchor": "end" }, clock(now)),
    ...events.map((l) => {
      const c = node("circle", { cx: x(new Date(l.at).getTime()), cy: l.level === "error" ? 14 : l.level === "warn" ? 24 : 34, r: 4, class: l.level });
      c.append(node("title", {}, `${clock(l.at)} ${l.text}`));
      return c;
    }));
  const equal = new Map(); // the last of each text, and how often there was one
  for (const l of events.slice().reverse()) {
    const key = JSON.stringify([l.level, l.site, l.host, l.text]);
    if (equal.has(key)) equal.get(key).times++;
    else equal.set(key, { ...l, times: 1 });
  }
  update($("faults").tBodies[0], events, () => events.length ? [...equal.values()].map((l) => element("tr", {},
    element("td", {}, clock(l.at)), element("td", { class: l.level }, l.level), element("td", {}, placeOf(l)),
    element("td", { class: "wide" }, l.text + (l.times > 1 ? ` (${l.times} times)` : ""))))
    : [element("tr", {}, element("td", {}, "No fault so far. Here are the warnings and errors of all nodes, and links that were resumed."))]);
}

// placeOf is where a line was logged.
const placeOf = (l) => [state.job.sites.length > 1 ? l.site : "", l.host].filter(Boolean).join(" ");

function drawLog() {
  const wanted = $("grep").value.toLowerCase();
  const lines = logOf(state.job).filter((l) => !wanted || `${l.level} ${placeOf(l)} ${l.from} ${l.text}`.toLowerCase().includes(wanted));
  update($("lines"), lines, () => lines.map((l) => element("div", {}, clock(l.at) + " ", element("span", { class: l.level }, l.level.padEnd(5)), ` ${placeOf(l)} ${l.from}: ${l.text}`)));
  if ($("follow").checked) $("lines").scrollTop = $("lines").scrollHeight;
}

// panel shows the panel with a title, buttons of what else can be asked, and a text that may come later.
async function panel(title, buttons, text) {
  const aside = $("explain");
  if (aside.hidden) state.back = document.activeElement;
  aside.hidden = false;
  aside.querySelector("h2").textContent = title;
  $("partners").replaceChildren(...buttons);
  const pre = aside.querySelector("pre");
  const turn = state.turn = state.turn + 1;
  pre.textContent = typeof text === "string" ? text : "…";
  if (!aside.contains(document.activeElement)) aside.focus({ preventScroll: true });
  const told = await text;
  if (state.turn === turn) pre.textContent = told; // nobody has asked for something else meanwhile
}

function closePanel() {
  if ($("explain").hidden) return;
  $("explain").hidden = true;
  if (state.back) state.back.focus({ preventScroll: true }); // where the keys were
}

const choice = (text, chosen, onclick) => element("button", { "aria-pressed": String(chosen), onclick }, text);

// why asks why two ranks or hosts are linked as they are.
async function why(by, a, b) {
  try {
    const answer = await fetch(`api/explain?job=${encodeURIComponent(state.job.id)}&by=${by}&a=${a}&b=${b}`);
    if (!answer.ok) throw new Error(await answer.text());
    return await answer.json();
  } catch (e) {
    return { text: e instanceof TypeError ? gone : e.message, pairs: [] };
  }
}

const dedent = (text) => text.replace(/^ {4}/gm, "");

// traffic is what went from a to b and back, as the matrix has it.
function traffic(name, a, b) {
  const cells = cellsOf(state.job);
  return [[a, b], [b, a]].filter(([from, to], i) => i === 0 || from !== to).map(([from, to]) => `${name} ${from} → ${to}: ${toldOf(cells.get(from + "," + to))}`).join("\n");
}

const processOf = (r) => (r.pid ? `process ${r.pid}` : "a process whose number is not told");

// explain shows what is known of a rank, and of its link to another one if there is a second.
function explain(a, b) {
  const job = state.job;
  const r = job.ranks.find((x) => x.rank === a);
  const others = job.matrix.by === "rank" ? job.matrix.cells.filter((c) => c.from === a && c.to !== a).map((c) => c.to) : [];
  const buttons = others.map((to) => choice(`with ${to}`, to === b, () => explain(a, to)));
  if (b === undefined || b === a) {
    panel(`rank ${a}`, buttons, r ? `${r.does}\n${processOf(r)} on host ${hostOf(r)} of site ${job.sites[r.site].name}\n${amount(r.messages)} messages and ${amount(r.sent, "B")} sent, ${amount(r.received, "B")} received` : "");
    return;
  }
  const sums = job.matrix.by === "rank" ? traffic("rank", a, b) + "\n\n" : "";
  panel(`ranks ${a} and ${b}`, buttons, why("rank", a, b).then((x) => sums + dedent(x.text)));
}

// explainHosts does the same for hosts. The buttons lead to their procs, one by one.
async function explainHosts(a, b) {
  const job = state.job;
  const named = (rank) => {
    for (const s of job.sites) for (const h of s.hosts) if (h.rank === rank) return `host ${rank}: ${h.name} of site ${s.name}${h.problem ? ", " + h.problem : ""}`;
    return `host ${rank}`;
  };
  const byHost = job.matrix.by === "host";
  if (b === undefined) {
    const others = byHost ? job.matrix.cells.filter((c) => c.from === a).map((c) => c.to) : job.sites.flatMap((s) => s.hosts.map((h) => h.rank)).filter((h) => h !== a);
    const ranks = job.ranks.filter((r) => r.host === a);
    panel(`host ${a}`, others.map((to) => choice(`with ${to}`, false, () => explainHosts(a, to))),
      named(a) + "\n" + ranks.map((r) => `rank ${r.rank}, ${processOf(r)}: ${r.does}`).join("\n"));
    return;
  }
  const way = job.host_paths.find((p) => p.a === Math.min(a, b) && p.b === Math.max(a, b));
  const head = `${named(a)}\n${a === b ? "" : named(b) + "\n"}${way ? pathText("host", way) + "\n" : ""}${byHost ? traffic("host", a, b) + "\n" : ""}\n`;
  const answer = why("host", a, b);
  await panel(`hosts ${a} and ${b}`, [], answer.then((x) => head + x.text));
  const { pairs } = await answer;
  if ($("explain").querySelector("h2").textContent === `hosts ${a} and ${b}`) {
    $("partners").replaceChildren(...pairs.map(([x, y]) => choice(`ranks ${x} and ${y}`, false, () => explain(x, y))));
  }
}

function explainCell() {
  (state.job.matrix.by === "rank" ? explain : explainHosts)(...state.at);
}

function show(view) {
  state.view = view;
  for (const v of views) $(v).hidden = v !== view;
  for (const b of document.querySelectorAll("[role=tab]")) b.setAttribute("aria-selected", String(b.dataset.view === view));
  draw();
}

const systemDark = matchMedia("(prefers-color-scheme: dark)");

// setTheme follows the system, unless the user has chosen.
function setTheme() {
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* none is kept */ }
  document.documentElement.dataset.theme = chosen || (systemDark.matches ? "dark" : "light");
  if (state.job) draw();
}

function switchTheme() {
  const name = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("theme", name); } catch { /* it is not kept */ }
  document.documentElement.dataset.theme = name;
  if (state.job) draw();
}

function pause() {
  state.paused = !state.paused;
  $("pause").textContent = state.paused ? "Go on" : "Pause";
  if (state.paused) live("paused", false);
}

function key(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || $("help").open) return; // the dialog has its own
  if (event.key === "Escape") { document.activeElement.blur(); closePanel(); return; }
  if (event.key === "Enter" && event.target.id === "filter" && $("ranks").tBodies[0].rows.length) { explain(Number($("ranks").tBodies[0].rows[0].dataset.rank)); return; }
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox") return;
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  if (views[event.key - 1]) show(views[event.key - 1]);
  else if (event.key === "t") switchTheme();
  else if (event.key === "?") $("help").showModal();
  else if (event.key === " " && event.target.tagName !== "BUTTON") pause();
  else if (event.key === "/") (state.view === "log" ? $("grep") : (show("procs"), $("filter"))).focus();
  else if (state.view === "matrix" && state.job && moves[event.key]) {
    state.at = state.at.map((v, i) => Math.max(0, Math.min(plot.size - 1, v + moves[event.key][i])));
    drawMatrix();
  } else if (state.view === "matrix" && state.job && event.key === "Enter" && event.target.tagName !== "BUTTON") explainCell();
  else return;
  event.preventDefault();
}

document.addEventListener("keydown", key);
for (const b of document.querySelectorAll("[role=tab]")) b.addEventListener("click", () => {
  show(b.dataset.view);
  b.blur(); // keys are for the view
  if (b.dataset.view === "matrix") $("cells").focus();
});
$("theme").addEventListener("click", switchTheme);
$("pause").addEventListener("click", pause);
$("keys").addEventListener("click", () => $("help").showModal());
$("close").addEventListener("click", closePanel);
$("metric").addEventListener("change", draw);
$("filter").addEventListener("input", draw);
$("grep").addEventListener("input", draw);
$("cells").addEventListener("mousemove", (e) => { const c = cellAt(e); if (c) { state.at = c; drawMatrix(); } });
$("cells").addEventListener("click", (e) => { const c = cellAt(e); if (c) { state.at = c; explainCell(); } });
$("job").addEventListener("change", () => { state.before = null; state.job = state.offered[$("job").value] || state.job; draw(); });
addEventListener("resize", draw);

systemDark.addEventListener("change", setTheme);
setTheme();
show("map");
look();
