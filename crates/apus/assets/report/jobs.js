// Jobs: critical path, activities of the ranks, parts of the job, the messages that delayed it, and ranks over time.
// Draws bars of several parts: the activities of the ranks, and the critical path.
function jobBars(job, id) {
  const bars = () => [["Ranks, mean", [["computing", job.compute_us, theme.series[0]], ["sending", job.send_us, theme.series[1]], ["waiting", job.wait_us, theme.edge]]],
    job.critical_steps === null ? null : [`Critical path: ${count(job.critical_steps)} operations and messages`, [["computing", job.critical_compute_us, theme.series[0]],
      ["messages without other traffic", job.critical_wire_us, theme.series[2]], ["messages held up", job.critical_delay_us, theme.series[1]]]]].filter(Boolean);
  const bar = ([title, pieces]) => {
    const whole = pieces.reduce((sum, piece) => sum + piece[1], 0) || 1, shown = pieces.filter(piece => piece[1] > 0), share = value => `${micros(value)}, ${percent(value / whole)}`;
    return h("div", { class: "share-row" }, h("div", { class: "share-name", text: title }),
      h("div", { class: "share-bar" }, ...shown.map(([name, value, own]) => h("i", { title: `${name}: ${share(value)}`, style: { display: "block", width: `${100 * value / whole}%`, background: own } }))),
      h("div", { class: "legend" }, ...shown.map(([name, value, own]) => h("span", { class: "item" }, patch(own), `${name} ${share(value)}`))));
  };
  return picture({ id: `job-bars-${id}`, title: "Time of the job by activity", wide: true, about: "Mean times of the ranks, and the parts of the critical path: the longest chain of operations that wait for each other.",
    draw: () => h("div", {}, ...bars().map(bar)), rows: () => [["bar", "part", "us"], ...bars().flatMap(([title, pieces]) => pieces.map(([name, value]) => [title, name, value]))] }).figure;
}

// Draws computations and sends of ranks over time, with the faults of the run.
function jobTimeline(run, { ranks, end_us, note }, id) {
  if (!ranks.length) return null;
  const row = 15, left = 64, right = 18, top = 6, bottom = 36;
  const draw = width => {
    const height = top + ranks.length * row + bottom, x = svgScale([0, end_us], "linear", left, width - right), space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    const make = (tag, attributes, text) => { const node = document.createElementNS(space, tag); for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value); if (text) node.textContent = text; svg.append(node); return node; };
    for (const [key, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "font-size": 11, "font-family": "inherit", "aria-label": `Computations and messages of ${plural(ranks.length, "rank")} over ${micros(end_us)}` })) svg.setAttribute(key, value);
    for (const fault of run.recording ? faultsOf(run.recording) : []) {
      const [a, b] = [fault.from, fault.instant ? fault.from : Math.min(fault.to, end_us)];
      if (a > end_us) continue;
      const band = make("rect", { x: x.to(a), y: top, width: Math.max(1, x.to(b) - x.to(a)), height: ranks.length * row, fill: theme.bad, "fill-opacity": fault.instant ? 0.6 : fault.after ? 0.05 : 0.12 });
      band.addEventListener("pointermove", event => showTip(fault.text, event.clientX + 14, event.clientY + 14));
      band.addEventListener("pointerleave", hideTip);
    }
    ranks.forEach(({ rank, spans }, i) => {
      make("text", { x: 2, y: top + i * row + 11, fill: theme.soft }, `rank ${rank}`);
      // One SVG path per kind keeps a page with 20,000 operations fast.
      for (const [kind, own, from, tall] of [[0, theme.series[0], 1, 7], [1, theme.series[1], 9, 4]]) {
        const d = spans.filter(span => span[0] === kind).map(([, begin, end]) => `M${x.to(begin).toFixed(2)} ${top + i * row + from}h${Math.max(0.4, x.to(end) - x.to(begin)).toFixed(2)}v${tall}h${-Math.max(0.4, x.to(end) - x.to(begin)).toFixed(2)}z`).join("");
        if (d) make("path", { d, fill: own, "pointer-events": "none" });
      }
    });
    const ticks = Math.max(2, Math.min(8, Math.floor(width / 120)));
    for (let tick = 0; tick <= ticks; tick++) make("text", { x: x.to(end_us * tick / ticks), y: height - 20, fill: theme.soft, "text-anchor": tick === ticks ? "end" : tick === 0 ? "start" : "middle" }, micros(end_us * tick / ticks));
    label(svg, width / 2 + 20, height - 4, "simulated time", "middle");
    return h("div", {}, svg, h("div", { class: "legend" }, h("span", { class: "item" }, patch(theme.series[0]), "computation"), h("span", { class: "item" }, patch(theme.series[1]), "message, from its send to its end")));
  };
  return picture({ id: `job-timeline-${id}`, title: "Ranks over time", wide: true, about: "A row per rank: computations above, messages from send to end below.", draw, note: () => note ?? "",
    rows: () => [["rank", "kind", "start, us", "end, us"], ...ranks.flatMap(({ rank, spans }) => spans.map(([kind, from, to]) => [rank, kind ? "message" : "computation", from, to]))] }).figure;
}

function jobDetails(run, job) {
  const parts = [h("h3", { text: runs.length > 1 ? `${job.name}, ${run.label}` : job.name })];
  const id = `${runs.indexOf(run)}-${run.jobs.indexOf(job)}`;
  parts.push(h("div", { class: "grid" }, jobBars(job, id)));
  if (job.critical_messages.length) {
    parts.push(plainTable([["from", "to", "size", "start", "end", "ideal", "held up", "busiest port of the path"],
      ...job.critical_messages.map(one => [`rank ${one.from}`, `rank ${one.to}`, bytes(one.bytes), micros(one.start_us), micros(one.end_us), micros(one.ideal_us), micros(one.delay_us), one.link ?? "–"])],
    "Messages of the critical path that were held up most"));
  }
  if (job.parts.length) {
    parts.push(plainTable([["part", "number", "bytes", "mean", "max", "first begins", "last ends", "unfinished"],
      ...job.parts.map(one => [one.name, count(one.count), bytes(one.bytes), micros(one.mean_us), micros(one.max_us), micros(one.first_us), micros(one.last_us), count(one.unfinished)])],
    "Parts of the job, from their first send to their last receive"));
  }
  if (job.iterations_us.length > 1) {
    parts.push(plainTable([["iteration", "time"], ...job.iterations_us.slice(0, 64).map((time, i) => [String(i), micros(time)])], "Iterations, at most 64"));
  }
  if (job.stragglers.length) {
    parts.push(plainTable([["rank", "host", "end", "computing", "sending", "waiting"],
      ...job.stragglers.map(one => [String(one.rank), String(one.host), micros(one.end_us), micros(one.compute_us), micros(one.send_us), micros(one.wait_us)])],
    "Ranks that waited least: the others waited for them"));
  }
  for (const [title, list] of [["Operations that have not ended", job.stuck], ["Messages without a matching receive", job.leftover]]) {
    if (list.length) parts.push(h("h4", { text: title }), h("ul", {}, ...list.map(text => h("li", { text }))));
  }
  if (job.timeline) parts.push(h("div", { class: "grid" }, jobTimeline(run, job.timeline, id)));
  return parts.filter(Boolean);
}
