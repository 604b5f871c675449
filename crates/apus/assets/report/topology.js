// Topology at a given time: node by node if it is small, otherwise grouped by pod and tier.
function drawTopology(width, run, measure, at) {
  const net = run.recording.network, top = topTier(net);
  const faults = run.recording.faults.filter(fault => fault.kind !== "reroute");
  const now = net.times_us[at];
  const broken = fault => fault.at_us <= now && (fault.until_us === null || now <= fault.until_us);
  const groupHeat = heatOf(run, "groups", measure), linkHeat = net.links.length ? heatOf(run, "links", measure) : null;
  const most = measure === "utilisation" || measure === "busiest" ? 1 : Math.max(groupHeat.values.most, linkHeat?.values.most ?? 0) || 1;
  const share = v => measure === "utilisation" || measure === "busiest" ? Math.min(1, v / most) : Math.sqrt(v / most);
  const show = MEASURES.find(([key]) => key === measure)[2];
  const space = "http://www.w3.org/2000/svg";
  const make = (tag, attributes, text) => {
    const node = document.createElementNS(space, tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const rowHeight = 92, height = 56 + rowHeight * top + 30;
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "font-family": "inherit", "font-size": 11 });
  const y = tier => height - 38 - tier * rowHeight;
  const left = 84;
  for (let tier = 0; tier <= top; tier++) svg.append(make("text", { x: 2, y: y(tier) + 4, fill: theme.soft }, ({ host: "Hosts", switch: "Switches", leaf: "Leaves", spine: "Spines" })[tierName(tier, top)] ?? capital(tierName(tier, top))));
  const edge = (a, b, value, text, isBroken, bundle) => {
    const s = share(value ?? 0);
    const line = make("line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], stroke: value === null ? theme.line : rgb(heatColour(0.12 + 0.88 * s)), "stroke-width": (bundle ? 2.5 : 1) + 3.5 * s, "stroke-linecap": "round" });
    svg.append(line);
    // Drawn as a separate line, so that it is visible on a full link too.
    if (isBroken) svg.append(make("line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], stroke: theme.card, "stroke-width": 4.5 }), make("line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], stroke: theme.bad, "stroke-width": 3, "stroke-dasharray": "4 5", class: "broken" }));
    // A wide invisible line that receives the pointer.
    const wide = make("line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], stroke: "transparent", "stroke-width": 9 });
    wide.addEventListener("pointermove", event => showTip([h("div", { class: "tip-head", text: text[0] }), ...text.slice(1).map(line => h("div", { text: line }))], event.clientX + 14, event.clientY + 14));
    wide.addEventListener("pointerleave", hideTip);
    return wide;
  };
  const hits = [];
  let busiest = [-1, ""];
  if (net.nodes.nodes) {
    const byTier = new Map();
    net.nodes.nodes.forEach(([, tier], i) => byTier.set(tier, [...(byTier.get(tier) ?? []), i]));
    const place = [];
    for (const [tier, members] of byTier) members.forEach((node, i) => { place[node] = [left + (i + 0.5) / members.length * (width - left - 12), y(tier)]; });
    const linkRow = new Map(net.links.map(([port], row) => [port, row]));
    net.nodes.links.forEach(([a, b, rate], link) => {
      const values = [2 * link, 2 * link + 1].map(port => linkRow.has(port) ? linkHeat.values.at(linkRow.get(port), at) : null);
      const value = values.every(v => v === null) ? null : Math.max(...values.map(v => v ?? 0));
      const names = [net.nodes.nodes[a][0], net.nodes.nodes[b][0]];
      const own = faults.filter(fault => fault.port === 2 * link || fault.port === 2 * link + 1);
      if (value !== null && value > busiest[0]) busiest = [value, names.join(" – ")];
      const texts = values.map((v, i) => `${i ? "←" : "→"} ${v === null ? "not sampled" : show(v)}`);
      hits.push(edge(place[a], place[b], value, [names.join(" – ") + `, ${number(rate)} Gb/s`, ...texts, ...own.map(fault => fault.text)], own.some(broken)));
    });
    net.nodes.nodes.forEach(([name, tier], i) => {
      const room = (width - left) / byTier.get(tier).length, size = Math.max(2.5, Math.min(7, room / 3));
      svg.append(tier === 0 ? make("circle", { cx: place[i][0], cy: place[i][1], r: size, fill: theme.ink }) : make("rect", { x: place[i][0] - size * 1.2, y: place[i][1] - size, width: size * 2.4, height: size * 2, rx: 2, fill: theme.ink }));
      if (room > 12 + 6.2 * name.length) svg.append(tier === 0 ? make("text", { x: place[i][0], y: place[i][1] + 21, "text-anchor": "middle", fill: theme.soft }, name) : make("text", { x: place[i][0] - (tier === top ? 0 : 13), y: place[i][1] + (tier === top ? -12 : 4), "text-anchor": tier === top ? "middle" : "end", fill: theme.ink, stroke: theme.card, "stroke-width": 4, "paint-order": "stroke" }, name));
      else if (tier === 0 && room > 22) svg.append(make("text", { x: place[i][0], y: place[i][1] + 20, "text-anchor": "middle", fill: theme.soft }, name.replace(/\D+/g, "")));
    });
  } else {
    // A box per place; the highest tier is a single box over the whole width.
    const places = new Map();
    net.groups.forEach(([from, to]) => [from, to].forEach(one => places.set(JSON.stringify(one), one)));
    const pods = [...new Set([...places.values()].map(([, pods]) => pods && pods[0]).filter(pod => pod !== null))].sort((a, b) => a - b);
    const room = (width - left - 10) / Math.max(1, pods.length);
    const centre = ([tier, own]) => own ? [left + (pods.indexOf(own[0]) + 0.5) * room, y(tier)] : [left + (width - left - 10) / 2, y(tier)];
    const linksOf = place => net.groups.filter(([from]) => JSON.stringify(from) === place).reduce((sum, [, , ports]) => sum + ports, 0);
    const pairs = new Map();
    net.groups.forEach(([from, to, ports, rate], i) => {
      const key = [JSON.stringify(from), JSON.stringify(to)].sort().join();
      const entry = pairs.get(key) ?? { ends: [from, to], ports, rate, rows: [] };
      entry.rows.push([i, from, to]);
      pairs.set(key, entry);
    });
    const groupOf = new Map(net.links.map(([port, , group]) => [port, group]));
    for (const { ends, ports, rate, rows } of pairs.values()) {
      const value = Math.max(...rows.map(([row]) => groupHeat.values.at(row, at)));
      const [a, b] = ends.map(centre);
      // Bundles of links to the highest tier end at it directly above their pod.
      const meet = (point, end, other) => end[1] ? point : [other[0], point[1]];
      const name = `${placeName(ends[0], top)} – ${placeName(ends[1], top)}`;
      if (value > busiest[0]) busiest = [value, name];
      const own = faults.filter(fault => rows.some(([row]) => fault.group === row));
      hits.push(edge(meet(a, ends[0], b), meet(b, ends[1], a), value, [`${name}: ${plural(ports, "link")}, ${number(rate)} Gb/s`, ...rows.map(([row, from, to]) => `${placeName(from, top)} → ${placeName(to, top)}: ${show(groupHeat.values.at(row, at))}`), ...own.map(fault => fault.text)], own.some(broken), true));
    }
    for (const [key, place] of places) {
      const [x, cy] = centre(place), half = place[1] ? Math.min(34, room * 0.4) : (width - left - 10) / 2;
      const box = make("rect", { x: x - half, y: cy - 10, width: 2 * half, height: 20, rx: 5, fill: theme.card, stroke: theme.ink, "stroke-width": 1.2 });
      svg.append(box);
      hits.push(box);
      box.addEventListener("pointermove", event => showTip(`${placeName(place, top)}: ${plural(linksOf(key), "egress port")}`, event.clientX + 14, event.clientY + 14));
      box.addEventListener("pointerleave", hideTip);
      if (place[1] && room > 46 && place[0] === 0) svg.append(make("text", { x, y: cy + 26, "text-anchor": "middle", fill: theme.soft }, podName(place[1])));
      else if (place[1] && place[0] === 0 && room > 16 && place[1][0] % 2 === 0) svg.append(make("text", { x, y: cy + 26, "text-anchor": "middle", fill: theme.soft }, String(place[1][0])));
    }
  }
  hits.forEach(hit => svg.append(hit));
  const down = faults.filter(broken);
  svg.setAttribute("aria-label", `Topology at ${micros(now)}: highest ${measure} ${show(Math.max(0, busiest[0]))} at ${busiest[1]}. ${down.length ? "Broken: " + down.map(fault => fault.subject).join(", ") : "No link is broken"}.`);
  const line = [h("span", { text: `highest ${MEASURES.find(([key]) => key === measure)[1]}: ` }), h("b", { text: busiest[0] > 0 ? `${show(busiest[0])} at ${busiest[1]}` : "none" })];
  return h("div", {}, h("div", { class: "key" }, ...line, down.length ? h("span", { class: "bad", text: "faulty now: " + [...new Set(down.map(fault => fault.subject.split(" -> ").sort().join(" ↔ ")))].slice(0, 4).join(", ") + (down.length > 4 ? ` and ${down.length - 4} more` : "") }) : null), svg);
}
