"use strict";
// The charts of a report. Everything is drawn from the JSON in the page; nothing is fetched.
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const COLOURS = ["#1f6feb", "#d9480f", "#2b8a3e", "#862e9c", "#c2255c", "#0b7285", "#e8890c", "#5f3dc4",
  "#66a80f", "#364fc7", "#a61e4d", "#087f5b", "#846358", "#495057", "#1098ad", "#9c36b5"];
const TITLES = {
  goodput_gbps: ["Rates", "goodput, Gb/s"],
  cwnd_packets: ["Windows", "cwnd, packets"],
  fabric_cwnd_packets: ["Windows", "fabric_cwnd, packets"],
  endpoint_cwnd_packets: ["Windows", "endpoint_cwnd, packets"],
  in_flight_packets: ["Windows", "in flight, packets"],
  smoothed_rtt_us: ["RTT and target", "smoothed RTT, us"],
  target_delay_us: ["RTT and target", "target delay, us"],
  pacing_delay_us: ["RTT and target", "pacing delay, us"],
};
const SHOWN_AT_FIRST = 4;
const state = { charts: [], run: 0 };
window.report = state; // for tests and for the curious

function element(tag, attributes, ...children) {
  const node = Object.assign(document.createElement(tag), attributes);
  node.append(...children);
  return node;
}

function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const magnitude = Math.abs(value);
  if (magnitude !== 0 && (magnitude < 1e-3 || magnitude >= 1e7)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

// Shows the values under the cursor, the lines nearest to it first.
function tooltip(xLabel, faults) {
  let tip;
  return { hooks: {
    init: u => { tip = element("div", { className: "tip" }); u.over.appendChild(tip);
      u.over.addEventListener("mouseleave", () => { tip.style.display = "none"; }); },
    setCursor: u => {
      const { left, top, idx } = u.cursor;
      if (idx === null || idx === undefined || left < 0) { tip.style.display = "none"; return; }
      const rows = [];
      u.series.forEach((series, i) => {
        if (i === 0 || !series.show || series.hidden) return;
        let value = u.data[i][idx];
        if (value === null || value === undefined) return;
        rows.push({ series, value, away: Math.abs(u.valToPos(value, "y") - top) });
      });
      rows.sort((a, b) => a.away - b.away);
      tip.replaceChildren(element("div", { textContent: `${xLabel} ${number(u.data[0][idx])}` }),
        ...rows.slice(0, 8).map(row => {
          const mark = element("i"); mark.style.background = row.series.colour;
          return element("div", {}, mark, row.series.label, element("b", { textContent: number(row.value) }));
        }));
      if (rows.length > 8) tip.append(element("div", { textContent: `… ${rows.length - 8} more` }));
      const now = u.data[0][idx];
      const lasting = faults.filter(fault => !fault.instant && fault.from <= now && (fault.to === null || now <= fault.to));
      tip.append(...lasting.slice(0, 4).map(fault => element("div", { className: "fault", textContent: fault.text })));
      tip.style.display = "block";
      const right = left + tip.offsetWidth + 24 > u.over.clientWidth;
      tip.style.left = (right ? Math.max(0, left - tip.offsetWidth - 12) : left + 12) + "px";
      tip.style.top = Math.max(0, Math.min(top, u.over.clientHeight - tip.offsetHeight)) + "px";
    },
  } };
}

// Faults as bands, reroutes as dashed lines, behind the lines of a chart over time.
function faultMarks(faults) {
  return { hooks: { drawClear: u => {
    const { ctx, bbox } = u, right = bbox.left + bbox.width;
    const inside = x => Math.max(bbox.left, Math.min(right, x));
    ctx.save();
    for (const fault of faults) {
      const from = u.valToPos(fault.from, "x", true);
      const to = fault.to === null ? right : u.valToPos(fault.to, "x", true);
      if (from > right || to < bbox.left) continue;
      if (fault.instant) {
        ctx.strokeStyle = "#862e9c"; ctx.lineWidth = 1.5; ctx.setLineDash([6, 4]);
        ctx.beginPath(); ctx.moveTo(from, bbox.top); ctx.lineTo(from, bbox.top + bbox.height); ctx.stroke();
      } else {
        ctx.fillStyle = "rgba(192,57,43,.12)";
        ctx.fillRect(inside(from), bbox.top, Math.max(1, inside(to) - inside(from)), bbox.height);
      }
    }
    ctx.restore();
  } } };
}

// The faults of a recording in the unit of its time axis.
function faultsOf(recording, time) {
  const scale = time.xLabel === "time, ms" ? 1e-3 : 1;
  return recording.faults.map(fault => ({ from: fault.at_us * scale,
    to: fault.until_us === null ? null : fault.until_us * scale, instant: fault.instant, text: fault.text }));
}

function line(label, colour, extra) {
  return Object.assign({ label, colour, stroke: colour, width: 1.25, points: { show: false }, spanGaps: true }, extra);
}

// One chart: `x` values, and lines of { series, values }.
function chart(panel, { x, lines, xLabel, yLabel, bands, sync, scales, axes, faults = [] }) {
  const width = Math.max(300, panel.clientWidth - 26);
  const u = new uPlot({
    width, height: 270, bands: bands || [],
    series: [{ label: xLabel }, ...lines.map(l => l.series)],
    scales: scales || { x: { time: false } },
    axes: axes || [{ label: xLabel, labelSize: 22, size: 40 }, { label: yLabel, labelSize: 22, size: 62,
      values: (_, ticks) => ticks.map(t => t === null ? "" : number(t)) }],
    cursor: { drag: { x: true, y: false }, points: { size: 6 }, ...(sync ? { sync: { key: sync } } : {}) },
    legend: { live: false },
    plugins: [faultMarks(faults), tooltip(xLabel, faults)],
  }, [x, ...lines.map(l => l.values)], panel);
  u.faults = faults;
  panel.chart = u;
  state.charts.push(u);
  return u;
}

function panel(title, choices, draw, wide) {
  const box = element("div", { className: wide ? "panel wide" : "panel" });
  const heading = element("h2", {}, title);
  box.append(heading);
  $("charts").append(box);
  const redraw = choice => {
    if (box.chart) { state.charts.splice(state.charts.indexOf(box.chart), 1); box.chart.destroy(); box.chart = null; }
    draw(box, choice);
    applyFilter(box.chart);
  };
  if (choices.length > 1) {
    const select = element("select", { onchange: () => redraw(select.value) },
      ...choices.map(([value, text]) => element("option", { value, textContent: text })));
    heading.append(select);
  }
  redraw(choices.length ? choices[0][0] : undefined);
  return box;
}

// Shows the lines whose name contains the filter; without one, the first few.
function applyFilter(u) {
  if (!u) return;
  const words = $("filter").value.trim().toLowerCase();
  u.batch(() => {
    u.series.forEach((series, i) => {
      if (!series.single) return;
      const show = words ? series.label.toLowerCase().includes(words) : series.place < SHOWN_AT_FIRST;
      if (series.show !== show) u.setSeries(i, { show });
    });
  });
}

function singles(all) {
  return all.map((one, place) => ({
    series: line(one.name, COLOURS[place % COLOURS.length], { single: true, place, show: place < SHOWN_AT_FIRST }),
    values: one.values }));
}

// Times in the unit that reads best.
function timeAxis(recording) {
  const long = recording.times_us.at(-1) > 5000;
  return long ? { x: recording.times_us.map(t => t / 1000), xLabel: "time, ms" } : { x: recording.times_us, xLabel: "time, us" };
}

function timeCharts(recording) {
  const axis = timeAxis(recording);
  const time = { ...axis, faults: faultsOf(recording, axis) };
  const groups = new Map();
  for (const [column, quantity] of Object.entries(recording.quantities)) {
    const [group, text] = TITLES[column];
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push([column, text, quantity]);
  }
  for (const group of ["Rates", "Windows", "RTT and target"]) {
    const members = groups.get(group);
    if (!members) continue;
    const order = Object.keys(TITLES);
    members.sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0]));
    panel(`${group} over time`, members, (box, column) => {
      const [, text, quantity] = members.find(member => member[0] === column);
      const b = quantity.bands;
      const many = recording.flow_count > 1;
      const lines = many ? [
        { series: line("95 % of flows", "#9fb6d3", { width: 0.5 }), values: b.p95 },
        { series: line("5 % of flows", "#9fb6d3", { width: 0.5 }), values: b.p5 },
        { series: line("75 %", "#7c9cc4", { width: 0.5 }), values: b.p75 },
        { series: line("25 %", "#7c9cc4", { width: 0.5 }), values: b.p25 },
        { series: line("median of flows", "#33475b", { width: 2 }), values: b.p50 },
        { series: line("mean", "#33475b", { width: 1.25, dash: [5, 4] }), values: b.mean },
      ] : [];
      if (many && column === "smoothed_rtt_us" && recording.quantities.target_delay_us) {
        lines.push({ series: line("median target", "#c0392b", { width: 1.5, dash: [8, 4] }),
          values: recording.quantities.target_delay_us.bands.p50 });
      }
      const bands = many ? [{ series: [1, 2], fill: "rgba(124,156,196,.16)" }, { series: [3, 4], fill: "rgba(124,156,196,.28)" }] : [];
      chart(box, { ...time, lines: [...lines, ...singles(quantity.flows)], bands,
        yLabel: text, sync: "time" });
    });
  }
  const ports = recording.ports;
  if (ports.length === 0) return;
  const port = key => (box, _) => chart(box, { ...time,
    lines: singles(ports.map(p => ({ name: p.name, values: p[key] }))),
    yLabel: key === "queue_kb" ? "mean queue, kB" : "throughput, Gb/s", sync: "time" });
  panel("Queues over time, busiest ports", [], port("queue_kb"));
  panel("Throughput of ports over time", [], port("throughput_gbps"));
}

function cdfCharts(recording) {
  const members = Object.entries(recording.cdfs).filter(([, [values]]) => values.length > 1);
  if (members.length === 0) return;
  panel("Distribution", members.map(([name]) => [name, name]), (box, name) => {
    const [values, fractions] = recording.cdfs[name];
    chart(box, { x: values, lines: [{ series: line("fraction at or below", COLOURS[0], { width: 2, fill: "rgba(31,111,235,.08)" }), values: fractions }],
      xLabel: `${name}, us`, yLabel: "fraction",
      scales: { x: { time: false, distr: values[0] > 0 && values.at(-1) / values[0] > 50 ? 3 : 1 }, y: { range: [0, 1] } } });
  });
}

function bytes(size) {
  for (const [unit, scale] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (size >= scale) return number(size / scale) + unit;
  }
  return size + "B";
}

function slowdownChart(recording) {
  const bins = recording.slowdown;
  if (bins.length === 0) return;
  const unfinished = bins.reduce((sum, bin) => sum + bin.unfinished, 0);
  panel("Slowdown by op size", [], box => {
    const points = { show: true, size: 7 };
    const series = [["median", "p50"], ["95 %", "p95"], ["99 %", "p99"]].map(([name, key], i) => ({
      series: line(name, COLOURS[i], { points, width: 1.5 }), values: bins.map(bin => bin[key]) }));
    const labels = ticks => ticks.map(t => Number.isInteger(t) && bins[t] ? (bins[t].up_to ? "≤" : "") + bytes(bins[t].size) : "");
    chart(box, { x: bins.map((_, i) => i), lines: series, xLabel: "op size", yLabel: "slowdown",
      scales: { x: { time: false, range: [-0.5, bins.length - 0.5] }, y: { range: (_, low, high) => [Math.min(1, low), high * 1.05 + 0.1] } },
      axes: [{ label: `op size (${bins.reduce((sum, bin) => sum + bin.ops, 0)} ops${unfinished ? `, ${unfinished} of them unfinished` : ""})`, labelSize: 22, size: 40, values: (_, ticks) => labels(ticks),
        splits: () => bins.map((_, i) => i).filter(i => i % Math.ceil(bins.length / 9) === 0) },
        { label: "slowdown", labelSize: 22, size: 62 }] });
  });
}

function mix(a, b, t) { return a.map((v, i) => Math.round(v + (b[i] - v) * t)); }
function heat(use) {
  const stops = [[0, [207, 216, 225]], [0.35, [47, 129, 199]], [0.7, [240, 163, 10]], [1, [192, 57, 43]]];
  const at = Math.max(0, Math.min(1, use));
  for (let i = 1; i < stops.length; i++) {
    const [low, from] = stops[i - 1], [high, to] = stops[i];
    if (at <= high) return `rgb(${mix(from, to, (at - low) / (high - low))})`;
  }
  return "rgb(192,57,43)";
}

function topologyView(recording) {
  const { nodes, links, left_out } = recording.topology;
  const box = element("div", { className: "panel wide" }, element("h2", { textContent: "Topology: utilisation of links in the measured phase" }));
  $("charts").append(box);
  if (left_out) { box.append(element("p", { textContent: left_out })); return; }
  const canvas = element("canvas", { className: "topology" });
  const tip = element("div", { className: "tip" });
  box.append(canvas, tip, element("div", { className: "key", innerHTML: "utilisation 0 %<i></i>100 % of the link, the busier direction; dashed red: the link had a fault; hover over a link or node" }));
  const tiers = Math.max(...nodes.map(node => node[1])) + 1;
  const width = box.clientWidth - 26, height = 90 + 110 * (tiers - 1), ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.height = height + "px";
  const counts = Array(tiers).fill(0), seen = Array(tiers).fill(0);
  nodes.forEach(node => counts[node[1]]++);
  const place = nodes.map(([, tier]) => [(seen[tier]++ + 0.5) / counts[tier] * width, height - 34 - tier * 110]);
  const g = canvas.getContext("2d");
  g.scale(ratio, ratio);
  const order = links.map((link, i) => [Math.max(link[2], link[3]), i]).sort((a, b) => a[0] - b[0]);
  for (const [use, i] of order) {
    const [a, b] = links[i];
    g.strokeStyle = heat(use); g.lineWidth = use > 0.01 ? 1 + 2.5 * use : 0.5;
    g.beginPath(); g.moveTo(...place[a]); g.lineTo(...place[b]); g.stroke();
  }
  for (const [a, b, , , , , faults] of links) {
    if (faults.length === 0) continue;
    g.strokeStyle = "#c0392b"; g.lineWidth = 3; g.setLineDash([3, 5]);
    g.beginPath(); g.moveTo(...place[a]); g.lineTo(...place[b]); g.stroke();
    g.setLineDash([]);
  }
  nodes.forEach(([name, tier], i) => {
    const size = Math.max(2, Math.min(7, width / counts[tier] / 3));
    g.fillStyle = tier === 0 ? "#33475b" : "#1d2733";
    if (tier === 0) { g.beginPath(); g.arc(...place[i], size, 0, 7); g.fill(); }
    else g.fillRect(place[i][0] - size, place[i][1] - size, 2 * size, 2 * size);
    if (width / counts[tier] > 52) {
      g.font = "11px system-ui, sans-serif"; g.textAlign = "center"; g.fillStyle = "#66727f";
      g.fillText(name, place[i][0], place[i][1] + (tier === 0 ? 22 : -12));
    }
  });
  canvas.addEventListener("mousemove", event => {
    const x = event.offsetX, y = event.offsetY;
    let best = [9, null];
    nodes.forEach(([name], i) => {
      const away = Math.hypot(place[i][0] - x, place[i][1] - y);
      if (away < best[0]) best = [away, name];
    });
    if (!best[1]) links.forEach(([a, b, ab, ba, rate, drops, faults]) => {
      const [[x1, y1], [x2, y2]] = [place[a], place[b]];
      const t = Math.max(0, Math.min(1, ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / ((x2 - x1) ** 2 + (y2 - y1) ** 2 || 1)));
      const away = Math.hypot(x1 + t * (x2 - x1) - x, y1 + t * (y2 - y1) - y);
      const percent = use => number(use * 100) + " %";
      if (away < best[0]) best = [away, `${nodes[a][0]} → ${nodes[b][0]}: ${percent(ab)}, back ${percent(ba)} of ${number(rate)} Gb/s; ${[drops + " drops", ...faults].join("; ")}`];
    });
    tip.style.display = best[1] ? "block" : "none";
    tip.textContent = best[1] || "";
    tip.style.left = Math.min(x + 24, width - tip.offsetWidth) + "px"; tip.style.top = y + 48 + "px";
  });
  canvas.addEventListener("mouseleave", () => { tip.style.display = "none"; });
  state.topology = canvas;
}

function checks() {
  const all = [...data.checks, ...data.shown];
  if (all.length === 0) return;
  const unit = one => one.unit ? " " + one.unit : "";
  const band = one => one.low === null && one.high === null ? "shown" :
    one.low === null ? `≤ ${number(one.high)}` : one.high === null ? `≥ ${number(one.low)}` : `${number(one.low)} … ${number(one.high)}`;
  const verdict = one => ({ pass: "pass", fail: "FAIL", differs: "differs", stale: "STALE" })[one.verdict] || "";
  const cell = (text, className) => element("td", { textContent: text, className: className || "" });
  const kind = one => one.fitted ? "fitted" : one.kind || "";
  const off = one => one.deviation_percent === null ? "" : `${one.deviation_percent > 0 ? "+" : ""}${number(one.deviation_percent)} %`;
  const seeds = one => one.pass && one.seeds_outside ? `, ${one.seeds_outside} of ${one.seeds.length} seeds outside` : "";
  const rows = all.map(one => element("tr", {}, cell(one.name), cell(kind(one)),
    cell(one.paper === null ? "–" : number(one.paper) + unit(one), "number"),
    cell(one.censored ? (one.lower === null ? "censored" : `≥ ${number(one.lower)}${unit(one)} (censored)`) : one.measured === null ? "not measured" : number(one.measured) + unit(one), "number"),
    cell(one.spread && one.spread[0] < one.spread[1] ? `${number(one.spread[0])} … ${number(one.spread[1])}` : "", "number"),
    cell(off(one), "number"), cell(band(one), "number"),
    cell(verdict(one) + seeds(one), one.verdict === "pass" ? "pass" : "fail"),
    cell(one.source || ""), cell(one.censored || one.differs || one.why || "", "why")));
  const head = ["", "kind", "paper", "simulated (median)", "over the seeds", "off by", "accepted", "", "source", "why it differs or may differ"];
  $("checks").append(element("table", {}, element("thead", {}, element("tr", {}, ...head.map(text => element("th", { textContent: text })))),
    element("tbody", {}, ...rows)));
  $("checks").hidden = false;
}

// Several workloads side by side; the first row is the header.
function workloads([header, ...rows]) {
  $("workloads").hidden = !header;
  if (!header) return;
  const cell = (tag, text) => element(tag, { textContent: text, className: /^(>= )?[\d.]+( \.\. [\d.]+)?$/.test(text) ? "number" : "" });
  const row = (tag, cells) => element("tr", {}, ...cells.map(text => cell(tag, text)));
  $("workloads").replaceChildren(element("h2", { textContent: "Workloads side by side" }),
    element("table", {}, element("thead", {}, row("th", header)), element("tbody", {}, ...rows.map(cells => row("td", cells)))));
}

function draw() {
  state.charts.splice(0).forEach(u => u.destroy());
  $("charts").replaceChildren();
  const run = data.runs[state.run];
  if (!run) return;
  $("summary").replaceChildren(element("pre", { textContent: run.text }));
  if (run.notes.length) {
    $("summary").append(element("ul", { className: "notes" }, ...run.notes.map(note => element("li", { textContent: note }))));
  }
  workloads(run.workloads);
  $("controls").hidden = !run.recording;
  if (!run.recording) return;
  timeCharts(run.recording);
  cdfCharts(run.recording);
  slowdownChart(run.recording);
  topologyView(run.recording);
}

$("title").textContent = data.title;
$("subtitle").textContent = data.subtitle;
checks();
data.runs.forEach((run, i) => $("run").append(element("option", { value: i, textContent: `${run.name}, seed ${run.seed}` })));
$("picker").hidden = data.runs.length < 2;
$("run").addEventListener("change", () => { state.run = Number($("run").value); draw(); });
$("filter").addEventListener("input", () => state.charts.forEach(applyFilter));
draw();
let settle;
window.addEventListener("resize", () => { clearTimeout(settle); settle = setTimeout(draw, 200); });
document.documentElement.dataset.readyMs = Math.round(performance.now()); // since the page was opened
})();
