// Lines over a common horizontal axis: hovering or arrow keys read values, a drag zooms or selects, a double click
// resets.
const zooms = new Map(); // Of pictures with a common axis, by its name.

// Selects points at equal distances on the screen, so that a long line is drawn quickly.
function pick(xs, low, high, most) {
  let from = 0, to = xs.length;
  while (from < xs.length && xs[from] < low) from++;
  while (to > from && xs[to - 1] > high) to--;
  from = Math.max(0, from - 1);
  to = Math.min(xs.length, to + 1);
  const step = Math.max(1, Math.ceil((to - from) / most)), places = [];
  for (let i = from; i < to; i += step) places.push(i);
  if (places.at(-1) !== to - 1 && to > 0) places.push(to - 1);
  return places;
}

function nearest(xs, x) {
  let low = 0, high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle; else high = middle;
  }
  return xs.length && Math.abs(xs[low] - x) <= Math.abs(xs[high] - x) ? low : high;
}

// series: { name, x, y, colour, width, dash, faint, group }; areas: { x, low, high, colour }.
function lineChart(width, options) {
  const { series, areas = [], faults = [], xLabel, yLabel, height = 230, xType = "linear", yType = "linear",
    sync, xTicks, xFormat, yFormat, yZero = true, warmup, onBrush, brushed, xDomain, readout, points, refs = [], diamonds = [], gap, yFrom } = options;
  const left = 58, right = 18, bottom = 38, top = 22;
  const all = series.flatMap(one => [one.x[0], one.x.at(-1)]).filter(Number.isFinite);
  const whole = xDomain ?? [Math.min(...all), Math.max(...all)];
  const shown = (sync && zooms.get(sync)) || whole;
  const wide = Math.max(200, Math.floor((width - left - right)));
  const marks = [];
  for (const fault of faults.filter(fault => !fault.instant)) {
    const from = Math.max(fault.from, shown[0]), to = Math.min(fault.to, shown[1]);
    if (from < to) marks.push(Plot.rectX([[from, to]], { x1: d => d[0], x2: d => d[1], fill: theme.bad, fillOpacity: fault.after ? 0.05 : 0.1 }));
  }
  const moments = faults.flatMap(f => f.instant ? [f.from] : [f.from, f.to]).filter(x => x >= shown[0] && x <= shown[1]);
  if (moments.length) marks.push(Plot.ruleX(moments, { stroke: theme.bad, strokeOpacity: 0.55, strokeDasharray: "3 3" }));
  if (warmup && warmup > shown[0]) {
    marks.push(Plot.rectX([[shown[0], Math.min(warmup, shown[1])]], { x1: d => d[0], x2: d => d[1], fill: theme.soft, fillOpacity: 0.09 }));
  }
  if (gap && gap[1] > shown[0] && gap[0] < shown[1]) marks.push(...gapMarks(gap, shown));
  if (brushed) marks.push(Plot.rectX([brushed], { x1: d => d[0], x2: d => d[1], fill: theme.accent, fillOpacity: 0.13 }));
  let low = Infinity, high = -Infinity;
  const see = value => { if (value !== null && Number.isFinite(value)) { low = Math.min(low, value); high = Math.max(high, value); } };
  for (const area of areas) {
    const places = pick(area.x, ...shown, wide);
    places.forEach(i => { see(area.low[i]); see(area.high[i]); });
    marks.push(Plot.areaY(places, { x: i => area.x[i], y1: i => area.low[i], y2: i => area.high[i], fill: area.colour, fillOpacity: area.opacity ?? 0.18 }));
  }
  const visible = series.filter(one => !one.hidden);
  for (const one of visible) {
    const places = pick(one.x, ...shown, wide);
    places.forEach(i => see(one.y[i]));
    marks.push(Plot.line(places, { x: i => one.x[i], y: i => one.y[i] ?? NaN, stroke: one.colour, strokeWidth: one.width ?? 1.75,
      strokeDasharray: one.dash, strokeOpacity: one.faint ? 0.55 : 1, curve: one.step ? "step-before" : "linear" }));
    if (points || places.length < 3) marks.push(Plot.dot(places, { x: i => one.x[i], y: i => one.y[i] ?? NaN, fill: one.colour, r: 3 }));
  }
  for (const { y } of diamonds) see(y);
  if (diamonds.length) marks.push(Plot.dot(diamonds, { x: "x", y: "y", symbol: "diamond", r: 5.5, stroke: "colour", strokeWidth: 2, fill: theme.card }));
  for (const ref of refs) {
    see(ref.value);
    marks.push(Plot.ruleY([ref.value], { stroke: theme.soft, strokeDasharray: "4 4" }),
      Plot.text([ref], { frameAnchor: "right", y: "value", text: "text", dy: -7, textAnchor: "end", fill: theme.soft, fontSize: 11 }));
  }
  if (low === Infinity) [low, high] = [0, 1];
  const floor = yFrom !== undefined ? Math.min(yFrom, low) : yType === "log" ? Math.max(low * 0.93, 1e-9) : yZero ? Math.min(0, low) : low;
  const yTicks = yType === "log" ? logTicks(floor, high * 1.15) : 5;
  const svg = plotOf({
    width, height, marginLeft: left, marginRight: right, marginBottom: bottom, marginTop: top,
    style: { background: "transparent", color: theme.ink, fontSize: "11.5px", fontFamily: "inherit", overflow: "visible" },
    x: { domain: shown, type: xType, label: null, clamp: false },
    y: { domain: [floor, high > floor ? (yType === "log" ? high * 1.15 : high + (high - floor) * 0.05) : floor + (floor || 1)], type: yType, label: null, nice: yType !== "log" },
    clip: true,
    marks: [
      Plot.gridY({ stroke: theme.line, strokeOpacity: 1, ticks: yTicks }),
      Plot.axisX({ label: null, color: theme.soft, ticks: xTicks ?? Math.max(3, Math.round(width / 110)), ...(xFormat ? { text: xFormat } : {}), tickSize: 4 }),
      // The library's default format omits numbers on a logarithmic axis.
      Plot.axisY({ label: null, color: theme.soft, ticks: yTicks, text: yFormat ?? (v => number(v, 3)), tickSize: 0 }),
      Plot.ruleY([floor], { stroke: theme.soft, strokeOpacity: 0.6 }),
      ...marks,
    ],
  });
  svg.setAttribute("role", "img");
  const names = visible.slice(0, 6).map(one => one.name).join(", ");
  svg.setAttribute("aria-label", `${yLabel} over ${xLabel}: ${names}${visible.length > 6 ? ` and ${visible.length - 6} more lines` : ""}`);
  label(svg, width / 2 + left / 2, height - 4, xLabel, "middle");
  label(svg, 2, 9, yLabel, "start");
  const box = h("div", { class: "chart", tabindex: 0, role: "group", "aria-label": `Values of ${yLabel}: use the arrow keys` }, svg);
  const xScale = svgScale(shown, xType, left, width - right);
  const cursor = cursorOf(svg, top, height - bottom);
  const read = (x, from) => {
    // Show the nearest sample; if there are many lines, list the lines nearest to the pointer first.
    const rows = [];
    for (const one of visible) {
      if (!one.x.length) continue;
      const i = nearest(one.x, x);
      if (one.y[i] !== null && one.y[i] !== undefined) rows.push([one, one.y[i], one.x[i]]);
    }
    if (!rows.length) return hideTip();
    const at = rows[0][2];
    cursor(xScale.to(at));
    if (sync) moveCursors(sync, at, box);
    const singles = rows.filter(([one]) => !one.faint);
    const list = [...singles, ...rows.filter(([one]) => one.faint).sort((a, b) => b[1] - a[1])].slice(0, 12);
    const value = v => yFormat ? yFormat(v) : number(v);
    const lines = list.map(([one, y]) => h("div", { class: "tip-row" }, h("i", { style: { background: one.colour } }), h("span", { text: one.name }), h("b", { text: value(y) })));
    if (rows.length > list.length) lines.push(h("div", { class: "tip-more", text: `and ${rows.length - list.length} more lines` }));
    // The paper's numbers at this position.
    const near = diamonds.filter(one => Math.abs(xScale.to(one.x) - xScale.to(at)) < 9);
    near.forEach(one => lines.push(h("div", { class: "tip-row" }, h("i", { style: { background: one.colour } }), h("span", { text: `paper${series.length > 1 ? ", " + series[one.curve].name : ""}` }), h("b", { text: value(one.y) + (one.deviation === null ? "" : ` (${signed(one.deviation)})`) }))));
    const head = readout ? readout(at) : `${xFormat ? xFormat(at) : number(at)}`;
    const here = faults.filter(f => f.instant ? Math.abs(f.from - at) < (shown[1] - shown[0]) / 200 : f.from <= at && at <= f.to);
    here.forEach(fault => lines.push(h("div", { class: "tip-fault", text: fault.text })));
    const place = box.getBoundingClientRect();
    showTip([h("div", { class: "tip-head", text: head }), ...lines], from?.clientX !== undefined ? from.clientX + 16 : place.left + xScale.to(at) + 12, from?.clientY !== undefined ? from.clientY + 16 : place.top + 20);
    return at;
  };
  let focusAt = null, down = null;
  const xOf = event => xScale.from(Math.max(left, Math.min(width - right, (event.clientX - box.getBoundingClientRect().left) * width / box.clientWidth)));
  const area = document.createElementNS(svg.namespaceURI, "rect");
  for (const [key, value] of Object.entries({ y: top, height: height - top - bottom, fill: theme.accent, "fill-opacity": 0.16, width: 0 })) area.setAttribute(key, value);
  svg.append(area);
  box.addEventListener("pointermove", event => {
    if (down !== null) {
      const [a, b] = [down, xOf(event)].sort((p, q) => p - q).map(xScale.to);
      area.setAttribute("x", a);
      area.setAttribute("width", b - a);
    }
    read(xOf(event), event);
  });
  box.addEventListener("pointerleave", () => { hideTip(); cursor(null); if (sync) moveCursors(sync, null, box); });
  box.addEventListener("pointerdown", event => { if (event.button === 0) { down = xOf(event); try { box.setPointerCapture(event.pointerId); } catch { /* Events of a program have no pointer. */ } } });
  box.addEventListener("pointerup", event => {
    if (down === null) return;
    const [a, b] = [down, xOf(event)].sort((p, q) => p - q);
    down = null;
    area.setAttribute("width", 0);
    if (Math.abs(xScale.to(b) - xScale.to(a)) < 5) return;
    if (onBrush) onBrush(a, b); else if (sync) zoom(sync, [a, b]);
  });
  box.addEventListener("dblclick", () => { if (onBrush) onBrush(null); else if (sync) zoom(sync, null); });
  box.addEventListener("keydown", event => {
    const xs = visible[0]?.x ?? [];
    if (!xs.length) return;
    if (event.key === "Escape") { hideTip(); if (onBrush) onBrush(null); else if (sync) zoom(sync, null); return; }
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[event.key];
    if (!step) return;
    event.preventDefault();
    const place = Math.max(0, Math.min(xs.length - 1, focusAt === null ? nearest(xs, shown[0]) : focusAt + step));
    focusAt = place;
    read(xs[place]);
    say(tip.innerText.replaceAll("\n", ", "));
  });
  box.addEventListener("blur", () => { hideTip(); cursor(null); });
  if (sync) box.moveCursor = at => cursor(at === null || at < shown[0] || at > shown[1] ? null : xScale.to(at));
  box.range = shown;
  box.series = visible;
  return box;
}
// Marks the part of an op that the second run did not record.
const gapMarks = ([from, to], [low, high]) => [Plot.rectX([[Math.max(from, low), Math.min(to, high)]], { x1: d => d[0], x2: d => d[1], fill: theme.soft, fillOpacity: 0.1 }),
  Plot.text([(Math.max(from, low) + Math.min(to, high)) / 2], { x: d => d, frameAnchor: "top", dy: 6, text: () => "ports not recorded", fill: theme.soft, fontSize: 11 })];
// A distribution on an axis that stretches the tail; the largest value is drawn half a step beyond its predecessor.
function tailLine(name, [values, fractions], more) {
  const x = fractions.map((f, i) => f >= 1 ? nines(fractions[i - 1] ?? 0) + 0.15 : nines(f));
  return { name, x, y: values, ...more };
}
function tailChart(width, series, name, log, more) {
  const most = Math.max(1, ...series.map(one => one.x.at(-1))), least = Math.min(...series.map(one => one.x[0]), nines(0.5));
  const positive = series.every(one => one.y.every(v => v === null || v > 0));
  const ticks = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999].filter(f => nines(f) <= most + 0.05 && nines(f) >= least - 1e-9 && (f > 0 || width > 500));
  return lineChart(width, { series, height: 300, xLabel: `percentile of ${name}`, yLabel: name, yType: log && positive ? "log" : "linear", yZero: !log, yFormat: micros,
    xDomain: [least, most + 0.05], xTicks: ticks.map(nines), xFormat: at => rankName(fractionOf(at)), readout: at => `${rankName(fractionOf(at))} of ${name}`, ...more });
}
// Returns round values of a logarithmic axis: 1, 2 and 5 times powers of ten, or only the powers if there are many.
function logTicks(low, high) {
  const all = [];
  const steps = high / low > 300 ? [1] : high / low < 4 ? [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 7] : [1, 2, 5];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) for (const step of steps) all.push(step * 10 ** power);
  const inside = all.filter(v => v >= low * 0.999 && v <= high);
  return inside.length > 1 ? inside : [low, high];
}
function label(svg, x, y, text, anchor) {
  const node = document.createElementNS(svg.namespaceURI, "text");
  for (const [key, value] of Object.entries({ x, y, "text-anchor": anchor, "font-size": 11.5, fill: theme.soft })) node.setAttribute(key, value);
  node.textContent = text;
  svg.append(node);
}
function svgScale([low, high], type, from, to) {
  const up = type === "log" ? Math.log : v => v, back = type === "log" ? Math.exp : v => v;
  const [a, b] = [up(low), up(high)];
  return { to: x => from + (up(x) - a) / (b - a || 1) * (to - from), from: px => back(a + (px - from) / (to - from) * (b - a)) };
}
function cursorOf(svg, top, bottom) {
  const rule = document.createElementNS(svg.namespaceURI, "line");
  for (const [key, value] of Object.entries({ y1: top, y2: bottom, stroke: theme.ink, "stroke-opacity": 0.5, visibility: "hidden" })) rule.setAttribute(key, value);
  svg.append(rule);
  return x => {
    rule.setAttribute("visibility", x === null ? "hidden" : "visible");
    if (x !== null) { rule.setAttribute("x1", x); rule.setAttribute("x2", x); }
  };
}
function moveCursors(sync, at, own) {
  for (const one of document.querySelectorAll(`[data-sync="${sync}"] .chart`)) if (one !== own) one.moveCursor?.(at);
}
function zoom(sync, range) {
  if (range) zooms.set(sync, range); else zooms.delete(sync);
  setState({ zoom: [...zooms].map(([axis, ends]) => [axis, ...ends.map(x => Number(x.toPrecision(6)))].join("~")).join("~") }, true);
  report.pictures.filter(one => one.figure.dataset.sync === sync || one.figure.closest(`[data-sync="${sync}"]`)).forEach(one => one.refresh());
}
// The address contains the name and the ends of each zoomed axis; ends may be negative.
function readZooms() {
  zooms.clear();
  for (const [, axis, a, b] of (state.zoom ?? "").matchAll(/([a-z]+)~([^~]+)~([^~]+)/g)) if (Number(a) < Number(b)) zooms.set(axis, [Number(a), Number(b)]);
}
Object.assign(report, { zoom, zooms, readZooms });

// Names of lines; a click hides a line or shows it again.
function legend(series, change) {
  const many = series.length > 10;
  const list = h("div", { class: "legend", role: "group", "aria-label": "Lines of the picture" }, ...series.slice(0, many ? 9 : 10).map(one =>
    h("button", { type: "button", "aria-pressed": String(!one.hidden), onclick: event => {
      one.hidden = !one.hidden;
      event.currentTarget.setAttribute("aria-pressed", String(!one.hidden));
      change(one);
    } }, h("i", { style: { borderTopColor: one.colour, borderTopStyle: one.dash ? "dashed" : "solid" } }), one.name)));
  if (many) list.append(h("span", { class: "more", text: `and ${series.length - 9} more; point at the picture for their names` }));
  return list;
}
