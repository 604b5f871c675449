// Each job: its critical path, what ranks did, its parts, the messages that held it up, and ranks over time.
// A bar of several lengths, each with its name.
function jobBar(title, pieces) {
  const whole = pieces.reduce((sum, piece) => sum + piece[1], 0) || 1;
  const shown = pieces.filter(piece => piece[1] > 0);
  const share = value => `${micros(value)}, ${percent(value / whole)}`;
  return h("div", {}, h("h4", { text: title }),
    h("div", { style: { display: "flex", height: "14px", borderRadius: "3px", overflow: "hidden" } },
      ...shown.map(([name, value, colour]) => h("i", { title: `${name}: ${share(value)}`, style: { width: `${100 * value / whole}%`, background: colour } }))),
    h("p", { class: "lead" }, ...shown.flatMap(([name, value, colour]) => [
      h("i", { style: { display: "inline-block", width: "9px", height: "9px", borderRadius: "2px", background: colour, marginRight: "5px" } }), `${name} ${share(value)}   `])));
}

// Computations and sends of ranks over time, as SVG.
function jobTimeline({ ranks, end_us, note }) {
  if (!ranks.length) return null;
  const row = 15, left = 70, width = 1200, height = ranks.length * row + 20;
  const svg = (tag, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.textContent = text;
    return node;
  };
  const x = time => left + time / end_us * (width - left - 4);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": "Computations and messages of ranks over time" });
  ranks.forEach(({ rank, spans }, i) => {
    picture.append(svg("text", { x: 2, y: i * row + 11, "font-size": 11, fill: "var(--soft)" }, `rank ${rank}`));
    // One path per kind keeps a page of 20,000 operations quick.
    for (const [kind, colour, top, tall] of [[0, "var(--s0)", 1, 7], [1, "var(--s1)", 9, 4]]) {
      const d = spans.filter(span => span[0] === kind).map(([, from, to]) => `M${x(from).toFixed(2)} ${i * row + top}h${Math.max(0.4, x(to) - x(from)).toFixed(2)}v${tall}h${-Math.max(0.4, x(to) - x(from)).toFixed(2)}z`).join("");
      if (d) picture.append(svg("path", { d, fill: colour }));
    }
  });
  for (let tick = 0; tick <= 4; tick++) {
    picture.append(svg("text", { x: x(end_us * tick / 4), y: height - 5, "font-size": 11, fill: "var(--soft)", "text-anchor": tick === 4 ? "end" : "start" }, micros(end_us * tick / 4)));
  }
  return h("div", {}, h("h4", { text: "Ranks over time: computations above, messages from send to its end below" }), note ? h("p", { class: "lead", text: note }) : null, picture);
}

function jobDetails(run, job) {
  const parts = [h("h3", { text: runs.length > 1 ? `${job.name}, ${run.label}` : job.name })];
  parts.push(jobBar("Ranks, mean", [["computing", job.compute_us, "var(--s0)"], ["sending", job.send_us, "var(--s1)"], ["waiting", job.wait_us, "var(--edge)"]]));
  if (job.critical_steps !== null) {
    parts.push(jobBar(`Critical path: ${count(job.critical_steps)} operations and messages`, [["computing", job.critical_compute_us, "var(--s0)"],
      ["messages as without other traffic", job.critical_wire_us, "var(--s2)"], ["messages held up", job.critical_delay_us, "var(--s1)"]]));
  }
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
  for (const [title, list] of [["Operations that have not ended", job.stuck], ["Messages that no receive took", job.leftover]]) {
    if (list.length) parts.push(h("h4", { text: title }), h("ul", {}, ...list.map(text => h("li", { text }))));
  }
  if (job.timeline) parts.push(jobTimeline(job.timeline));
  return parts.filter(Boolean);
}
