// Figures of a paper on the paper's axes, with its points and their deviation, and all other numbers compared with the
// paper's.
const signed = percent => `${percent > 0 ? "+" : percent < 0 ? "−" : "±"}${number(Math.abs(percent), 2)}\u00a0%`;
const atLeast = one => one.measured ?? one.lower;

function paperFigures() {
  const numbers = [...data.checks, ...data.shown], figures = data.figures ?? [];
  if (!figures.length && !numbers.length) return null;
  const drawn = figures.map((figure, i) => figurePicture(figure, i).figure);
  const panels = panelsOf(numbers), single = numbers.filter(one => one.paper > 0 && atLeast(one) > 0 && !panels.some(panel => panel.includes(one)));
  const more = panels.map((panel, i) => panelPicture(panel, i).figure);
  if (single.length) more.push(ratioPicture(single).figure);
  if (!drawn.length && !more.length) return null;
  const own = h("div", { class: "grid two-wide" }, ...more);
  return section("figures", drawn.length ? "The paper's figures" : "Numbers compared with the paper", null,
    drawn.length ? h("div", { class: "grid two-wide" }, ...drawn) : null,
    drawn.length && more.length > 2 ? h("details", {}, h("summary", { text: `${plural(more.length, "more picture")} of single numbers` }), own) : more.length ? own : null);
}

// Returns the simulated value of a curve at a point of the paper: at the same horizontal position or, in a
// distribution, at the same height.
function simulatedAt(curve, [x, y], distribution) {
  const [along, of, at] = distribution ? [curve.y, curve.x, y] : [curve.x, curve.y, x];
  for (let i = 0; i < along.length; i++) {
    if (along[i] === at) return of[i];
    if (i > 0 && (along[i - 1] - at) * (along[i] - at) < 0) return of[i - 1] + (of[i] - of[i - 1]) * (at - along[i - 1]) / (along[i] - along[i - 1]);
  }
  return null;
}

function figurePicture(figure, place) {
  // Only distributions have points of the paper at a given height, and lines that were measured between points.
  const distribution = !figure.points, named = figure.names.length > 0;
  const paper = figure.paper.map(([curve, x, y]) => {
    const found = simulatedAt(figure.curves[curve], [x, y], distribution), own = distribution ? x : y;
    return { curve, x, y, deviation: found === null || !own ? null : (found / own - 1) * 100 };
  });
  const across = v => named ? figure.names[Math.round(v)] ?? "" : number(v, 3);
  const series = figure.curves.map((curve, i) => ({ ...curve, colour: colour(i), dash: dash(i), width: 2 }));
  const [all] = [figure.curves.flatMap(curve => curve.x).concat(paper.map(point => point.x))];
  const [least, most] = [Math.min(...all), Math.max(...all)], log = figure.across_log && least > 0;
  const pad = figure.points ? (log ? (most / least) ** 0.04 : (most - least) * 0.04) : log ? 1 : 0;
  const self = picture({ id: `figure-${place + 1}`, title: capital(figure.title.replace(/\[us\]/, "[µs]")),
    about: "Simulated curves of the first seed, or medians over the seeds where points are marked; diamonds are the paper's numbers, read from its text, tables or figure.",
    draw: width => {
      const chart = lineChart(width, { series, height: 290, xLabel: figure.across.replace(/\bus\b/, "µs"), yLabel: (figure.title.match(/\[(.*)\]/)?.[1] ?? "").replace(/\bus\b/, "µs"), yType: figure.log ? "log" : "linear", xType: log ? "log" : "linear",
        points: figure.points, diamonds: paper.map(point => ({ ...point, colour: colour(point.curve) })), xDomain: log ? [least / pad, most * pad] : [least - pad, most + pad],
        xTicks: named ? figure.names.map((_, i) => i).filter(i => i % Math.ceil(figure.names.length * 64 / width) === 0) : log ? logTicks(least, most) : undefined, xFormat: across, readout: v => `${figure.across.replace(/\bus\b/, "µs")}: ${across(v)}` });
      return h("div", {}, chart, series.length > 1 ? legend(series, () => self.refresh()) : null);
    },
    note: () => {
      const known = paper.filter(point => point.deviation !== null);
      if (!paper.length) return "The paper gives no number for a point of this figure.";
      if (!known.length) return "◇ paper.";
      const far = known.reduce((a, b) => Math.abs(b.deviation) > Math.abs(a.deviation) ? b : a);
      const sizes = known.map(point => Math.abs(point.deviation)).sort((a, b) => a - b);
      return `◇ ${plural(paper.length, "number")} of the paper. Simulated ${distribution ? "at the same fraction" : "at the same place"}: ${known.length > 1 ? `within ${number(sizes[Math.ceil(sizes.length / 2) - 1], 2)} % for half of them, the largest deviation ` : ""}${signed(far.deviation)} (${figure.curves.length > 1 ? figure.curves[far.curve].name + ", " : ""}${across(far.x)}).`;
    },
    rows: () => [["curve", figure.across, figure.title, "of the paper", "deviation_percent"], ...figure.curves.flatMap(curve => curve.x.map((x, i) => [curve.name, named ? figure.names[x] : x, curve.y[i], "", ""])), ...paper.map(point => [figure.curves[point.curve].name, named ? figure.names[point.x] : point.x, point.y, "yes", point.deviation])] });
  return self;
}

// Returns the numbers of one quantity over several variants.
function panelsOf(numbers) {
  const panels = new Map();
  for (const one of numbers) {
    if (!one.variant || atLeast(one) === null || atLeast(one) === undefined) continue;
    const panel = panels.get(one.quantity) ?? [];
    if (!panel.some(other => other.variant === one.variant)) panels.set(one.quantity, [...panel, one]);
  }
  return [...panels.values()].filter(panel => panel.length > 1);
}

const panelRows = panel => [["number", "variant", "paper", "simulated", "smallest", "largest", "deviation_percent", "unit"], ...panel.map(one => [one.name, one.variant, one.paper, atLeast(one), one.spread?.[0], one.spread?.[1], one.deviation_percent, one.unit])];
function panelPicture(panel, place) {
  const unit = panel[0].unit ? `, ${panel[0].unit.replace(/^us$/, "µs")}` : "", title = capital(panel[0].quantity) + unit;
  // Over the values of a setting, each variation has a line; the name of the variation follows a dot.
  const kind = one => one.variant.split(".").slice(1).join("."), kinds = [...new Set(panel.map(kind))], of = name => panel.filter(one => kind(one) === name).sort((a, b) => a.value - b.value);
  if (panel.every(one => one.value !== null) && kinds.some(name => new Set(of(name).map(one => one.value)).size > 2)) {
    const values = [...new Set(panel.map(one => one.value))].sort((a, b) => a - b), named = new Map(panel.map(one => [one.value, one.variant.split(".")[0]]));
    const log = values[0] > 0 && values.at(-1) / values[0] > 20, banded = of(kinds[0]).filter(one => one.low !== null && one.high !== null);
    const series = kinds.map((name, n) => ({ name: name || "simulated", colour: colour(n), x: of(name).map(one => one.value), y: of(name).map(one => atLeast(one)), width: 2 }));
    const spreads = kinds.map((name, n) => [of(name).filter(one => one.spread), n]).filter(([all]) => all.some(one => one.spread[0] < one.spread[1]));
    const papers = panel.filter(one => one.paper !== null).map(one => ({ x: one.value, y: one.paper, curve: kinds.indexOf(kind(one)), deviation: one.deviation_percent, colour: theme.series[1] }));
    const pad = log ? (values.at(-1) / values[0]) ** 0.04 : (values.at(-1) - values[0]) * 0.04;
    const self = picture({ id: `panel-${place + 1}`, title, about: "Medians over the seeds, with a band from the smallest to the largest; diamonds are the paper's numbers; green is accepted.",
      draw: width => h("div", {}, lineChart(width, { series, height: 260, points: true, diamonds: papers, xLabel: "", yLabel: unit.slice(2), xType: log ? "log" : "linear", xDomain: log ? [values[0] / pad, values.at(-1) * pad] : [values[0] - pad, values.at(-1) + pad],
        areas: [...spreads.map(([all, n]) => ({ x: all.map(one => one.value), low: all.map(one => one.spread[0]), high: all.map(one => one.spread[1]), colour: colour(n) })), ...(banded.length > 1 ? [{ x: banded.map(one => one.value), low: banded.map(one => one.low), high: banded.map(one => one.high), colour: theme.good, opacity: 0.16 }] : [])],
        xTicks: values.filter((_, i) => i % Math.ceil(values.length * 58 / width) === 0), xFormat: v => named.get(v) ?? number(v, 3), readout: v => named.get(v) ?? number(v) }), series.length > 1 ? legend(series, () => self.refresh()) : null),
      note: () => { const known = papers.filter(one => one.deviation !== null); return known.length ? `◇ paper. The largest deviation is ${signed(known.reduce((a, b) => Math.abs(b.deviation) > Math.abs(a.deviation) ? b : a).deviation)}.` : ""; },
      rows: () => panelRows(panel) });
    return self;
  }
  return picture({ id: `panel-${place + 1}`, title, about: "Dot: median over the seeds, with a line from the smallest to the largest; diamond: the paper's number; green: accepted; on the right how far the median is from the paper's number.",
    draw: width => dotRows(width, panel.map(one => ({ name: one.variant, one, value: atLeast(one), spread: one.spread, paper: one.paper, band: [one.low, one.high] })), { format: v => number(v, 3) }),
    rows: () => panelRows(panel) });
}
function ratioPicture(single) {
  const ratio = (one, v) => v === null || v === undefined ? null : v / one.paper;
  return picture({ id: "ratios", title: "Simulated value over the paper's", wide: true, about: "Each number divided by that of the paper, on a logarithmic axis: at 1 both are equal. Green: accepted.",
    draw: width => dotRows(width, single.map(one => ({ name: one.name, one, value: ratio(one, atLeast(one)), spread: one.spread?.map(v => ratio(one, v)), paper: null, band: [ratio(one, one.low), ratio(one, one.high)] })), { log: true, line: 1, format: v => number(v, 3) + "×" }),
    rows: () => panelRows(single) });
}

// Draws a row per number: name, dot, spread, band and the paper's number, with the deviation at the right.
function dotRows(width, rows, { log, line, format }) {
  const names = Math.min(width * 0.42, 8 + 6.3 * Math.max(...rows.map(row => row.name.length))), right = 62, row = 26, bottom = 26;
  const seen = rows.flatMap(one => [one.value, ...(one.spread ?? []), one.paper].filter(v => v !== null && v !== undefined && Number.isFinite(v) && (!log || v > 0)));
  if (line) seen.push(line / 1.5, line * 1.5);
  const [low, high] = [Math.min(...seen), Math.max(...seen)];
  // An axis from zero shows lengths. If that would squeeze all numbers into a corner, the axis starts elsewhere.
  const domain = log ? [low / 1.08, high * 1.08] : [low >= 0 ? 0 : low, high + (high - Math.min(0, low)) * 0.05 || 1];
  const clampedTo = v => Math.max(domain[0], Math.min(domain[1], v));
  const cut = text => text.length * 6.3 > names ? text.slice(0, Math.floor(names / 6.3) - 1) + "…" : text;
  const bands = rows.map((one, i) => ({ ...one, i })).filter(one => one.band[0] !== null || one.band[1] !== null);
  const dots = rows.map((one, i) => ({ ...one, i }));
  const svg = plotOf({ width, height: row * rows.length + bottom + 6, marginLeft: names, marginRight: right, marginTop: 4, marginBottom: bottom,
    style: { background: "transparent", color: theme.ink, fontSize: "11.5px", fontFamily: "inherit", overflow: "visible" },
    x: { domain, type: log ? "log" : "linear", label: null }, y: { domain: [-0.5, rows.length - 0.5], reverse: true, axis: null },
    marks: [Plot.gridX({ stroke: theme.line, strokeOpacity: 1, ticks: log ? logTicks(...domain) : Math.max(2, Math.round((width - names - right) / 80)) }),
      Plot.axisX({ label: null, color: theme.soft, tickSize: 0, ticks: log ? logTicks(...domain) : Math.max(2, Math.round((width - names - right) / 80)), text: format }),
      line ? Plot.ruleX([line], { stroke: theme.soft }) : null,
      Plot.link(bands, { x1: one => clampedTo(one.band[0] ?? domain[0]), x2: one => clampedTo(one.band[1] ?? domain[1]), y1: "i", y2: "i", stroke: theme.good, strokeOpacity: 0.22, strokeWidth: 13, strokeLinecap: "butt" }),
      Plot.link(dots.filter(one => one.spread && one.spread[0] < one.spread[1]), { x1: one => clampedTo(one.spread[0]), x2: one => clampedTo(one.spread[1]), y1: "i", y2: "i", stroke: theme.series[0], strokeOpacity: 0.45, strokeWidth: 3 }),
      Plot.dot(dots.filter(one => one.paper !== null && one.paper !== undefined), { x: "paper", y: "i", symbol: "diamond", r: 5, stroke: theme.series[1], strokeWidth: 2, fill: theme.card }),
      Plot.dot(dots, { x: one => clampedTo(one.value), y: "i", r: 4, fill: theme.series[0] }),
      Plot.text(dots.filter(one => one.one.measured === null), { x: one => clampedTo(one.value), y: "i", text: () => "→", dx: 12, fontSize: 14, fill: theme.series[0] }),
      Plot.text(dots, { x: domain[0], y: "i", text: one => cut(one.name), dx: -8, textAnchor: "end", fill: theme.ink }),
      Plot.text(dots.filter(one => one.one.deviation_percent !== null && one.one.deviation_percent !== undefined), { x: domain[1], y: "i", text: one => signed(one.one.deviation_percent), dx: right - 4, textAnchor: "end", fill: one => one.one.verdict && one.one.verdict !== "pass" ? theme.bad : theme.soft }),
    ].filter(Boolean) });
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", rows.map(one => `${one.name}: ${format(one.value)}${one.paper !== null && one.paper !== undefined ? `, paper ${format(one.paper)}` : ""}`).join("; "));
  svg.addEventListener("pointermove", event => {
    const one = rows[Math.floor((event.clientY - svg.getBoundingClientRect().top - 4) / row)]?.one;
    if (!one) return hideTip();
    const unit = one.unit ? "\u00a0" + one.unit.replace(/^us$/, "µs") : "", pair = (name, value) => h("div", { class: "tip-row" }, h("span", { text: name }), h("b", { text: value }));
    showTip([h("div", { class: "tip-head", text: one.name }), pair("simulated", (one.measured === null ? "≥ " : "") + number(atLeast(one)) + unit), one.paper !== null ? pair("paper", number(one.paper) + unit) : "",
      one.spread ? pair("over the seeds", `${number(one.spread[0])} … ${number(one.spread[1])}`) : "", one.source ? h("div", { class: "tip-more", text: one.source }) : ""].filter(Boolean), event.clientX + 14, event.clientY + 14);
  });
  svg.addEventListener("pointerleave", hideTip);
  return svg;
}
