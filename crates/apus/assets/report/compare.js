// Comparison of settings or algorithms: two metrics against each other, all metrics, and a table.
const comparison = data.comparison;
const valueOf = (row, i) => row.numbers[i] ? row.numbers[i][0] ?? row.numbers[i][1] : null;
const isOpen = (row, i) => row.numbers[i] && row.numbers[i][0] === null;

function comparePictures() {
  if (!comparison || !comparison.rows.length) return null;
  const { rows, axes } = comparison, beside = data.command === "emulate";
  // Neither the simulator nor the kernel is better: they should agree.
  const metrics = beside ? comparison.metrics.map(metric => ({ ...metric, better: 0 })) : comparison.metrics;
  // A size range with all ops of its workload duplicates the numbers of the workload.
  const same = i => metrics.findIndex((_, j) => rows.every(row => JSON.stringify(row.numbers[j]) === JSON.stringify(row.numbers[i])));
  const measured = metrics.map((_, i) => i).filter(i => rows.some(row => valueOf(row, i) !== null) && !(/[. ]size[. ]/.test(metrics[i].pattern) && same(i) < i && /slowdown/.test(metrics[same(i)].pattern)));
  if (!measured.length) return null;
  // If there are few rows, each has its own colour; in a sweep, each value of the first setting has one.
  const colours = rows.map((row, i) => axes.length ? colour(Math.max(0, axes[0].values.indexOf(row.values[0])) % 8) : rows.length <= 8 ? colour(i) : theme.series[0]);
  const name = i => words(metrics[i].heading);
  const options = measured.map(i => [i, name(i)]);
  let [x, y] = comparison.against.map(i => measured.includes(i) ? i : measured[0]);
  const varied = i => new Set(rows.map(row => JSON.stringify(row.numbers[i]))).size > 1;
  const titled = i => name(i) + (metrics[i].unit ? `, ${metrics[i].unit.replace(/^us$/, "µs")}` : "");
  const numberOf = (row, i) => row.numbers[i] ? bounded({ value: row.numbers[i][0], lower: row.numbers[i][1], upper: row.numbers[i][2] }, metrics[i]) : "–";

  // Difference of a row from another one. `by` is the difference of both numbers, which are medians over the seeds.
  // `mean` is the mean of the differences seed by seed, and `half` is half of its 95 % confidence interval by Student's
  // t, or null for a single seed. A difference is clear if it is above 1 % and the interval excludes 0 on the same
  // side.
  const paired = (row, other, i) => {
    if ([row, other].some(one => valueOf(one, i) === null || isOpen(one, i))) return null;
    const [of, from] = [row, other].map(one => one.numbers[i][5] ?? [one.numbers[i][0]]);
    const all = of.map((v, seed) => v === null || (from[seed] ?? null) === null ? null : v - from[seed]).filter(v => v !== null), n = all.length;
    // If seeds with bounds instead of numbers were left out, the remaining seeds would look better than all of them
    // are.
    if (n < of.length || n < from.length) return null;
    const mean = all.reduce((a, b) => a + b) / n, squares = all.reduce((sum, d) => sum + (d - mean) ** 2, 0);
    const half = n > 1 ? comparison.quantiles[n - 2] * Math.sqrt(squares / (n - 1) / n) : null;
    const by = valueOf(row, i) - valueOf(other, i), large = Math.abs(by) > 0.01 * Math.abs(valueOf(other, i));
    // The ranges over the seeds do not overlap, but there are too few seeds for an interval that excludes 0.
    const apart = ends(row, i)[0] > ends(other, i)[1] || ends(row, i)[1] < ends(other, i)[0];
    return { by, mean, half, seeds: n, clear: large && (half === null || Math.abs(mean) > half && mean * by > 0), few: large && apart && half !== null && Math.abs(mean) <= half };
  };
  const seeds = Math.max(...rows.flatMap(row => row.numbers.map(number => number?.[5]?.length ?? 1)));
  const rule = `${seeds > 1 ? "A difference is clear if it is above 1 %, and the 95 % confidence interval of its mean over the seeds (Student’s t, paired by seed) excludes 0. If the interval includes 0 although the ranges over the seeds do not overlap, there are too few seeds to tell." : "A difference is clear if it is above 1 %; more seeds are needed to rule out chance."} Not compared: numbers of which a seed has only a lower bound.`;
  const ends = (row, i) => [row.numbers[i][3] ?? valueOf(row, i), row.numbers[i][4] ?? Infinity];
  // In large comparisons this cheap test decides most pairs.
  const larger = (row, other, i) => (metrics[i].better || 1) * (valueOf(row, i) - valueOf(other, i)) > 0.01 * Math.abs(valueOf(other, i));
  const clearly = (row, other, i) => {
    const one = paired(row, other, i);
    return one !== null && one.clear && (metrics[i].better || 1) * one.by > 0;
  };
  const counted = i => metrics[i].unit === "" && /unfinished|stalled|packets/.test(metrics[i].pattern);
  const signedBy = (by, i) => `${by > 0 ? "+" : "−"}${quantity(Math.abs(by), metrics[i]).replace(/\s%$/, "\u00a0points")}`;
  // Returns the change in percent of the other row or as a factor. Shares, counts and differences from zero have their
  // own unit.
  const change = (row, other, i) => {
    const base = Math.abs(valueOf(other, i)), { by } = paired(row, other, i), factor = 1 + by / base;
    return !base || metrics[i].fraction || counted(i) ? `${name(i)} ${signedBy(by, i)}` : factor > 2 ? `${number(factor, 2)} times the ${name(i)}` : `${name(i)} ${signed((factor - 1) * 100)}`;
  };
  // Describes a difference that is not clear.
  const unsure = (row, other, i) => !paired(row, other, i) ? `${name(i)} not compared` : paired(row, other, i).few ? `${change(row, other, i)}, but ${paired(row, other, i).seeds} seeds are too few to tell` : `no clear difference in ${name(i)}`;
  // A row is beaten if another row is clearly better in one of the two numbers, and not clearly worse in the other.
  const beats = (a, b) => a !== b && [x, y].some(i => larger(a, b, i)) && [x, y].some(i => clearly(a, b, i)) && [x, y].every(i => paired(a, b, i) && !clearly(b, a, i));
  const comparable = () => rows.filter(row => !isOpen(row, x) && !isOpen(row, y) && valueOf(row, x) !== null && valueOf(row, y) !== null);
  const beaten = row => comparable().find(other => beats(other, row));
  // Returns the rows that no other row beats, ordered by the sum of their ranks in both numbers. If every row is
  // beaten, all rows are returned.
  const fronts = new Map();
  const front = () => { const key = `${x} ${y}`; if (!fronts.has(key)) fronts.set(key, findFront()); return fronts.get(key); };
  const findFront = () => {
    const all = comparable(), kept = beside ? all : all.filter(row => !beaten(row)), place = (row, i) => (kept.length ? kept : all).filter(other => (metrics[i].better || 1) * (valueOf(other, i) - valueOf(row, i)) > 0).length;
    const places = new Map((kept.length ? kept : all).map(row => [row, place(row, x) + place(row, y)]));
    return [...places.keys()].sort((a, b) => places.get(a) - places.get(b));
  };
  const against = picture({ id: "trade-off", title: "Two metrics against each other", about: `Each point is a row of the table, the bars its spread over the seeds. Filled points are the Pareto front: no other point is clearly better in one of the two metrics without being clearly worse in the other. ${rule}`,
    controls: [select("Across", options, x, value => { x = Number(value); against.refresh(); }), select("Up", options, y, value => { y = Number(value); against.refresh(); })],
    draw: width => {
      const best = new Set(front());
      const points = rows.map((row, i) => ({ row, i, x: valueOf(row, x), y: valueOf(row, y), best: best.has(row) })).filter(point => point.x !== null && point.y !== null);
      const finite = (entry, j, other) => entry[j] === null ? other : entry[j];
      // Lower bounds have no spread, because the values of their seeds are bounds too.
      const bars = points.filter(({ row }) => !isOpen(row, x) && !isOpen(row, y) && (row.numbers[x][3] < row.numbers[x][4] || row.numbers[y][3] < row.numbers[y][4]));
      const range = (key, i) => { const all = points.flatMap(({ row }) => [finite(row.numbers[i], 3, valueOf(row, i)), finite(row.numbers[i], 4, valueOf(row, i))]); const [a, b] = [Math.min(...all), Math.max(...all)]; const pad = (b - a) * 0.1 || Math.abs(a) * 0.1 || 1; return [a >= 0 ? Math.max(0, a - pad) : a - pad, b + pad]; };
      const chosen = points.filter(point => point.row.chosen);
      const step = points.filter(point => point.best && !beside).sort((a, b) => a.x - b.x);
      const labelled = points.length <= 14 ? points : points.filter(point => point.best || point.row.chosen);
      // A label above its point is moved below if it would cover another label. If it would still cover one, it is
      // omitted, and hovering shows the name.
      const [xs, ys] = [svgScale(range("x", x), "linear", 66, width - 24), svgScale(range("y", y), "linear", 298, 16)], middle = range("x", x).reduce((a, b) => a + b) / 2;
      const named = [];
      const place = (point, dy) => { const size = 6.5 * short(point.row).length + 9, at = xs.to(point.x); return { point, dy, left: point.x > middle ? at - size : at, right: point.x > middle ? at : at + size, top: ys.to(point.y) + dy }; };
      const free = one => named.every(other => Math.abs(other.top - one.top) >= 13 || one.right < other.left || other.right < one.left);
      for (const point of [...labelled].sort((a, b) => b.best - a.best || b.row.chosen - a.row.chosen)) {
        // If one point lies above another, the label of the lower one is placed below.
        const under = points.some(other => other !== point && Math.abs(xs.to(other.x) - xs.to(point.x)) < 60 && ys.to(other.y) <= ys.to(point.y) && ys.to(point.y) - ys.to(other.y) < 22);
        const one = (under ? [13, -9] : [-9, 13]).map(dy => place(point, dy)).find(free); if (one) named.push(one); }
      const svg = plotOf({ width, height: 340, marginLeft: 66, marginBottom: 42, marginRight: 24, marginTop: 16, style: { background: "transparent", color: theme.ink, fontSize: "11.5px", fontFamily: "inherit", overflow: "visible" },
        x: { domain: range("x", x), label: null, grid: false, tickFormat: v => number(v, 3), ticks: Math.round(width / 100) }, y: { domain: range("y", y), label: null, tickFormat: v => number(v, 4), ticks: 6 },
        marks: [Plot.gridY({ stroke: theme.line, strokeOpacity: 1 }), Plot.gridX({ stroke: theme.line, strokeOpacity: 1 }), Plot.line(step, { x: "x", y: "y", stroke: theme.soft, strokeDasharray: "4 4" }),
          Plot.link(bars, { x1: p => finite(p.row.numbers[x], 3, p.x), x2: p => finite(p.row.numbers[x], 4, p.x), y1: "y", y2: "y", stroke: p => colours[p.i], strokeOpacity: 0.5 }), Plot.link(bars, { x1: "x", x2: "x", y1: p => finite(p.row.numbers[y], 3, p.y), y2: p => finite(p.row.numbers[y], 4, p.y), stroke: p => colours[p.i], strokeOpacity: 0.5 }),
          Plot.dot(points, { x: "x", y: "y", r: 5, fill: p => p.best ? colours[p.i] : theme.card, stroke: p => colours[p.i], strokeWidth: 2 }), Plot.dot(chosen, { x: "x", y: "y", r: 10, stroke: theme.accent, strokeWidth: 2 }),
          // The true value lies beyond a lower bound, in the direction of the arrow.
          Plot.text(points.filter(p => isOpen(p.row, x)), { x: "x", y: "y", text: () => "→", dx: 13, fontSize: 15, fill: p => colours[p.i] }), Plot.text(points.filter(p => isOpen(p.row, y)), { x: "x", y: "y", text: () => "↑", dy: -13, fontSize: 15, fill: p => colours[p.i] }),
          ...[true, false].flatMap(right => [-9, 13].map(dy => Plot.text(named.filter(one => (one.point.x > middle) === right && one.dy === dy).map(one => one.point), { x: "x", y: "y", text: p => short(p.row), dx: right ? -9 : 9, textAnchor: right ? "end" : "start", dy, fontSize: 11.5, fontWeight: 600, fill: p => colours[p.i], stroke: theme.card, strokeWidth: 3 })))] });
      label(svg, width / 2 + 30, 337, titled(x) + arrow(metrics[x].better, "→", "←"), "middle");
      label(svg, 2, 9, titled(y) + arrow(metrics[y].better, "↑", "↓"), "start");
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", `${name(y)} against ${name(x)}: ${rows.slice(0, 12).map(row => `${row.label} ${numberOf(row, x)}, ${numberOf(row, y)}`).join("; ")}`);
      svg.querySelectorAll('[data-mark="dot"] circle').forEach((node, i) => {
        const point = points[i];
        if (!point) return;
        node.addEventListener("pointermove", event => showTip(rowTip(point.row), event.clientX + 14, event.clientY + 14));
        node.addEventListener("pointerleave", hideTip);
      });
      return svg;
    },
    note: () => { const open = rows.filter(row => isOpen(row, x) || isOpen(row, y)); const best = front(); return [rows.some(row => [x, y].some(i => row.numbers[i] && row.numbers[i][3] < row.numbers[i][4])) ? "Thin bars: smallest to largest value over the seeds." : "", beside ? "The closer the points, the better the simulator matches the kernel." : best.length ? `Filled (Pareto front): ${best.map(row => short(row)).slice(0, 8).join(", ")}.` : "", open.length ? `${open.map(row => short(row)).slice(0, 6).join(", ")}: ops had not ended. The lower bound is drawn; the arrow shows where the true value lies.` : ""].join(" ").trim(); },
    rows: () => tableRows() });
  const arrow = (better, up, down) => better > 0 ? ` (better ${up})` : better < 0 ? ` (better ${down})` : "";
  // Values of settings may contain commas, so labels are not split.
  const parts = row => row.parts ?? [];
  // Parts that distinguish rows in addition to the first `shown` settings.
  const others = (row, shown) => [...parts(row), ...axes.slice(shown).map((axis, i) => `${axis.key} = ${row.values[shown + i]}`)].join(", ");
  const short = row => { const text = axes.length ? [...row.values, ...parts(row)].join(" · ") : row.label; return text.length > 34 ? text.slice(0, 33) + "…" : text; };
  const full = row => axes.length ? [...axes.map((axis, i) => `${axis.key.split(".").at(-1)} ${row.values[i]}`), ...parts(row)].join(", ") : row.label;
  const rowTip = row => [h("div", { class: "tip-head", text: full(row) + (row.chosen ? " (chosen)" : "") }), ...measured.slice(0, 12).map(i => h("div", { class: "tip-row" }, h("span", { text: name(i) }), h("b", { text: numberOf(row, i) })))];

  // Names the rows that are not beaten in the two numbers, their costs, and the strengths of the other rows.
  const verdict = () => {
    const best = front(), others = rows.filter(row => !best.includes(row));
    if (!best.length || rows.length < 2) return null;
    const even = best.every(a => best.every(b => a === b || ![x, y].some(i => clearly(a, b, i) || !paired(a, b, i))));
    const both = row => `${name(y)} ${numberOf(row, y)}, ${name(x)} ${numberOf(row, x)}`;
    // Counts only clear differences of 5 % or more; of several numbers of one kind, the largest.
    const usable = i => metrics[i].better && !rows.some(row => isOpen(row, i) || valueOf(row, i) === null);
    const factor = (row, other, i) => { const [a, b] = [valueOf(row, i), valueOf(other, i)].map(Math.abs); return Math.max(a, b) / (Math.min(a, b) || Infinity); };
    const sizeable = (row, other, i) => factor(row, other, i) >= 1.05 || !valueOf(row, i) !== !valueOf(other, i);
    const kind = i => metrics[i].name.replace(/slowdown/.test(metrics[i].pattern) ? /(\.size\.\d+)?\.slowdown(\.(lower|upper))?(\.[^.]*)?$/ : /\.(p\d[\d_]*|max_[^.]*|mean_[^.]*|unfinished)$/, "");
    const clear = (row, other, worse, without) => {
      const kinds = new Set();
      return measured.filter(i => usable(i) && !without.includes(i) && sizeable(row, other, i) && (worse ? clearly(other, row, i) : clearly(row, other, i))).sort((a, b) => factor(row, other, b) - factor(row, other, a)).filter(i => !kinds.has(kind(i)) && kinds.add(kind(i)))
        .slice(0, 3).map(i => change(row, other, i));
    };
    const list = all => all.join("; ");
    const loser = row => {
      const by = comparable().includes(row) ? best.find(other => beats(other, row)) ?? beaten(row) : null;
      if (!by) return `: ${[x, y].filter(i => isOpen(row, i) || valueOf(row, i) === null).map(i => `${name(i)} ${isOpen(row, i) ? "is not known, because ops had not ended" : "was not measured"}`).join("; ")}`;
      const behind = [x, y].filter(i => clearly(by, row, i)), open = [x, y].filter(i => !behind.includes(i)), loss = clear(row, by, true, [x, y]), gain = clear(row, by, false, [x, y]);
      return `: behind ${short(by)}: ${list([...behind.map(i => change(row, by, i)), ...loss])}${open.length ? ` (${open.map(i => unsure(row, by, i)).join("; ")})` : ""}${gain.length ? `. In return: ${list(gain)}` : ""}`;
    };
    const winner = row => {
      const [dearest] = others.map(other => [other, clear(row, other, true, [x, y])]).filter(([, cost]) => cost.length);
      return `: ${both(row)}${dearest ? `. Cost compared with ${short(dearest[0])}: ${list(dearest[1])}` : ""}`;
    };
    const between = best.length === 2 ? (() => { const [a, b] = best, gain = clear(a, b, false, []), loss = clear(a, b, true, []), few = measured.filter(i => usable(i) && paired(a, b, i)?.few && sizeable(a, b, i)).sort((m, n) => factor(a, b, n) - factor(a, b, m)).slice(0, 3); return h("li", {}, `${short(a)} against ${short(b)}: ${gain.length ? `better: ${list(gain)}` : ""}${gain.length && loss.length ? ". " : ""}${loss.length ? `${gain.length ? "W" : "w"}orse: ${list(loss)}` : ""}${gain.length || loss.length ? "" : "no clear difference of 5 % or more in any number"}${few.length ? ` (too few seeds to tell: ${list(few.map(i => change(a, b, i)))})` : ""}.`); })() : null;
    return h("div", { class: "verdict" }, h("p", { class: "answer" }, h("b", { text: best.map(short).join(" or ") }), best.length > 1 ? (even ? `: no clear difference in ${name(y)} and ${name(x)}.` : `: each is better in one of ${name(y)} and ${name(x)}, or cannot be compared in one.`) : ` is not beaten in ${name(y)} and ${name(x)}.`),
      h("p", { class: "note", text: `Ranked by ${name(y)} and ${name(x)}. ${rule}${seeds > 1 && seeds < 5 ? ` With ${seeds} seeds, intervals are wide; more seeds make them narrower.` : ""}` }),
      h("ul", { class: "reasons" }, ...best.slice(0, 6).map(row => h("li", {}, h("b", { text: short(row) }), winner(row) + ".")), between, ...others.slice(0, 6).map(row => h("li", {}, h("b", { text: short(row) }), loser(row) + "."))));
  };

  const parallel = picture({ id: "parallel-coordinates", title: "All metrics in parallel", wide: false, about: "Each line is a row of the table. Axes are oriented so that better is up, if one direction is better. Point at a line or a name to follow it.",
    draw: width => drawParallel(width), note: () => `${beside ? "All axes grow upwards." : "Up is better, except for numbers without a better direction, which grow upwards."} Axes end at the smallest and the largest value.${left ? ` There is no room for ${plural(left, "more number")}; the pictures and the table below show all.` : ""}`, rows: () => tableRows() });
  let left = 0;
  function drawParallel(width) {
    // If only few numbers fit, a queue and an RTT are among them.
    const kinds = ["mean_queue", "fabric_rtt"].map(kind => measured.find(i => metrics[i].pattern.includes(kind) && !comparison.against.includes(i))).filter(i => i !== undefined), begin = [...comparison.against, ...kinds];
    const first = [...begin, ...measured.filter(i => !begin.includes(i))].filter(i => measured.includes(i));
    const varying = first.filter(i => { const all = rows.map(row => valueOf(row, i)).filter(v => v !== null); return new Set(all).size > 1; });
    const shown = varying.slice(0, Math.max(3, Math.floor(width / 92)));
    left = varying.length - shown.length;
    if (!shown.length) return h("p", { class: "note", text: "All numbers are equal." });
    const height = 340, top = 62, bottom = 30, space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    const make = (tag, attributes, text) => { const node = document.createElementNS(space, tag); for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value); if (text !== undefined) node.textContent = text; svg.append(node); return node; };
    for (const [key, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "font-size": 11, "aria-label": `Parallel coordinates of ${rows.length} rows over ${shown.map(i => metrics[i].heading).join(", ")}` })) svg.setAttribute(key, value);
    const at = place => shown.length === 1 ? width / 2 : 44 + place / (shown.length - 1) * (width - 88);
    const scales = shown.map(i => { const all = rows.map(row => valueOf(row, i)).filter(v => v !== null); const [a, b] = [Math.min(...all), Math.max(...all)]; const up = metrics[i].better >= 0; return { a, b, to: v => { const t = (v - a) / (b - a); return up ? height - bottom - t * (height - bottom - top) : top + t * (height - bottom - top); }, ends: up ? [b, a] : [a, b] }; });
    shown.forEach((i, place) => {
      make("line", { x1: at(place), x2: at(place), y1: top, y2: height - bottom, stroke: theme.line, "stroke-width": 1.5 });
      const lines = [""];
      for (const word of name(i).split(" ")) { if ((lines.at(-1) + word).length > 13 && lines.at(-1)) lines.push(word); else lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word; }
      lines.slice(0, 3).forEach((text, n) => make("text", { x: at(place), y: 12 + 12 * n, "text-anchor": "middle", fill: theme.ink }, text));
      make("text", { x: at(place), y: top - 6, "text-anchor": "middle", fill: theme.soft }, quantity(scales[place].ends[0], metrics[i]));
      make("text", { x: at(place), y: height - bottom + 15, "text-anchor": "middle", fill: theme.soft }, quantity(scales[place].ends[1], metrics[i]));
    });
    const paths = rows.map((row, r) => {
      const points = shown.map((i, place) => valueOf(row, i) === null ? null : [at(place), scales[place].to(valueOf(row, i))]).filter(Boolean);
      const path = make("polyline", { points: points.map(point => point.map(v => v.toFixed(1)).join()).join(" "), fill: "none", stroke: row.chosen ? theme.accent : colours[r], "stroke-width": row.chosen ? 3.5 : 2, "stroke-opacity": rows.length > 30 ? 0.45 : 0.85 });
      path.addEventListener("pointermove", event => { light(r); showTip(rowTip(row), event.clientX + 14, event.clientY + 14); });
      path.addEventListener("pointerleave", () => { light(null); hideTip(); });
      return path;
    });
    const light = which => paths.forEach((path, r) => path.setAttribute("stroke-opacity", which === null ? (rows.length > 30 ? 0.45 : 0.85) : r === which ? 1 : 0.12));
    const names = rows.length > 16 ? null : h("div", { class: "legend", role: "group", "aria-label": "Rows" }, ...rows.map((row, r) => h("button", { type: "button", onmouseenter: () => light(r), onmouseleave: () => light(null), onfocus: () => light(r), onblur: () => light(null) }, h("i", { style: { borderTopColor: row.chosen ? theme.accent : colours[r] } }), short(row) + (row.chosen ? " (chosen)" : ""))));
    return h("div", {}, svg, names);
  }
  const tableRows = () => [["row", ...axes.map(axis => axis.key), ...measured.map(i => metrics[i].name)], ...rows.map(row => [row.label, ...row.values, ...measured.map(i => valueOf(row, i))])];
  const small = axes.length >= 2 ? smallMultiples() : axes.length === 1 ? overAxis() : barPictures();
  function overAxis() {
    const box = h("div", { class: "grid four-wide" });
    for (const i of measured) {
      const one = picture({ id: "over-" + metrics[i].name, title: capital(name(i)), about: definition(metrics[i].name),
        draw: width => axisLines(width, i, rows, axes[0], 200), rows: () => tableRows() });
      box.append(one.figure);
    }
    return box;
  }
  function axisLines(width, i, members, axis, height, domain) {
    const other = row => others(row, 1);
    const names = [...new Set(members.map(other))];
    const order = axis.values;
    const series = names.map((name, n) => { const own = members.filter(row => other(row) === name && valueOf(row, i) !== null); return { name: name || metrics[i].heading, colour: colour(n), x: own.map(row => order.indexOf(row.values[axes.indexOf(axis)])), y: own.map(row => valueOf(row, i)), own }; });
    const areas = series.filter(one => one.own.some(row => row.numbers[i][3] < row.numbers[i][4])).map(one => ({ x: one.x, low: one.own.map(row => row.numbers[i][3]), high: one.own.map(row => row.numbers[i][4] ?? valueOf(row, i)), colour: one.colour }));
    const step = Math.ceil(order.length / Math.max(2, width / 62));
    const chart = lineChart(width, { series, areas, points: true, xLabel: axis.key.split(".").at(-1), yLabel: titled(i), height, xDomain: [-0.3, order.length - 0.7], xTicks: order.map((_, n) => n).filter(n => n % step === 0), xFormat: n => order[Math.round(n)] ?? "", readout: n => `${axis.key} = ${order[n]}` });
    const pick = members.find(row => row.chosen);
    if (pick) {
      const x = svgScale([-0.3, order.length - 0.7], "linear", 58, width - 18).to(order.indexOf(pick.values[0]));
      const rule = document.createElementNS("http://www.w3.org/2000/svg", "line");
      for (const [key, value] of Object.entries({ x1: x, x2: x, y1: 22, y2: height - 38, stroke: theme.accent, "stroke-width": 2, "stroke-dasharray": "5 4" })) rule.setAttribute(key, value);
      chart.querySelector("svg").append(rule);
      label(chart.querySelector("svg"), x + 5, 32, "chosen", "start");
    }
    return names.length > 1 ? h("div", {}, chart, legend(series, () => {})) : chart;
  }
  // Two settings: a small picture for each value of the second setting, on equal axes.
  function smallMultiples() {
    let i = measured[0];
    const one = picture({ id: "small-multiples", title: `Over ${axes[0].key}, for each ${axes[1].key}`, wide: true, about: "All small pictures have the same axes.",
      controls: [select("Number", options, i, value => { i = Number(value); one.refresh(); })],
      draw: width => {
        const per = Math.max(1, Math.min(axes[1].values.length, Math.floor(width / 240))), own = Math.floor(width / per) - 17;
        const all = rows.map(row => valueOf(row, i)).filter(v => v !== null), high = Math.max(...all, 0), low = Math.min(...all, 0);
        return h("div", { class: "small" }, ...axes[1].values.map(value => h("div", {}, h("h4", { text: `${axes[1].key.split(".").at(-1)} = ${value}` }), axisLinesFixed(own, i, rows.filter(row => row.values[1] === value), [low, high]))));
      }, rows: () => tableRows() });
    return h("div", { class: "grid" }, one.figure);
  }
  function axisLinesFixed(width, i, members, [low, high]) {
    const axis = axes[0];
    // Other settings and variants have separate lines, in the same colours in all small pictures.
    const other = row => others(row, 2);
    const names = [...new Set(rows.map(other))];
    const series = names.map((name, n) => { const own = members.filter(row => other(row) === name && valueOf(row, i) !== null); return { name: name || metrics[i].heading, colour: colour(n), dash: dash(n), x: own.map(row => axis.values.indexOf(row.values[0])), y: own.map(row => valueOf(row, i)) }; }).filter(one => one.x.length);
    const step = Math.ceil(axis.values.length / Math.max(2, width / 62)), span = axis.values.map((_, n) => n);
    const chart = lineChart(width, { series, areas: [{ x: [-0.3, axis.values.length - 0.7], low: [low, low], high: [high, high], colour: theme.card, opacity: 0 }], points: true, xLabel: axis.key.split(".").at(-1), yLabel: titled(i), height: 180, xDomain: [-0.3, axis.values.length - 0.7], xTicks: span.filter(n => n % step === 0), xFormat: n => axis.values[Math.round(n)] ?? "", readout: n => `${axis.key} = ${axis.values[n]}` });
    return names.length > 1 ? h("div", {}, chart, legend(series, () => {})) : chart;
  }
  // Algorithms: a small picture per number, with bars and the spread over the seeds.
  function barPictures() {
    let whole = false;
    const one = picture({ id: "bars", title: "Metrics one by one", wide: true, about: "Median over the seeds; the line is the smallest to the largest value. An arrow marks a lower bound: ops had not ended.",
      draw: width => {
        const per = Math.max(1, Math.floor(width / 300)), own = Math.floor(width / per) - 16, all = measured.filter(varied), shown = whole ? all : all.slice(0, 9);
        const more = all.length > shown.length ? h("button", { type: "button", class: "quiet", text: `Show ${all.length - shown.length} more numbers`, onclick: () => { whole = true; one.refresh(); } }) : null;
        return h("div", {}, h("div", { class: "small" }, ...shown.map(i => h("div", {}, h("h4", {}, define(name(i), definition(metrics[i].name)), h("span", { class: "soft", text: arrow(metrics[i].better, "↑", "↓").replace(/[()]/g, "") })), bars(own, i)))), more);
      }, note: measured.every(varied) ? "" : `Equal for all: ${measured.filter(i => !varied(i)).map(i => `${name(i)} ${numberOf(rows[0], i)}`).join(", ")}.`, rows: () => tableRows() });
    return h("div", { class: "grid" }, one.figure);
  }
  function bars(width, i) {
    const top = Math.max(...rows.map(row => row.numbers[i] ? Math.max(valueOf(row, i), row.numbers[i][4] ?? 0) : 0)) || 1;
    const shown = rows.map((row, r) => ({ name: row.label, value: valueOf(row, i), row, r })).filter(bar => bar.value !== null);
    const svg = plotOf({ width, height: 26 * rows.length + 8, marginLeft: 84, marginRight: 74, marginTop: 2, marginBottom: 4, style: { background: "transparent", color: theme.ink, fontSize: "11.5px", fontFamily: "inherit", overflow: "visible" },
      x: { domain: [0, top], axis: null }, y: { domain: rows.map(row => row.label), label: null, tickSize: 0 },
      marks: [Plot.barX(shown, { x: "value", y: "name", fill: bar => colours[bar.r], fillOpacity: 0.85, insetTop: 4, insetBottom: 4 }), Plot.link(shown.filter(bar => bar.row.numbers[i][4] !== null && bar.row.numbers[i][3] < bar.row.numbers[i][4]), { x1: bar => bar.row.numbers[i][3], x2: bar => bar.row.numbers[i][4], y1: "name", y2: "name", stroke: theme.ink, strokeWidth: 1.5 }),
        Plot.text(shown, { x: bar => Math.max(bar.value, bar.row.numbers[i][4] ?? 0), y: "name", text: bar => numberOf(bar.row, i), dx: 6, textAnchor: "start", fill: theme.ink })] });
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${metrics[i].heading}: ${rows.map(row => `${row.label} ${numberOf(row, i)}`).join("; ")}`);
    return svg;
  }
  const curves = comparison.distributions.length ? distributionPicture() : null;
  // Distributions of all rows on the same axes, which stretch the tail.
  function distributionPicture() {
    const sets = comparison.distributions, firm = sets.every(set => set.rows.every(([, fractions]) => fractions.length < 8));
    let which = 0, log = true;
    const self = picture({ id: "percentiles", title: "Delays by percentile", wide: true, about: `${firm ? "Medians over the seeds of each percentile. " : ""}The axis stretches the tail: each step is ten times rarer. A line ends where ops had not ended.`,
      controls: [select("Distribution", sets.map(({ name }, i) => [i, name]), 0, value => { which = Number(value); lines = null; self.refresh(); }), select("Scale", [["log", "logarithmic"], ["linear", "linear"]], "log", value => { log = value === "log"; self.refresh(); })],
      draw: width => {
        lines ??= rows.map((row, r) => tailLine(short(row), sets[which].rows[r], { colour: rows.length <= 8 ? colours[r] : colour(r), dash: dash(r) })).filter(one => one.x.length);
        return h("div", {}, tailChart(width, lines, sets[which].name, log, { points: firm }), legend(lines, () => self.refresh()));
      }, rows: () => [["row", "distribution", "value, us", "fraction at or below"], ...sets.flatMap(({ name, rows: of }) => rows.flatMap((row, r) => of[r][0].map((v, i) => [row.label, name, v, of[r][1][i]])))] });
    let lines = null;
    return h("div", { class: "grid" }, self.figure);
  }
  // Difference of a row from the first row of the verdict, in its unit and in percent. Green is better, red is worse,
  // grey is unclear.
  const reference = data.command === "compare" ? front()[0] ?? rows[0] : null;
  function difference(row, i) {
    const one = reference && row !== reference ? paired(row, reference, i) : null;
    if (!one || one.by === 0) return null;
    const { by, mean, half, clear } = one, base = valueOf(reference, i);
    const share = base && !metrics[i].fraction && !counted(i) ? ` (${signed(by / Math.abs(base) * 100)})` : "", tone = clear && metrics[i].better ? (metrics[i].better * by > 0 ? "better" : "worse") : "";
    const interval = half === null ? "of one seed" : `mean over ${one.seeds} seeds ${mean > 0 ? "+" : "−"}${quantity(Math.abs(mean), metrics[i])} ± ${quantity(half, metrics[i])} (95 %)`;
    const hover = { onpointermove: event => showTip(interval, event.clientX + 14, event.clientY + 14), onpointerleave: hideTip };
    if (!clear) return h("span", { class: "beside", ...hover, text: one.few ? "too few seeds to tell" : "no clear difference" });
    return h("span", { class: `beside ${tone}`, ...hover, text: signedBy(by, i) + share });
  }
  const heads = h("tr", {}, h("td"), ...measured.map(i => h("th", { scope: "col", class: "n" }, define(name(i), definition(metrics[i].name)))));
  const limit = 200;
  const cell = (row, i) => {
    const entry = row.numbers[i];
    const best = metrics[i].better && entry && entry[0] !== null && rows.length > 1 && rows.every(other => other === row || valueOf(other, i) === null || clearly(row, other, i));
    return h("td", { class: best ? "n best" : "n" }, numberOf(row, i), entry && entry[0] !== null && entry[3] !== null && entry[3] < (entry[4] ?? Infinity) ? h("span", { class: "beside", text: `${quantity(entry[3], metrics[i])} … ${entry[4] === null ? "unbounded" : quantity(entry[4], metrics[i])}` }) : null, difference(row, i));
  };
  const wide = () => h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Numbers" }, h("table", { class: "wide-numbers" }, h("caption", { text: comparison.caption + (rows.length > limit ? `; the first ${limit} of ${rows.length} rows` : "") }), h("thead", {}, heads),
    h("tbody", {}, ...rows.slice(0, limit).map((row, r) => h("tr", { class: row.chosen ? "current" : null }, h("th", { scope: "row" }, rows.length <= 8 ? h("i", { class: "dot", style: { background: colours[r] } }) : null, full(row) + (row.chosen ? " ← chosen" : "")),
      ...measured.map(i => cell(row, i)))))));
  // Few rows are shown as columns, as in the table of a run with variants.
  const about = () => beside ? capital(comparison.caption) + "." : `${comparison.caption}, with the range over the seeds below.${reference ? ` Then the difference from ${reference.label}: green is better, red is worse; point at a difference for its interval.` : ""} Bold: clearly better than all others. ${rule}`;
  const turned = () => h("div", { class: "card" }, h("p", { class: "note", text: about() }), h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Numbers" }, h("table", { class: "wide-numbers" },
    h("thead", {}, h("tr", {}, h("td"), ...rows.map((row, r) => h("th", { scope: "col", class: "n" }, h("i", { class: "dot", style: { background: colours[r] } }), row.label)))),
    h("tbody", {}, ...measured.map(i => h("tr", { "data-metric": metrics[i].name }, h("th", { scope: "row" }, define(name(i), definition(metrics[i].name))), ...rows.map(row => cell(row, i))))))));
  const chosen = rows.find(row => row.chosen);
  // Equal sentences of several runs are shown once; if there are many sentences, only a few are shown at first.
  const reasons = [...new Set(comparison.reasons.map(text => pretty(data.command === "compare" ? text : capital(text))))], few = reasons.length > 7 ? 4 : reasons.length;
  return section("comparison", { tune: "Chosen value", sweep: "Settings side by side", emulate: "Simulator and kernel" }[data.command] ?? "Side by side", null,
    chosen ? h("div", { class: "verdict" }, h("p", { class: "answer" }, "Chosen: ", h("b", { text: full(chosen) }), "."), h("ul", { class: "reasons" }, ...reasons.map(text => h("li", { text: text.replace(/(\d)us\b/g, "$1\u00a0µs") })))) : data.command === "compare" ? verdict() : null,
    reasons.length && !chosen ? h("ul", { class: "reasons" }, ...reasons.slice(0, few).map(text => h("li", { text }))) : null,
    reasons.length > few && !chosen ? h("details", {}, h("summary", { text: `${reasons.length - few} more` }), h("ul", { class: "reasons" }, ...reasons.slice(few).map(text => h("li", { text })))) : null,
    h("div", { class: "grid two-wide" }, against.figure, parallel.figure), curves, small, ...(data.command === "tune" && runs.length > 1 ? [h("h3", { text: "Before and after" }), numberTable()] : []), axes.length === 0 && rows.length <= 8 && !chosen ? turned() : wide(), ...comparison.tables.map(([caption, lines]) => h("details", { open: data.command === "emulate" }, h("summary", { text: capital(caption) }), plainTable(lines, caption))));
}
