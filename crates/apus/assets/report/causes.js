// Follows one op to the cause of its latency: the parts of its time, its packets, its flow, the queues on its path, and
// the traffic in these queues.
// The ports at which the slowest ops of all runs waited most have fixed colours; other ports of an op take the
// remaining ones. Parts other than queues are purple or grey, and losses are red.
// left. What is no queue is purple or grey, and a loss red.
const PORT_HUES = [0, 1, 2, 3, 5];
let heaviest = null;
function heaviestPorts() {
  if (heaviest) return heaviest;
  const weight = new Map();
  for (const run of runs) for (const op of run.causes?.ops ?? []) {
    const total = op.parts.reduce((sum, part) => sum + part[2], 0) || 1;
    for (const wait of op.waits) { const name = op.ports.find(port => port.port === wait.port)?.name; weight.set(name, (weight.get(name) ?? 0) + wait.us / total); }
  }
  return heaviest = [...weight].sort((a, b) => b[1] - a[1]).slice(0, PORT_HUES.length).map(([name]) => name);
}
// Returns the colours of the ports of an op, in their order.
function portColours(op) {
  const top = heaviestPorts(), own = op.ports.map(port => top.indexOf(port.name)), free = PORT_HUES.filter((_, n) => !own.includes(n));
  const waited = port => op.waits.reduce((most, wait) => wait.port === port.port ? Math.max(most, wait.us) : most, 0);
  const others = op.ports.map((port, i) => i).filter(i => own[i] < 0).sort((a, b) => waited(op.ports[b]) - waited(op.ports[a]));
  return op.ports.map((_, i) => own[i] >= 0 ? colour(PORT_HUES[own[i]]) : others.indexOf(i) < free.length ? colour(free[others.indexOf(i)]) : theme.edge);
}
const KINDS = { ahead: () => theme.series[6], before: () => blend(theme.series[6], theme.card, 0.5), again: () => theme.bad, travel: () => theme.soft, host: () => theme.series[4], back: () => theme.back };
const kindOf = (part, op) => part[0] === "before" && op.ahead?.[0] ? "ahead" : part[0];
const partColour = (part, op) => part[0] === "queue" ? portColours(op)[op.ports.findIndex(port => part[1].endsWith(port.name))] : KINDS[kindOf(part, op)]();
const patch = tint => h("i", { class: "dot", style: { background: tint } });

// Returns the index of the op among the followed ops; null if it was not followed.
function causeOf(run, flow, op, submit) {
  const all = run.causes?.ops ?? [];
  const place = all.findIndex(one => one.flow === flow && (op === null ? one.op === null && Math.abs(one.submit_us - submit) < 0.01 : one.op === op));
  return place < 0 ? null : place;
}

function causePictures() {
  const withCauses = runs.filter(run => run.causes);
  if (!withCauses.length) return null;
  const box = section("cause", "Causes of the slowest ops", null);
  const body = h("div"), all = h("div", { class: "grid" });
  box.append(all, body);
  const run = () => runs[runIndex()].causes ? runs[runIndex()] : withCauses[0];
  const at = () => { const n = Number(state.op); return state.op !== undefined && Number.isInteger(n) && run().causes.ops[n] ? n : typical(run().causes); };
  const fill = () => {
    forget(body);
    const causes = run().causes, op = causes.ops[at()];
    if (!op) { body.append(h("p", { class: "note", text: causes.failed ? capital(causes.failed) + "." : "No op was followed." })); return; }
    body.append(...followed(run(), causes, op, at()));
    body.querySelectorAll("figure").forEach(figure => { if (inSight(figure)) figure.picture.draw(); });
  };
  const overview = () => {
    forget(all);
    const found = causesOf(run());
    if (found) all.append(found);
    all.querySelectorAll("figure").forEach(figure => { if (inSight(figure)) figure.picture.draw(); });
  };
  onState(["run", "op"], fill);
  onState(["run"], overview);
  queueMicrotask(() => { overview(); fill(); });
  return box;
}

// Of the followed ops in the slowest op's workload, returns the one whose parts are nearest to their mean.
function typical({ ops }) {
  const own = ops.map((op, i) => [op, i]).filter(([op]) => op.group === ops[0]?.group);
  const label = (part, op) => part[0] === "queue" ? part[1].replace("acknowledgement waiting", "waiting") : kindOf(part, op);
  const shares = own.map(([op]) => { const all = new Map(), total = op.parts.reduce((sum, part) => sum + part[2], 0) || 1; for (const part of op.parts) all.set(label(part, op), (all.get(label(part, op)) ?? 0) + part[2] / total); return all; });
  const mean = new Map();
  for (const all of shares) for (const [key, share] of all) mean.set(key, (mean.get(key) ?? 0) + share / shares.length);
  const far = all => [...mean].reduce((sum, [key, share]) => sum + Math.abs(share - (all.get(key) ?? 0)), 0);
  const order = own.map(([, i], n) => [far(shares[n]), i]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return order[0]?.[1] ?? 0;
}

// Delays of the slowest ops of each workload, as the mean share of each part of their time. If there are few runs, they
// are drawn side by side.
const MOST_ROWS = 12;
function causesOf(run) {
  const label = (part, op) => part[0] === "queue" ? pretty(part[1].replace("acknowledgement waiting", "waiting")) : { before: op.ahead?.[0] ? "behind other ops of its own flow" : "held back by the window and the pace of its flow", again: "lost, or without an acknowledgement", travel: "on its way", host: "in the hosts", back: "acknowledgement on its way back" }[part[0]];
  const rowsOf = one => {
    const { ops } = one.causes, groups = one.recording.ops.groups;
    return [...new Set(ops.map(op => op.group))].sort((a, b) => a - b).map(group => {
      const own = ops.map((op, i) => [op, i]).filter(([op]) => op.group === group), shares = new Map();
      for (const [op, i] of own) {
        const total = op.parts.reduce((sum, part) => sum + part[2], 0) || 1;
        for (const part of op.parts) {
          const key = label(part, op), known = shares.get(key) ?? { key, kind: kindOf(part, op), port: part[0] === "queue" ? op.ports.find(port => part[1].endsWith(port.name))?.name : null, sum: 0, most: [0, i] };
          known.sum += part[2] / total;
          if (part[2] / total > known.most[0]) known.most = [part[2] / total, i];
          shares.set(key, known);
        }
      }
      return { run: one, group: groups[group] ?? "others", count: own.length, parts: [...shares.values()].map(part => ({ ...part, share: part.sum / own.length })).sort((a, b) => b.share - a.share) };
    });
  };
  const all = runs.filter(one => one.causes?.ops.length).flatMap(rowsOf), members = all.length <= MOST_ROWS ? all : rowsOf(run);
  if (members.reduce((sum, one) => sum + one.count, 0) < 2) return null;
  const several = new Set(members.map(one => one.run)).size > 1, grouped = new Set(members.map(one => one.group)).size > 1;
  const name = one => [several ? one.run.label : null, grouped ? one.group : null].filter(Boolean).join(", ");
  // The colours are those in the pictures of an op.
  const tint = part => part.kind !== "queue" ? KINDS[part.kind]() : heaviestPorts().includes(part.port) ? colour(PORT_HUES[heaviestPorts().indexOf(part.port)]) : theme.edge;
  const key = () => {
    const parts = members.flatMap(one => one.parts).filter(part => part.share > 0.01), known = new Map();
    for (const part of parts.sort((a, b) => b.share - a.share)) { const other = part.kind === "queue" && !heaviestPorts().includes(part.port), text = other ? "waiting at other ports" : part.key; if (!known.has(text)) known.set(text, tint(part)); }
    return h("div", { class: "legend" }, ...[...known].map(([text, own]) => h("span", { class: "more item" }, patch(own), text)));
  };
  const piece = (one, part) => h("button", { type: "button", style: { width: `${part.share * 100}%`, background: tint(part) }, "aria-label": `${name(one)}: ${part.key}, ${percent(part.share)}; follow the op in which it was largest`,
    onmousemove: event => showTip([h("div", { class: "tip-head", text: part.key }), h("div", { text: `${percent(part.share)} of the time of ${plural(one.count, "op")}` })], event.clientX + 14, event.clientY + 14), onmouseleave: hideTip,
    onclick: () => { hideTip(); setState({ run: runs.length > 1 ? runs.indexOf(one.run) : null, op: part.most[1], hop: null }); document.querySelector("#cause .cause")?.scrollIntoView({ behavior: "smooth" }); } });
  const self = picture({ id: "causes", title: `What held up the slowest ops${several || runs.length === 1 ? "" : ` of ${run.label}`}`, wide: true, about: "The mean share of each part of their time. A click on a part follows the op in which it was largest.",
    draw: () => h("div", {}, ...members.map(one => h("div", { class: "share-row" }, h("div", { class: "share-name" }, name(one) ? h("b", { text: name(one) }) : null, h("span", { class: "soft", text: ` ${plural(one.count, "op")}: ` }), h("span", { text: one.parts.filter(part => part.share >= 0.05).slice(0, 3).map(part => `${percent(part.share)} ${part.key}`).join(", ") })),
      h("div", { class: "share-bar" }, ...one.parts.filter(part => part.share > 0.002).map(part => piece(one, part))))), key()),
    rows: () => [["run", "workload", "part", "mean share of the time"], ...members.flatMap(one => one.parts.map(part => [one.run.label, one.group, part.key, part.share]))] });
  return self.figure;
}

function nameOf(run, flow) {
  const known = run.causes.flows[flow] ?? run.recording.ops.flows[flow];
  return known ? `flow ${flow}: host ${known[0]} → host ${known[1]}` : flow === null ? "signals of switches" : `flow ${flow}`;
}

function followed(run, causes, op, place) {
  const ideal = op.slowdown ? op.latency_us / op.slowdown : null;
  const total = op.parts.reduce((sum, part) => sum + part[2], 0) || 1;
  const worst = [...op.parts].sort((a, b) => b[2] - a[2])[0];
  const chooser = select("Op", causes.ops.map((one, i) => [i, `${i + 1}. ${one.slowdown === null ? "unfinished" : number(one.slowdown, 3) + "×"}, ${bytes(one.size)}, flow ${one.flow}`]), place, value => setState({ op: value, hop: null }));
  const move = step => h("button", { type: "button", text: step < 0 ? "← slower" : "faster →", disabled: !causes.ops[place + step], onclick: () => setState({ op: place + step, hop: null }) });
  const unit = micros;
  const share = part => number(part[2] / total * 100, 2) + "\u00a0%";
  const waits = op.waits.map((wait, i) => ({ ...wait, i, name: pretty(op.ports.find(port => port.port === wait.port)?.name ?? "") }));
  let hop = state.hop !== undefined && waits[Number(state.hop)] ? Number(state.hop) : Math.max(0, waits.reduce((best, wait, i) => wait.us > (waits[best]?.us ?? -1) ? i : best, 0));
  const wait = () => waits[hop];
  const reason = worst[0] === "queue" ? (() => { const own = [...waits].sort((a, b) => b.us - a.us)[0]; return `${share(worst)} of the time ${worst[1].startsWith("acknowledgement") ? "the acknowledgement of its last packet" : "its last packet"} waited at ${own.name}, behind ${bytes(own.bytes)} of ${plural(own.flows, "flow")}.`; })() :
    worst[0] === "before" ? `${op.sent ? `${share(worst)} of the time passed before its last packet was first sent` : "All of the time passed before its first packet was sent"}: ${op.ahead?.[0] ? `its flow was still sending ${op.ahead[0] === 1 ? `another op of ${bytes(op.ahead[2])}` : `${count(op.ahead[0])} other ops, the largest of ${bytes(op.ahead[2])}`} (${bytes(op.ahead[1])} in this time).` : "the window and the pace of its flow held it back."}` :
      worst[1].startsWith("waiting for timeouts") ? `${share(worst)} of the time its flow waited for timeouts, since its packets were lost.` :
      op.op === null ? `${share(worst)} of the time ${worst[0] === "again" ? "passed since its last acknowledgement" : worst[0] === "before" ? "passed before its first packet was sent" : "it was being sent: its packets were acknowledged one after another"}.` :
        worst[0] === "again" ? `${share(worst)} of the time passed until a lost packet was sent again.` : `${share(worst)} of the time: ${worst[1]}.`;
  // Name the next part as well if it took long.
  const next = [...op.parts].sort((a, b) => b[2] - a[2])[1], nextWait = next?.[0] === "queue" ? waits.find(one => one.us === next[2]) : null;
  const second = !next || op.op === null || next[2] < 0.15 * total ? null : ` Another ${share(next)}: ${next[0] === "before" ? (op.ahead?.[0] ? `behind ${plural(op.ahead[0], "other op")} of its own flow` : "held back by the window and the pace of its flow") : pretty(next[1])}${nextWait ? `, behind ${bytes(nextWait.bytes)} of ${plural(nextWait.flows, "flow")}` : ""}.`;
  const [begin, end] = [op.submit_us, op.submit_us + op.latency_us];
  const faulty = run.recording.faults.filter(fault => op.ports.some(port => port.port === fault.port) && fault.at_us <= end && (fault.until_us ?? Infinity) >= begin).map(fault => `${fault.kind} from ${micros(fault.at_us)}${fault.until_us === null ? "" : ` to ${micros(fault.until_us)}`}: ${pretty(fault.subject)}`);
  const head = h("div", { class: "card cause" },
    h("div", { class: "head" }, h("h3", { text: `${nameOf(run, op.flow)}, ${bytes(op.size)}` }), h("div", { class: "controls" }, runs.filter(one => one.causes).length > 1 ? select("Run", runs.map((one, i) => [i, one.label]).filter(([i]) => runs[i].causes), runs.indexOf(run), value => setState({ run: value, op: null, hop: null })) : null, move(-1), chooser, move(1))),
    h("p", { class: "answer" }, state.op === undefined && causes.ops.length > 1 ? h("span", { class: "soft", text: "A typical one of the slowest ops: " }) : null, h("b", { text: op.op === null ? `not ended after ${unit(op.latency_us)}` : unit(op.latency_us) }), ideal ? ` instead of ${unit(ideal)} on an empty network: ${number(op.slowdown, 3)} times as long. ` : ". ", reason, second, faulty.length ? h("span", { class: "bad", text: ` Fault on its path: ${[...new Set(faulty)].join("; ")}.` }) : null),
    h("p", { class: "note", text: `Submitted at ${unit(op.submit_us)}. ${plural(op.sent, "packet")} sent, ${op.retransmitted} of them as retransmissions.${op.cut ? " The ports of its path were recorded in its first 0.5 ms and its last 1.5 ms." : ""} Recorded by a second run with the same seed, on one thread and with the same ${count(causes.run_events)} simulator events as the first: ${count(causes.packets)} packets and ${count(causes.events)} events of flows around ${plural(causes.ops.length, "op")}.${causes.left_out.length ? ` Left out: ${causes.left_out.join("; ")}.` : ""}` }));
  const sync = "op";
  const domain = [Math.min(0, ...op.packets.map(packet => packet[3])), Math.max(op.latency_us, ...op.packets.map(packet => packet[4] ?? 0)) * 1.01];
  const parts = picture({ id: "op-parts", title: "Where the time went", wide: true, about: "The course of the packet whose acknowledgement ended the op, from the submission of the op to that acknowledgement. The parts add up to the latency.",
    draw: width => {
      const left = 4, scale = (width - 8) / total, space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg");
      const shown = op.parts.filter(part => part[2] > 0), height = 32;
      const make = (tag, attributes, text) => { const node = document.createElementNS(space, tag); for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value); if (text) node.textContent = text; svg.append(node); return node; };
      for (const [key, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "font-size": 12, "aria-label": shown.map(part => `${part[1]} ${unit(part[2])}`).join("; ") })) svg.setAttribute(key, value);
      let x = left;
      shown.forEach(part => {
        const tint = partColour(part, op), w = Math.max(0.6, part[2] * scale);
        const bar = make("rect", { x, y: 2, width: Math.max(0.5, w - 0.8), height: 26, fill: tint });
        bar.addEventListener("pointermove", event => showTip(`${part[1]}: ${unit(part[2])}, ${share(part)}`, event.clientX + 14, event.clientY + 14));
        bar.addEventListener("pointerleave", hideTip);
        if (w > 46) make("text", { x: x + w / 2, y: 20, "text-anchor": "middle", fill: theme.card, "font-weight": 650, "pointer-events": "none" }, share(part));
        x += w;
      });
      return h("div", {}, svg, h("div", { class: "legend" }, ...shown.map(part => h("span", { class: "item" }, patch(partColour(part, op)), `${pretty(part[0] === "before" && op.ahead?.[0] ? "behind other ops of its own flow" : part[0] === "before" ? "held back by the window and the pace of its flow" : part[1])}: ${unit(part[2])}`))));
    }, rows: () => [["kind", "part", "us"], ...op.parts] });
  const packets = picture({ id: "op-packets", title: "Its packets", wide: true, about: "A row per transmission, from left to right: waiting in a port has the colour of the port, travelling is grey, and the way back of the acknowledgement is light grey. A red cross is a loss, behind the last port that the packet left.",
    draw: width => op.packets.length ? ladder(width, op, domain, opFaults) : h("p", { class: "note", text: "No packet of the op was sent." }), note: () => !op.packets.length ? "" : `${op.packets.length < op.sent ? `${op.packets.length} of ${count(op.sent)} transmissions: those that were lost, the one that ended the op, and others spread evenly. ` : ""}${op.losses.length ? "Red lines: the flow declares packets lost." : "The flow declared no packet lost."}`,
    rows: () => [["packet", "offset_bytes", "bytes", "sent_us", "acknowledged_us", "fate", ...op.ports.map(port => `left ${port.name}, us`)], ...op.packets.map(([seq, offset, length, sent, acked, fate, hops]) => [seq, offset, length, sent, acked, fate, ...op.ports.map((_, i) => hops.find(one => one[0] === i)?.[1] ?? "")])] });
  const states = op.states, time = states.map(one => one[0]);
  // Faults of the run during the op, and the times at which its flow declared packets lost.
  const opFaults = faultsOf(run.recording).map(fault => ({ ...fault, from: fault.from - op.submit_us, to: (fault.to ?? fault.from) - op.submit_us })).filter(fault => fault.to >= domain[0] && fault.from <= domain[1] && !fault.after);
  const lossFaults = op.losses.map(([t, packets, what]) => ({ from: t, instant: true, text: `${plural(packets, "packet")} declared lost: ${what}` }));
  const common = { xLabel: "time since the submission", xFormat: unit, readout: unit, sync, height: 210, xDomain: domain, faults: [...opFaults, ...lossFaults], };
  const line = (name, i, n, more) => ({ name, colour: colour(n), x: time, y: states.map(one => one[i]), step: true, ...more });
  const present = one => one.y.some(v => v !== null);
  const windows = [line("window in force", 1, 0, { width: 2.25 }), line("fabric window", 2, 5, { dash: "6 3" }), line("endpoint window", 3, 4, { dash: "2 3" })].filter(present);
  const delays = [line("fabric delay of acknowledgements", 6, 0, { step: false }), line("endpoint delay", 7, 4, { step: false }), line("smoothed RTT", 5, 5, { dash: "6 3" }), line("target delay", 4, 1, { width: 2.25, dash: "8 4" })].map(one => { const keep = one.y.map((v, i) => i).filter(i => one.y[i] !== null); return { ...one, x: keep.map(i => one.x[i]), y: keep.map(i => one.y[i]) }; }).filter(one => one.x.length);
  const pictures = [];
  const simple = (id, title, about, lines, text, more) => { if (!lines.length) return; const self = picture({ id, title, about, draw: width => h("div", {}, lineChart(width, { ...common, series: lines, yLabel: text, ...more }), legend(lines, () => self.refresh())), rows: () => [["line", "us", text], ...lines.flatMap(one => one.x.map((x, i) => [one.name, x, one.y[i]]))] }); pictures.push(self.figure); };
  simple("op-window", "Its flow: windows", definition("workload.x.cwnd_packets") ?? "Congestion window of the flow as its algorithm shows it.", windows, "packets");
  simple("op-delay", "Its flow: delays and target", "Delays that each acknowledgement shows, and the target of the algorithm.", delays, "delay", { yFormat: unit });
  // A line is interrupted while no packet left the port, because the queue is unknown then.
  const broken = (x, y) => {
    const steps = x.slice(1).map((t, i) => t - x[i]).sort((a, b) => a - b), gap = 6 * (steps[steps.length >> 1] ?? Infinity);
    const [bx, by] = [[], []];
    x.forEach((t, i) => { if (i > 0 && t - x[i - 1] > gap) { bx.push((t + x[i - 1]) / 2); by.push(null); } bx.push(t); by.push(y[i]); });
    return { x: bx, y: by };
  };
  const queues = op.ports.map((port, i) => ({ name: pretty(port.name), colour: portColours(op)[i], ...broken(...(op.gap ? [port.at_us.filter(t => t < op.gap[0] || t > op.gap[1]), port.queue.filter((_, n) => port.at_us[n] < op.gap[0] || port.at_us[n] > op.gap[1])] : [port.at_us, port.queue])) })).filter(one => one.x.length);
  simple("op-queues", "Queues on its path", "Wire bytes in each port of the path at that moment, sampled when packets leave it.", queues, "queue", { yFormat: bytes, gap: op.gap });
  const who = waits.some(one => one.us > 0) ? picture({ id: "op-queue-members", title: "Packets ahead in the queue", about: `The packets that left the port while ${op.op === null ? "the packet of the op that waited longest" : "the op's last packet"} waited in it: in a FIFO queue those before it. Choose the port of the path.`,
    controls: [select("Port of the path", waits.map((one, i) => [i, `${one.name}: ${unit(one.us)}`]), hop, value => { hop = Number(value); setState({ hop }, true); who.refresh(); })],
    draw: width => members(width, run, op, wait()), note: () => `${unit(wait().us)} at ${wait().name}, from ${unit(wait().arrived_us)} of simulated time: ${bytes(wait().bytes)} of ${plural(wait().flows, "flow")} left before it.${wait().flows > wait().named.length ? ` The ${wait().named.length} largest are named.` : ""}`,
    rows: () => [["port", "flow", "packets", "bytes"], ...wait().named.map(([flow, packets, size]) => [wait().name, nameOf(run, flow), packets, size])] }) : null;
  if (who) pictures.push(who.figure);
  return [head, h("div", { class: "grid", data: { sync } }, parts.figure, packets.figure), h("div", { class: "grid two-wide", data: { sync } }, ...pictures)];
}

// Draws packets from top to bottom and time from left to right.
function ladder(width, op, whole, faults) {
  const domain = zooms.get("op") ?? whole, left = 58, right = 14, top = 10, bottom = 36;
  const row = Math.max(3, Math.min(14, 420 / Math.max(1, op.packets.length))), height = top + bottom + row * op.packets.length;
  const x = svgScale(domain, "linear", left, width - right);
  const marks = [], dots = [], crosses = [], tints = portColours(op);
  op.packets.forEach(([seq, , , sent, acked, fate, hops], i) => {
    let here = sent;
    for (const [port, leave, arrive] of hops) {
      marks.push({ i, from: here, to: leave, wait: true, port });
      marks.push({ i, from: leave, to: arrive, wait: false, port });
      here = arrive;
    }
    if (acked !== null) {
      marks.push({ i, from: here, to: acked, wait: false, back: true });
      // The waits of an acknowledgement are known only for the one that ended the op.
      if (seq === op.chain) for (const wait of op.waits.slice(hops.length)) marks.push({ i, from: wait.arrived_us - op.submit_us, to: wait.arrived_us - op.submit_us + wait.us, wait: true, port: op.ports.findIndex(port => port.port === wait.port) });
      dots.push({ i, at: acked, end: seq === op.chain }); } else crosses.push({ i, at: here, fate: fate === "open" ? "open" : "lost" });
  });
  const inside = marks.filter(mark => mark.to >= domain[0] && mark.from <= domain[1]).map(mark => ({ ...mark, from: Math.max(mark.from, domain[0]), to: Math.min(mark.to, domain[1]) }));
  const thick = Math.max(1.5, row * 0.62);
  const svg = plotOf({ width, height, marginLeft: left, marginRight: right, marginTop: top, marginBottom: bottom, style: { background: "transparent", color: theme.ink, fontSize: "11.5px", fontFamily: "inherit" },
    x: { domain, label: null }, y: { domain: [-0.7, op.packets.length - 0.3], reverse: true, axis: null }, clip: true,
    marks: [Plot.axisX({ label: null, color: theme.soft, ticks: Math.max(3, Math.round(width / 110)), tickFormat: micros, tickSize: 4 }), Plot.gridX({ stroke: theme.line, strokeOpacity: 1, ticks: Math.round(width / 110) }),
      Plot.ruleX(op.losses.map(([t]) => t).filter(t => t >= domain[0] && t <= domain[1]), { stroke: theme.bad, strokeOpacity: 0.5, strokeDasharray: "3 3" }),
      Plot.rectX(faults.filter(fault => !fault.instant).map(fault => [Math.max(fault.from, domain[0]), Math.min(fault.to, domain[1])]).filter(([a, b]) => a < b), { x1: d => d[0], x2: d => d[1], fill: theme.bad, fillOpacity: 0.1 }),
      Plot.ruleX([0, op.latency_us].filter(t => t >= domain[0] && t <= domain[1]), { stroke: theme.ink, strokeOpacity: 0.5 }),
      Plot.link(inside.filter(mark => !mark.wait), { x1: "from", x2: "to", y1: "i", y2: "i", stroke: mark => mark.back ? theme.back : theme.soft, strokeWidth: thick * 0.45 }),
      Plot.link(inside.filter(mark => mark.wait), { x1: "from", x2: "to", y1: "i", y2: "i", stroke: mark => tints[mark.port ?? 0], strokeWidth: thick, strokeLinecap: "butt" }),
      Plot.dot(dots.filter(dot => dot.at <= domain[1]), { x: "at", y: "i", r: dot => dot.end ? Math.max(4, row * 0.45) : Math.max(1.6, row * 0.25), fill: dot => dot.end ? theme.accent : theme.card, stroke: dot => dot.end ? theme.accent : theme.soft, strokeWidth: 1.5 }),
      Plot.dot(crosses.filter(one => one.fate === "open"), { x: "at", y: "i", r: Math.max(1.6, row * 0.25), fill: theme.edge }),
      ...(op.gap ? gapMarks(op.gap, domain) : []),
      Plot.dot(crosses.filter(one => one.fate === "lost"), { x: "at", y: "i", symbol: "times", r: Math.max(3, row * 0.4), stroke: theme.bad, strokeWidth: 2 })] });
  label(svg, 2, height - bottom + 14, "packet ↓", "start");
  label(svg, width / 2 + 20, height - 3, "time since the submission", "middle");
  svg.setAttribute("role", "img");
  const lost = op.packets.filter(packet => packet[5] === "lost" || packet[5] === "trimmed").length;
  svg.setAttribute("aria-label", `${op.packets.length} transmissions of the op, ${lost} of them lost, the last acknowledged after ${micros(op.latency_us)}`);
  const box = h("div", { class: "chart", tabindex: 0, role: "group", "aria-label": "Packets of the op: arrow keys name them" }, svg);
  const tell = (i, px, py) => {
    const [seq, offset, length, sent, acked, fate, hops] = op.packets[i];
    let here = sent;
    const lines = hops.map(([port, leave, arrive]) => { const line = h("div", { class: "tip-row" }, h("i", { style: { background: tints[port] } }), h("span", { text: pretty(op.ports[port].name) }), h("b", { text: `${micros(Math.max(0, leave - here))} in port` })); here = arrive; return line; });
    showTip([h("div", { class: "tip-head", text: `Packet ${seq}: bytes ${offset} to ${offset + length}${seq === op.chain ? ", ended the op" : ""}` }), h("div", { text: `sent after ${micros(sent)}` }), ...lines,
      h("div", { class: acked === null ? "tip-fault" : "", text: acked !== null ? `acknowledged after ${micros(acked)}` : fate === "open" ? "neither acknowledged nor sent again in the recorded time" : `${fate}${hops.length ? " behind " + op.ports[hops.at(-1)[0]].name : ""}` })], px, py);
  };
  box.addEventListener("pointermove", event => { const i = Math.floor((event.clientY - svg.getBoundingClientRect().top - top) / row); if (op.packets[i]) tell(i, event.clientX + 16, event.clientY + 16); else hideTip(); });
  box.addEventListener("pointerleave", hideTip);
  let place = -1, down = null;
  box.addEventListener("pointerdown", event => { down = event.clientX; });
  box.addEventListener("pointerup", event => { if (down === null) return; const rect = svg.getBoundingClientRect(), [a, b] = [down, event.clientX].sort((p, q) => p - q); down = null; if (b - a > 6) zoom("op", [x.from(a - rect.left), x.from(b - rect.left)]); });
  box.addEventListener("dblclick", () => zoom("op", null));
  box.addEventListener("keydown", event => { const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]; if (!step || !op.packets.length) return; event.preventDefault(); place = Math.max(0, Math.min(op.packets.length - 1, place + step)); const rect = svg.getBoundingClientRect(); tell(place, rect.left + 80, rect.top + top + row * place + 20); say(tip.innerText.replaceAll("\n", ", ")); });
  box.addEventListener("blur", hideTip);
  const item = (mark, text) => h("span", { class: "more item" }, mark, text), glyph = (text, tint) => h("b", { style: { color: tint }, text });
  const key = h("div", { class: "legend" }, item(patch(theme.soft), "on its way"), item(patch(theme.back), "acknowledgement on its way back"), item(glyph("○", theme.soft), "acknowledged"), item(glyph("●", theme.accent), "ended the op"), crosses.some(one => one.fate === "lost") ? item(glyph("✕", theme.bad), "lost") : null, crosses.some(one => one.fate === "open") ? item(patch(theme.edge), "its fate is not recorded") : null,
    ...op.ports.map((port, i) => [port, i]).filter(([, i]) => marks.some(mark => mark.wait && mark.port === i && mark.to - mark.from > 0.002 * (domain[1] - domain[0]))).map(([port, i]) => item(patch(tints[i]), `waiting at ${pretty(port.name)}`)));
  return h("div", {}, box, key);
}

// Draws the bytes before the packet by workload, if there are several, and by flow; a click lists the ops of that flow.
function members(width, run, op, wait) {
  if (!wait.named.length) return h("p", { class: "note", text: "No other packet left the port while it waited." });
  const rest = wait.bytes - wait.named.reduce((sum, one) => sum + one[2], 0);
  // The workload of a flow, if there are several.
  const groups = run.recording.ops.groups, several = Object.keys(groups).length > 1, workload = flow => { const group = groups[run.causes.flows[flow]?.[3]]; return group && several ? `, ${group}` : ""; };
  const bars = wait.named.map(([flow, packets, size]) => ({ flow, name: nameOf(run, flow) + workload(flow) + (flow === op.flow ? " (its own flow)" : ""), packets, size }));
  if (rest > 0) bars.push({ flow: null, name: `${plural(wait.flows - wait.named.length, "other flow")}`, size: rest });
  const whole = several ? wait.groups.map(([group, flows, size]) => ({ flow: null, name: `${groups[group] ?? "others"}: ${plural(flows, "flow")}`, size, strong: true })) : [];
  // The rest is a sum over many flows: on its scale the bars of single flows would vanish.
  const most = Math.max(...bars.filter(bar => bar.flow !== null).map(bar => bar.size)), mostOf = Math.max(1, ...whole.map(bar => bar.size));
  const line = (bar, longest) => h("li", { class: bar.strong ? "strong" : null }, bar.flow === null ? h("span", { text: bar.name }) : h("button", { type: "button", class: "quiet", text: bar.name, title: "List the slow ops of this flow", onclick: () => listFlow(bar.flow) }),
    bar.flow === null && !bar.strong ? h("span") : h("span", { class: "track" }, h("i", { style: { width: `${bar.size / longest * 100}%`, background: bar.flow === op.flow ? theme.series[6] : theme.soft } })), h("b", { text: bytes(bar.size) }));
  return h("div", {}, whole.length ? h("ul", { class: "bars" }, ...whole.map(bar => line(bar, mostOf))) : null, h("ul", { class: "bars" }, ...bars.map(bar => line(bar, most))));
}

// Lists the slow ops of a flow; a button in the list leads back.
function listFlow(flow) {
  const find = document.querySelector("#ops input[type=search]");
  setState({ tail: "0-1", back: document.activeElement?.closest("#cause") ? "cause" : document.activeElement?.closest("#faults") ? "faults" : null });
  find.value = `flow ${flow}:`;
  find.dispatchEvent(new Event("input"));
  byId("ops").scrollIntoView({ behavior: "smooth" });
}
