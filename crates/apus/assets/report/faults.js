// Faults: the flows that each one stopped, the ops that were outstanding during it, and the flows that suffered most.
function faultPictures() {
  const all = recorded().filter(run => run.recording.faults.some(fault => !fault.instant));
  if (!all.length) return null;
  const run = () => all.includes(runs[runIndex()]) ? runs[runIndex()] : all[0];
  const body = h("div", { class: "card" }), fill = () => body.replaceChildren(...faultTable(run()));
  onState(["run"], fill);
  fill();
  return section("faults", "What broke, and whom it slowed", null, body);
}

const slowness = value => value === null ? "–" : Number.isFinite(value) ? number(value, 3) + "×" : "unfinished";
const middle = values => values.length ? [...values].sort((a, b) => a - b)[values.length >> 1] : null;

function faultTable(run) {
  const { recording } = run, ops = recording.ops;
  // Both directions of a link, and equal faults at the same time, are shown as one.
  const events = new Map();
  // Reactions to faults follow the faults.
  const follows = one => one.kind.startsWith("avoided-");
  for (const fault of recording.faults.filter(one => !one.instant).sort((a, b) => follows(a) - follows(b))) {
    const key = [fault.kind, fault.at_us, fault.until_us].join();
    const known = events.get(key) ?? { ...fault, subjects: [], lost: 0 };
    events.set(key, { ...known, subjects: [...known.subjects, fault.subject], lost: known.lost + (fault.lost_packets ?? 0) });
  }
  const shown = [...events.values()].slice(0, 8);
  const overlaps = (i, fault) => ops.submit_us[i] <= (fault.until_us ?? Infinity) && ops.submit_us[i] + ops.latency_us[i] >= fault.at_us;
  const outside = [];
  for (let i = 0; i < ops.rank.length; i++) if (!shown.some(fault => !lasts(recording, fault) && overlaps(i, fault))) outside.push(ops.slowdown[i] ?? Infinity);
  const usual = middle(outside);
  const rows = shown.map(fault => faultRow(run, fault, i => overlaps(i, fault)));
  const head = ["fault", "when", "packets lost", "ops outstanding", "flows that it stopped", "other flows slowed meanwhile"];
  return [h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Faults" }, h("table", { class: "faults stacked" }, h("thead", {}, h("tr", {}, ...head.map((text, i) => h("th", { scope: "col", class: i === 2 ? "n" : null, text })))), h("tbody", {}, ...rows))),
    h("p", { class: "note", text: `${usual === null ? "No op was outstanding outside of these faults" : `Outside of these faults the median slowdown is ${slowness(usual)}`}. A flow is stopped if it made no progress and its path led over the link. A flow is slowed if one of its ops was at least twice as slow and outstanding during the fault, on any path: traffic that moves to other links slows down flows there.${ops.kept < ops.count ? ` Outstanding ops and medians are those of the ${count(ops.kept)} ops that the page holds individually; slowed flows are counted among all flows.` : ""}${events.size > shown.length ? ` faults.csv has ${events.size - shown.length} more.` : ""}` })];
}

function faultRow(run, fault, overlaps) {
  const { recording } = run, ops = recording.ops, whole = lasts(recording, fault), inside = [];
  for (let i = 0; i < ops.rank.length; i++) if (overlaps(i)) inside.push(ops.slowdown[i] ?? Infinity);
  // Flows whose path contained the failed link.
  const stopped = (run.stalled ?? []).filter(one => fault.subjects.some(subject => contains(one.reason, subject)));
  const slowOf = new Map(fault.slowed.map(([flow, , , slow]) => [flow, slow ?? Infinity])), isStopped = flow => stopped.some(one => one.flow === flow);
  const all = fault.slowed_flows, listed = fault.slowed.filter(([flow]) => !isStopped(flow)), both = fault.slowed.length - listed.length;
  const fresh = listed.filter(([, , , , before]) => !before), before = (fault.slowed_before ?? 0) - fault.slowed.filter(([flow, , , , already]) => already && isStopped(flow)).length;
  const name = { down: "Link down", slow: "Slow link", loss: "Random loss", corrupt: "Corruption", reorder: "Reordering", "avoided-local": "Avoided by the switches at its ends", "avoided-global": "Avoided by all switches" }[fault.kind] ?? capital(fault.kind);
  const places = [...new Set(fault.subjects.map(subject => pretty(subject.split(" -> ").sort().join(" <-> "))))];
  const link = (flow, from, to, more) => h("button", { type: "button", class: "quiet slowed", text: `flow ${flow}: host ${from} → host ${to}${more}`, title: "List the slow ops of this flow", onclick: () => {
    const slowest = run.causes?.ops.findIndex(one => one.flow === flow) ?? -1;
    listFlow(flow);
    if (slowest >= 0) setState({ op: slowest, hop: null });
  } });
  const more = (n, text = "") => n > 0 ? h("div", { class: "soft", text: `and ${count(n)} more${text}` }) : null, soft = text => h("div", { class: "soft", text });
  // The results name at most 64 stopped and 64 slowed flows.
  const cut = (run.stalled ?? []).length >= 64, unsure = cut || fault.slowed.length < all;
  // The slowest of the stopped flows come first.
  const first = [...stopped].sort((a, b) => (slowOf.get(b.flow) ?? 0) - (slowOf.get(a.flow) ?? 0)), time = one => one.until_us === null ? "to the end" : `for ${micros(one.until_us - one.since_us)}`;
  const others = all - both, cell = (label, ...children) => h("td", { "data-label": label }, ...children);
  return h("tr", {}, h("th", { scope: "row" }, h("b", { text: name }), ...places.slice(0, 4).map(place => h("div", { text: place })), more(places.length - 4)),
    cell("when", h("div", { text: `${micros(fault.at_us)} to ${fault.until_us === null ? "the end" : micros(fault.until_us)}` }), fault.slowed_until_us > (fault.until_us ?? 0) ? soft(`effects until ${micros(fault.slowed_until_us)}`) : null),
    h("td", { class: "n", "data-label": "packets lost", text: count(fault.lost) }),
    cell("ops outstanding", h("div", { text: count(inside.length) }), inside.length ? soft(`median slowdown ${slowness(middle(inside))}`) : null),
    cell("flows that it stopped", ...(stopped.length ? [h("b", { text: (cut ? "at least " : "") + plural(stopped.length, "flow") }), ...first.slice(0, 4).map(one => link(one.flow, one.host, one.peer, `, ${time(one)}${slowOf.has(one.flow) ? ` (${slowness(slowOf.get(one.flow))})` : ""}`)), cut ? soft("and more") : more(stopped.length - 4)] : [soft("none")])),
    cell("other flows slowed meanwhile", ...(all === null ? [soft(whole ? "lasts the whole run: compare with a run without it" : fault.kind.startsWith("avoided-") ? "see the fault" : "not counted: only the first 64 faults are")] : others <= 0 ? [soft("none")] : [h("b", { text: (unsure ? "at most " : "") + plural(others, "flow") }), ...fresh.slice(0, 4).map(([flow, from, to, slow]) => link(flow, from, to, ` (${slowness(slow ?? Infinity)})`)),
      more(others - Math.min(4, fresh.length), fresh.length > 4 ? `; ${whoOf(run, fresh, others)}` : ""), both > 0 ? soft(`${count(all)} slowed, ${unsure ? "at least " : ""}${count(both)} of those that it stopped among them`) : null, before > 0 ? soft(`${count(before)} of these were as slow already when it began: they waited, for example for earlier ops of their flow`) : null])));
}

// Returns the switch or host at which most of these flows start or end.
function whoOf(run, flows, all) {
  const ends = flows.map(([, from, to]) => [from, to]), net = run.recording.network.nodes;
  const above = new Map();
  for (const [a, b] of net.links ?? []) for (const [host, other] of [[a, b], [b, a]]) if (net.nodes[host][1] === 0 && net.nodes[other][1] > 0) above.set(host, net.nodes[other][0]);
  const of = host => above.get(host) ?? `host ${host}`, seen = new Map();
  for (const [from, to] of ends) for (const place of new Set([of(from), of(to)])) seen.set(place, (seen.get(place) ?? 0) + 1);
  const [most] = [...seen].sort((a, b) => b[1] - a[1]);
  return most ? `${most[1]} of ${ends.length < all ? "the first" : "all"} ${ends.length} begin or end at ${most[0]}` : "";
}
