// Slowdown: distribution with a stretched tail, dependence on size, and the ops in a selected tail.
const nines = fraction => -Math.log10(Math.max(1 - fraction, 1e-7));
const fractionOf = at => 1 - 10 ** -at;
const rankName = fraction => "p" + number(fraction * 100, fraction > 0.99 ? 2 + Math.ceil(nines(fraction)) : 3);

function curvesOf() {
  const all = recorded().filter(run => run.recording.ops.count > 0);
  const series = [];
  all.forEach(run => {
    const index = runs.indexOf(run), own = hueOf(run);
    const curves = all.length > 1 ? run.recording.ops.curves.slice(0, 1) : run.recording.ops.curves;
    curves.forEach((curve, i) => {
      const [values, fractions] = curve.points;
      const hue = all.length > 1 ? own : i;
      series.push({ name: all.length > 1 ? run.label : `${curve.name} (${count(curve.ops)})`, colour: colour(hue), dash: dash(hue), run: index,
        x: fractions.map(f => nines(f - 0.5 / curve.ops)), y: values, ops: curve.ops, fractions, width: i === 0 ? 2.25 : 1.75 });
    });
  });
  return series;
}

const tailRange = () => {
  const [low, high] = (state.tail ?? "").split("-").map(Number);
  return Number.isFinite(low) && Number.isFinite(high) && low < high ? [low, high] : [0.99, 1];
};

const LEAD = "From the whole to the cause: drag over a tail in the first picture, choose one of its ops in the list, and follow it to the queue in which it waited.";
function slowdownPictures() {
  if (!recorded().some(run => run.recording.ops.count > 0)) return null;
  const series = curvesOf().filter(one => one.y.some(v => v !== null));
  if (!series.length) return section("slowdown", "Slowdown of ops", "No op of the measured phase ended, so there is no slowdown. The oldest ops come first.", opList());
  // There is no data beyond the last known value.
  const most = Math.max(...series.map(one => one.x[one.y.findLastIndex(v => v !== null)])) + 0.04;
  const ticks = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999].filter(f => nines(f) <= most + 0.05 && (f > 0 || innerWidth > 600));
  const open = () => recorded().map(run => [run, run.recording.ops.curves[0].points[0].filter(v => v === null).length]).filter(([, n]) => n > 0);
  let log = state.cdf !== "linear";
  const tail = picture({
    id: "slowdown-tail", title: "Slowdown by percentile", wide: false,
    about: "Slowdown is the latency of an op over its ideal completion time on an empty network, at least 1. The axis stretches the tail: each step is ten times rarer. Drag over a range to list the ops in it.",
    controls: [select("Scale of slowdown", [["log", "logarithmic"], ["linear", "linear"]], log ? "log" : "linear", value => { log = value !== "linear"; setState({ cdf: log ? null : "linear" }, true); tail.refresh(); })],
    draw: (width, self) => {
      const range = tailRange();
      const chart = lineChart(width, { series, xLabel: "fraction of ops that are at most this slow", yLabel: "slowdown", height: 300, yType: log ? "log" : "linear", yFrom: 1,
        xDomain: [0, most], xTicks: ticks.map(nines), xFormat: at => rankName(fractionOf(at)), yFormat: v => number(v, 3) + "×", readout: at => `${rankName(fractionOf(at))} of the ops`,
        brushed: [nines(range[0]), Math.min(nines(range[1]), most)],
        onBrush: (a, b) => setState({ tail: a === null ? null : `${fractionOf(Math.max(a, 0)).toFixed(7)}-${b >= most - 0.02 ? 1 : fractionOf(b).toFixed(7)}`, ops: null }) });
      self.chart = chart;
      return h("div", {}, chart, legend(series, () => self.refresh()));
    },
    note: () => {
      const unfinished = open();
      return [`Shaded: the range whose ops are listed below; a drag chooses another one.`, unfinished.length ? "Ops that had not ended are beyond the end of the lines: " + unfinished.map(([run]) => `${run.label}, ${plural(run.recording.ops.sizes[0].bins.reduce((n, bin) => n + bin.unfinished, 0), "op")}`).join("; ") + "." : "",
        recorded().some(run => run.recording.ops.groups_left_out) && runs.length === 1 ? `Of more than 12 workloads, the first 12 have lines; ${runs[0].recording.ops.groups_left_out} are in “all ops” only.` : ""].join(" ").trim();
    },
    rows: () => [["run", "fraction of ops", "slowdown"], ...series.flatMap(one => one.fractions.map((f, i) => [one.name, f, one.y[i]]))],
  });
  onState(["tail"], () => tail.refresh());
  const single = recorded().filter(run => run.recording.ops.count > 0).every(run => run.recording.ops.sizes.every(one => one.bins.length < 2));
  if (single) {
    // Ops of a single size have no picture by size.
    return section("slowdown", "Slowdown of ops", LEAD, h("div", { class: "grid two-wide" }, tail.figure, delayPicture()), opList());
  }
  let stat = "p99";
  const stats = [["p50", "median"], ["p95", "p95"], ["p99", "p99"], ["p99_9", "p99.9"], ["max", "slowest"]];
  const all = recorded().filter(run => run.recording.ops.count > 0);
  let sets = all.length > 1 ? all.map(run => [run.label, run.recording.ops.sizes[0].bins, hueOf(run)]) : all[0].recording.ops.sizes.map((one, i) => [one.name, one.bins, i]);
  // If every size belongs to a single workload, the line of all ops adds no information.
  if (all.length === 1 && sets.length > 2 && sets.slice(1).reduce((sum, [, bins]) => sum + bins.length, 0) === sets[0][1].length) sets = sets.slice(1);
  const sizes = [...new Set(sets.flatMap(([, bins]) => bins.map(bin => bin.size)))].sort((a, b) => a - b);
  const upTo = sets.some(([, bins]) => bins.some(bin => bin.up_to));
  const several = sets.length > 1;
  const bySize = picture({
    id: "slowdown-by-size", title: "Slowdown by op size",
    about: "Percentiles of the slowdown among the ops of each size; sizes are joined to powers of two if there are more than 16.",
    controls: several ? [select("Percentile", stats, stat, value => { stat = value; bySize.refresh(); })] : [],
    draw: width => {
      const lines = several ? sets.map(([name, bins, i]) => ({ name, colour: colour(i), dash: dash(i), x: bins.map(bin => sizes.indexOf(bin.size)), y: bins.map(bin => bin[stat]) })) :
        stats.slice(0, 4).map(([key, name], i) => ({ name, colour: colour([0, 5, 1, 3][i]), x: sets[0][1].map(bin => sizes.indexOf(bin.size)), y: sets[0][1].map(bin => bin[key]) }));
      // If there are only a few sizes, no line is drawn between them.
      if (sizes.length < 5) lines.forEach(line => { line.width = 0; });
      const step = Math.ceil(sizes.length / Math.max(3, width / 70));
      const domain = [-0.5, sizes.length - 0.5];
      const chart = lineChart(width, { series: lines, xLabel: "op size", yLabel: "slowdown", height: 300, points: true, xDomain: domain, yType: "log", yFrom: 1,
        xTicks: sizes.map((_, i) => i).filter(i => i % step === 0), xFormat: i => upTo ? "≤" + binary(sizes[Math.round(i)] ?? 0) : bytes(sizes[Math.round(i)] ?? 0), yFormat: v => number(v, 3) + "×",
        readout: i => { const bins = sets.map(([, bins]) => bins.find(bin => bin.size === sizes[i])).filter(Boolean); return `${upTo ? "up to " + binary(sizes[i]) : bytes(sizes[i])}, ${plural(bins.reduce((n, bin) => n + bin.ops, 0), "op")}`; } });
      return h("div", {}, chart, legend(lines, () => {}));
    },
    note: () => {
      const bins = sets.flatMap(([, bins]) => bins), n = bins.reduce((sum, bin) => sum + bin.unfinished, 0), least = { p95: 20, p99: 100, p99_9: 1000 }[stat], few = least && several ? bins.filter(bin => bin.ops < least).length : 0;
      return [n && !several ? `${plural(n, "op")} had not ended; a percentile among them is left out.` : "", few ? `For fewer than ${count(least)} ops, the slowest one is shown: at ${few} of ${plural(bins.length, "point")}. Point at one for its number of ops.` : ""].join(" ").trim();
    },
    rows: () => [["run or workload", "size_bytes", "ops", "unfinished", ...stats.map(([, name]) => name)], ...sets.flatMap(([name, bins]) => bins.map(bin => [name, bin.size, bin.ops, bin.unfinished, ...stats.map(([key]) => bin[key])]))],
  });
  return section("slowdown", "Slowdown of ops", LEAD,
    h("div", { class: "grid two-wide" }, tail.figure, bySize.figure), opList(), h("div", { class: "grid" }, delayPicture()));
}

// Draws the distributions of delays of packets and ops.
function delayPicture() {
  const all = recorded(), names = ["fabric RTT", "end-to-end RTT", "op latency"].filter(name => all.some(run => run.recording.cdfs[name]?.[0].length > 1));
  if (!names.length) return null;
  const shown = () => all.length > 1 ? all : [all[0]];
  let which = names[0], log = true, lines = null;
  const self = picture({ id: "distribution", title: "Delays by percentile", about: "Percentiles of the delays of acknowledgements (RTTs) or ops (latency), over the measured phase. The axis stretches the tail: each step is ten times rarer.",
    controls: [select("Distribution", names.map(name => [name, name]), which, value => { which = value; lines = null; self.refresh(); }), select("Scale of delays", [["log", "logarithmic"], ["linear", "linear"]], "log", value => { log = value === "log"; self.refresh(); })],
    draw: width => {
      lines ??= shown().filter(run => run.recording.cdfs[which][0].length > 1).map(run => tailLine(all.length > 1 ? run.label : which, run.recording.cdfs[which], { colour: colour(all.length > 1 ? hueOf(run) : 0), dash: all.length > 1 ? dash(hueOf(run)) : null, width: 2 }));
      if (!lines.length) return h("p", { class: "note", text: "Nothing was measured." });
      return h("div", {}, tailChart(width, lines, which, log), all.length > 1 ? legend(lines, () => self.refresh()) : null);
    },
    rows: () => [["run", `${which}, us`, "fraction"], ...shown().flatMap(run => run.recording.cdfs[which][0].map((x, i) => [run.label, x, run.recording.cdfs[which][1][i]]))] });
  return self.figure;
}

// Lists the ops in the selected tail.
function opList() {
  const box = h("div", { class: "card", id: "ops" });
  const heading = h("h3", {}), remark = h("p", { class: "note" }), body = h("tbody"), more = h("button", { type: "button", class: "quiet" });
  let sort = ["slowdown", -1], limit = 12, filter = state.find ?? "";
  const columns = [["slowdown", "slowdown"], ["latency_us", "latency"], ["size", "size"], ["submit_us", "submitted at"], ["flow", "flow"], ["group", "workload"]];
  const run = () => runs[runIndex()];
  const back = h("button", { type: "button", class: "quiet back", text: "← back", onclick: () => { const to = state.back; find.value = ""; find.dispatchEvent(new Event("input")); setState({ back: null, tail: null }); byId(to)?.scrollIntoView({ behavior: "smooth" }); } });
  const find = h("input", { type: "search", placeholder: "host 3, flow 12, a workload…", "aria-label": "Filter ops by host, flow or workload", value: filter, oninput: () => { filter = find.value; limit = 12; setState({ find: filter }, true); fill(); } });
  const heads = columns.map(([key, text]) => h("th", { scope: "col", class: key === "flow" || key === "group" ? null : "n" }, h("button", { type: "button", text, onclick: () => { sort = [key, sort[0] === key ? -sort[1] : -1]; fill(); } })));
  const pickRun = recorded().length > 1 ? select("Run", runs.map((one, i) => [i, one.label]).filter(([i]) => runs[i].recording), runIndex(), value => setState({ run: value, op: null, hop: null })) : null;
  box.append(h("div", { class: "head" }, heading, h("div", { class: "controls" }, back, pickRun, find, h("button", { type: "button", text: "CSV", title: "Copy these ops as CSV", onclick: () => copy(csv([["rank", ...columns.map(([key]) => key), "op"], ...places().map(i => { const ops = run().recording.ops; return [ops.rank[i] + 1, ops.slowdown[i], ops.latency_us[i], ops.size[i], ops.submit_us[i], flowName(run(), ops.flow[i]), ops.groups[ops.group[i]], ops.op[i]]; })])) }))),
    remark, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Ops of the tail" }, h("table", { class: "ops" }, h("thead", {}, h("tr", {}, ...heads, h("th", { scope: "col", text: "cause" }))), body)), more);
  more.addEventListener("click", () => { limit += 50; fill(); });
  function places() {
    const ops = run().recording?.ops;
    if (!ops) return [];
    const [low, high] = tailRange(), n = ops.count;
    // Rank 0 is the slowest op, at fraction 1.
    const inside = [];
    for (let i = 0; i < ops.rank.length; i++) {
      const fraction = 1 - ops.rank[i] / n;
      if (fraction >= low && (fraction <= high || high === 1)) inside.push(i);
    }
    const words = filter.trim().toLowerCase();
    const match = i => !words || contains(`${flowName(run(), ops.flow[i])} ${ops.groups[ops.group[i]]}`, words);
    const value = i => { const v = ops[sort[0]][i]; return v === null ? Infinity : v; };
    return inside.filter(match).sort((a, b) => { const [x, y] = [value(a), value(b)]; return (x === y ? a - b : x < y ? -1 : 1) * (x === y ? 1 : sort[1]); });
  }
  function fill() {
    const ops = run().recording?.ops;
    if (!ops) { heading.textContent = "No ops were recorded"; return; }
    const [low, high] = tailRange();
    const all = places();
    back.hidden = !state.back;
    const inRange = Math.max(1, Math.round((high - low) * ops.count));
    heading.textContent = filter.trim() ? `Ops of “${filter.trim().replace(/:$/, "")}”` : low <= 0 && high >= 1 ? "All ops, the slowest first" : high >= 1 ? `The slowest ${number((1 - low) * 100, 2)} % of ops` : `Ops from ${rankName(low)} to ${rankName(high)}`;
    remark.textContent = ops.kept === ops.count ? `${plural(all.length, "op")} of ${count(ops.count)}.` :
      `About ${plural(inRange, "op")} of ${count(ops.count)} are in this range; the page holds ${count(ops.kept)} ops: the ${ops.worst} slowest of each workload, and others spread evenly. ops.csv has all. Listed: ${count(all.length)}.`;
    heads.forEach((head, i) => { if (columns[i][0] === sort[0]) head.setAttribute("aria-sort", sort[1] < 0 ? "descending" : "ascending"); else head.removeAttribute("aria-sort"); });
    body.replaceChildren(...all.slice(0, limit).map(i => {
      const cause = causeOf(run(), ops.flow[i], ops.op[i], ops.submit_us[i]);
      const current = state.op !== undefined && cause !== null && Number(state.op) === cause;
      return h("tr", { class: current ? "current" : null },
        h("td", { class: "n", text: ops.slowdown[i] === null ? "unfinished" : number(ops.slowdown[i], 3) + "×" }),
        h("td", { class: "n", text: (ops.op[i] === null ? "> " : "") + micros(ops.latency_us[i]) }), h("td", { class: "n", text: bytes(ops.size[i]) }),
        h("td", { class: "n", text: micros(ops.submit_us[i]) }), h("td", { text: flowName(run(), ops.flow[i]) }), h("td", { text: ops.groups[ops.group[i]] }),
        h("td", {}, cause === null ? h("span", { class: "soft", text: "–" }) : h("button", { type: "button", class: "follow", "aria-pressed": String(current), text: "follow", "aria-label": `Follow the op of ${flowName(run(), ops.flow[i])}, ${bytes(ops.size[i])}`, onclick: () => { setState({ op: cause, hop: null }); byId("cause")?.scrollIntoView({ behavior: "smooth", block: "start" }); } })));
    }));
    more.hidden = all.length <= limit;
    more.textContent = `Show more of ${count(all.length)}`;
  }
  onState(["tail", "run", "op", "back"], () => { if (pickRun) pickRun.value = runIndex(); fill(); });
  fill();
  return box;
}

function flowName(run, flow) {
  const known = run.recording.ops.flows[flow];
  return known ? `flow ${flow}: host ${known[0]} → host ${known[1]}` : `flow ${flow}`;
}
