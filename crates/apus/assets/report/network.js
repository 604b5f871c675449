// The network over time: a heat map of links by time, a slider, and the balance of traffic over paths.
const TIERS = ["host", "edge", "aggregation", "core"];
const tierName = (tier, top) => tier === 0 ? "host" : top === 1 ? "switch" : top === 2 ? ["host", "leaf", "spine"][tier] : TIERS[tier] ?? `tier ${tier}`;
const topTier = net => Math.max(0, ...net.groups.flatMap(([from, to]) => [from[0], to[0]]));
const podName = pods => pods ? (pods[0] === pods[1] ? `pod ${pods[0]}` : `pods ${pods[0]}–${pods[1]}`) : "";
// In a leaf-spine network, a pod is a leaf with its hosts.
const placeName = ([tier, pods], top) => { const name = tierName(tier, top), own = top === 2 && pods?.[0] === pods?.[1] ? `leaf ${pods?.[0]}` : podName(pods); return !pods ? name + (tier === 0 ? "s" : "") : tier === 0 ? `hosts of ${own}` : top === 2 && tier === 1 ? (pods[0] === pods[1] ? own : `leaves of ${own}`) : `${name} of ${own}`; };

const MEASURES = [["utilisation", "utilisation", part => percent(Math.min(1, part)), "Wire bytes sent / bytes that the link could have sent in the interval; of a group, all links together"],
  ["busiest", "utilisation, busiest link", part => percent(Math.min(1, part)), "Utilisation of the busiest link of the group"],
  ["queue", "queue", bytes, "Time average of the wire bytes in the port; of a group, its longest queue"],
  ["drops", "drops", count, "Packets dropped at the port for any reason, credits not included"], ["marks", "ECN marks", count, "Packets whose ECN field the port set to congested"], ["pauses", "pauses", count, "Times that a class of the port was paused (PFC)"]];

// Short names of nodes, for places with little room.
const LETTERS = [["aggregation", "A"], ["switch", "sw"], ["spine", "S"], ["leaf", "L"], ["host", "h"], ["edge", "E"], ["core", "C"], ["agg", "A"], ["pods", "p"], ["pod", "p"]];
const abbreviated = name => LETTERS.reduce((text, [word, letter]) => text.replace(new RegExp(`\\b${word}\\b ?(?=\\d)`, "g"), letter).replace(new RegExp(`\\b${word}\\b`, "g"), letter), name).replace(" → ", "→");

// Rows and values of a run, by groups or by links.
const heats = new Map(); // They take long to read.
function heatOf(run, level, measure) {
  const key = [runs.indexOf(run), level, measure].join();
  if (!heats.has(key)) {
    if (heats.size > 11) heats.clear();
    heats.set(key, readHeat(run, level, measure));
  }
  return heats.get(key);
}
function readHeat(run, level, measure) {
  const net = run.recording.network, columns = net.times_us.length, top = topTier(net);
  const source = level === "groups" ? net.group_cells : net.link_cells;
  const names = level === "groups" ? net.groups.map(([from, to, ports]) => `${placeName(from, top)} → ${placeName(to, top)}${ports > 1 ? ` (${ports})` : ""}`) : net.links.map(([, name]) => pretty(name));
  const build = ["drops", "marks", "pauses"].includes(measure) ? counts : matrix;
  return { names, values: build(source[measure] ?? source.utilisation, names.length, columns), columns, times: net.times_us };
}

function networkPictures() {
  const all = recorded().filter(run => run.recording.network.times_us.length > 0);
  if (!all.length) return null;
  const run = () => runs[runIndex()].recording?.network.times_us.length ? runs[runIndex()] : all[0];
  let level = state.level ?? (run().recording.network.links.length && run().recording.network.links.length <= 40 ? "links" : "groups");
  // The mean of a group could hide a full link.
  const usual = level === "groups" ? "busiest" : "utilisation";
  let measure = MEASURES.some(([key]) => key === state.measure) ? state.measure : usual;
  const has = key => all.some(one => { const c = one.recording.network[level === "groups" ? "group_cells" : "link_cells"][key]; return Array.isArray(c) ? c.length : c?.most > 0; });
  const time = () => Math.max(0, Math.min(run().recording.network.times_us.length - 1, state.t !== undefined ? nearest(run().recording.network.times_us, Number(state.t)) : startTime()));
  // The middle of the first fault or, without faults, of the run.
  const startTime = () => {
    const { network, duration_us } = run().recording, fault = faultsOf(run().recording).find(one => !one.instant && !one.after);
    return fault ? nearest(network.times_us, (fault.from + Math.min(fault.to, duration_us)) / 2) : Math.floor(network.times_us.length / 2);
  };
  const heat = () => heatOf(run(), level, measure);
  const measureSelect = select("Quantity", MEASURES.filter(([key]) => key === "utilisation" || has(key)).map(([key, text]) => [key, text]), measure, value => { measure = value; setState({ measure: value === usual ? null : value }, true); map.refresh(); topology.refresh(); });
  const levels = [["groups", "folded by pod and tier"], ["links", "single links"]].filter(([key]) => key === "groups" || run().recording.network.links.length);
  const levelSelect = select("Rows", levels, level, value => { level = value; setState({ level: value }, true); map.refresh(); });
  const runSelect = all.length > 1 ? select("Run", runs.map((one, i) => [i, one.label]).filter(([i]) => runs[i].recording), runIndex(), value => setState({ run: value, op: null, hop: null })) : null;

  const map = picture({ id: "network-heat-map", title: "Links over time", wide: true, about: "A row per link, or per group of links of equal pod and tier; a column per interval. Click to choose the time of the topology below.",
    controls: [runSelect, measureSelect, levelSelect],
    draw: width => drawHeat(width, heat(), measure, run(), time(), place => setState({ t: number(run().recording.network.times_us[place], 7).replace(/\u202f/g, "") })),
    note: () => {
      const net = run().recording.network;
      const text = MEASURES.find(([key]) => key === measure)[3];
      const short = map.short ? ` Names: ${LETTERS.filter(([word]) => map.short.some(name => new RegExp(`\\b${word}\\b`).test(name))).map(([word, letter]) => `${letter} ${word}`).join(", ")}.` : "";
      const full = ["utilisation", "busiest"].includes(measure) ? " A packet counts when it has left, so that an interval can have up to one packet more than its link carries: shown as 100 %." : "";
      return `${text}.${full}${["utilisation", "busiest", "queue"].includes(measure) ? " Values are rounded to 1/255 of the largest." : ""}${short} ${level === "links" ? (net.links.length < net.link_count ? `${net.links.length} of ${count(net.link_count)} sampled switch ports: those with most drops, then with the longest queues.` : "All sampled switch ports; those of hosts are in the folded rows.") : `${count(net.port_count)} ports in ${plural(net.groups.length, "group")}; in brackets the links of a group.`}${faultsOf(run().recording).length ? " Red bands above: faults." : ""}`;
    },
    rows: () => { const { names, values, times, columns } = heat(); return [["link", ...times.map(t => `${t} us`)], ...names.map((name, row) => [name, ...Array.from({ length: columns }, (_, c) => Number(values.at(row, c).toPrecision(4)))])]; } });
  const slider = h("input", { type: "range", min: 0, max: run().recording.network.times_us.length - 1, value: time(), id: "slider", "aria-label": "Time of the topology", oninput: () => setState({ t: number(run().recording.network.times_us[slider.value], 7).replace(/\u202f/g, "") }) });
  const shownTime = h("output", { for: "slider", class: "time" });
  let playing = null;
  const play = h("button", { type: "button", text: "▶ Play", onclick: () => {
    if (playing) { clearInterval(playing); playing = null; play.textContent = "▶ Play"; return; }
    play.textContent = "❚❚ Pause";
    playing = setInterval(() => { slider.value = (Number(slider.value) + 1) % (Number(slider.max) + 1); slider.dispatchEvent(new Event("input")); }, 120);
  } });
  const topology = picture({ id: "topology", title: "Topology at the chosen time", wide: true, about: "Each line is a link, or a bundle of the links between two groups of nodes; colour and width are the chosen quantity in the busier direction. Broken links are dashed in red.",
    draw: width => { slider.max = run().recording.network.times_us.length - 1; slider.value = time(); shownTime.textContent = micros(run().recording.network.times_us[time()]); slider.setAttribute("aria-valuetext", shownTime.textContent); return drawTopology(width, run(), measure, time()); },
    note: () => { const { nodes, port_count } = run().recording.network; return nodes.nodes ? "" : `${count(nodes.count)} nodes and ${count(port_count / 2)} links, folded by pod and tier.`; },
    rows: () => { const net = run().recording.network, top = topTier(net), { values } = heatOf(run(), "groups", measure); return [["from", "to", "links", measure], ...net.groups.map(([from, to, ports], i) => [placeName(from, top), placeName(to, top), ports, values.at(i, time())])]; } });
  topology.figure.querySelector(".head").after(h("div", { class: "bar slider" }, play, slider, shownTime));
  onState(["t"], () => { map.mark?.(time()); topology.refresh(); });
  onState(["run"], () => { if (runSelect) runSelect.value = runIndex(); map.refresh(); topology.refresh(); spread?.refresh(); });
  map.setMark = move => { map.mark = move; };
  const spread = balance(run, all);
  report.slider = slider;
  return section("network", "The network over time", null, h("div", { class: "grid" }, map.figure, topology.figure, spread ? spread.figure : null));

  function drawHeat(width, { names, values, columns, times }, which, of, at, choose) {
    let longest = Math.max(...names.map(name => name.length));
    map.short = 12 + longest * 6.1 > width * 0.34 ? names : null;
    const shownNames = map.short ? names.map(abbreviated) : names;
    longest = Math.max(...shownNames.map(name => name.length));
    const bands = faultsOf(of.recording).filter(fault => !fault.instant && !fault.after);
    const left = Math.round(Math.min(width * 0.34, 12 + longest * 6.1)), right = 18, top = bands.length ? 32 : 18, bottom = 34;
    const rowHeight = Math.max(1, Math.min(20, Math.floor(460 / names.length))), shownRows = names.length;
    const height = Math.max(60, Math.min(520, rowHeight * shownRows));
    const per = Math.max(1, Math.ceil(shownRows / height)), lines = Math.ceil(shownRows / per);
    const pixels = h("canvas", { width: columns, height: lines });
    const g = pixels.getContext("2d"), image = g.createImageData(columns, lines);
    const most = which === "utilisation" || which === "busiest" ? 1 : values.most || 1;
    const share = v => which === "utilisation" || which === "busiest" ? v / most : Math.sqrt(v / most);
    for (let line = 0; line < lines; line++) {
      for (let c = 0; c < columns; c++) {
        let value = 0;
        // If several rows share a line of the screen, the largest value is drawn.
        for (let row = line * per; row < Math.min(shownRows, (line + 1) * per); row++) value = Math.max(value, values.at(row, c));
        const [r, gr, b] = heatColour(share(value)), i = 4 * (line * columns + c);
        image.data[i] = r; image.data[i + 1] = gr; image.data[i + 2] = b; image.data[i + 3] = 255;
      }
    }
    g.putImageData(image, 0, 0);
    const faults = faultsOf(of.recording), domain = [0, times.at(-1)];
    const x = svgScale(domain, "linear", left, width - right);
    const broken = new Set(of.recording.faults.filter(fault => !fault.instant).flatMap(fault => [pretty(fault.subject), level === "groups" ? names[fault.group] : null]));
    const every = Math.ceil(12 / (height / lines) / 1) || 1;
    const svg = plotOf({ width, height: height + top + bottom, marginLeft: left, marginRight: right, marginTop: top, marginBottom: bottom,
      style: { background: "transparent", color: theme.ink, fontSize: "11px", fontFamily: "inherit" }, x: { domain, label: null }, y: { domain: [lines, 0], axis: null },
      marks: [Plot.axisX({ label: null, color: theme.soft, ticks: Math.max(3, Math.round(width / 110)), tickFormat: micros, tickSize: 4 }),
        Plot.text(Array.from({ length: lines }, (_, i) => i).filter(i => i % every === 0), { x: domain[0], y: i => i + 0.5, dx: -6, textAnchor: "end", text: i => (broken.has(names[i * per]) ? "✕ " : "") + (shownNames[i * per].length * 6.1 > left ? shownNames[i * per].slice(0, Math.floor(left / 6.1) - 1) + "…" : shownNames[i * per]), fontWeight: i => broken.has(names[i * per]) ? 700 : 400, fill: i => broken.has(names[i * per]) ? theme.bad : theme.ink, fontSize: Math.min(11, Math.max(8, height / lines * every)) }),
        Plot.rectX(faults.filter(f => !f.instant && !f.after), { x1: f => Math.max(f.from, domain[0]), x2: f => Math.min(f.to, domain[1]), y1: -lines * 0.03, y2: -lines * 0.008, fill: theme.bad, insetTop: 0, clip: false }),
      ] });
    const space = "http://www.w3.org/2000/svg", picture = document.createElementNS(space, "image");
    // The samples start with the load.
    const first = x.to(columns > 1 ? Math.max(0, 2 * times[0] - times[1]) : 0);
    for (const [key, value] of Object.entries({ x: first, y: top, width: width - right - first, height, preserveAspectRatio: "none", href: pixels.toDataURL(), style: "image-rendering:pixelated" })) picture.setAttribute(key, value);
    svg.insertBefore(picture, svg.firstChild.nextSibling);
    for (const fault of faults) {
      for (const edge of fault.instant ? [fault.from] : [fault.from, fault.to]) {
        if (edge < domain[0] || edge > domain[1]) continue;
        const rule = document.createElementNS(space, "line");
        for (const [key, value] of Object.entries({ x1: x.to(edge), x2: x.to(edge), y1: top - 8, y2: top + height, stroke: theme.bad, "stroke-dasharray": "3 3", "stroke-opacity": 0.8 })) rule.setAttribute(key, value);
        svg.append(rule);
      }
      if (!fault.instant && !fault.after) {
        const band = document.createElementNS(space, "rect");
        const [a, b] = [x.to(Math.max(fault.from, domain[0])), x.to(Math.min(fault.to, domain[1]))];
        for (const [key, value] of Object.entries({ x: a, y: top - 9, width: Math.max(1, b - a), height: 5, fill: theme.bad })) band.setAttribute(key, value);
        svg.append(band);
      }
    }
    // Labels faults above their bands. Both directions of a link share a label, and of several simultaneous faults the
    // first is named.
    let free = -Infinity;
    for (const [key, fault] of new Map(bands.map(fault => [[fault.from, fault.to].join(), fault]))) {
      const same = of.recording.faults.filter(one => !one.instant && [one.at_us, one.until_us ?? of.recording.duration_us].join() === key), places = [...new Set(same.map(one => one.subject.split(/ <?-> /).sort().join(" ↔ ")))];
      const name = { down: "down: ", slow: "slow: ", "avoided-local": "avoided: ", "avoided-global": "avoided: " }[same[0]?.kind] ?? "fault: ", text = `${name}${map.short ? abbreviated(places[0] ?? "") : places[0] ?? ""}${places.length > 1 ? ` and ${places.length - 1} more` : ""}`;
      const at = Math.max(left, Math.min(x.to(Math.max(fault.from, domain[0])), width - right - text.length * 6.2));
      if (at < free) continue;
      free = at + text.length * 6.2 + 12;
      label(svg, at, top - 13, text, "start");
      svg.lastChild.setAttribute("fill", theme.bad);
    }
    label(svg, left, height + top + bottom - 3, "simulated time", "start");
    const rule = document.createElementNS(space, "line");
    for (const [key, value] of Object.entries({ y1: top - 4, y2: top + height + 4, stroke: theme.ink, "stroke-width": 1.5 })) rule.setAttribute(key, value);
    svg.append(rule);
    const mark = place => { rule.setAttribute("x1", x.to(times[place])); rule.setAttribute("x2", x.to(times[place])); };
    mark(at);
    map.setMark(mark);
    svg.setAttribute("role", "img");
    const peak = peakOf(values, names, times);
    svg.setAttribute("aria-label", `Heat map of ${which}: ${names.length} rows, ${columns} intervals. Largest: ${peak}`);
    const show = MEASURES.find(([key]) => key === which)[2];
    const cellAt = event => {
      const box = svg.getBoundingClientRect(), c = Math.floor((event.clientX - box.left - first) / (width - right - first) * columns), line = Math.floor((event.clientY - box.top - top) / height * lines);
      return c >= 0 && c < columns && line >= 0 && line < lines ? [line, c] : null;
    };
    const box = h("div", { class: "chart heat", tabindex: 0, role: "group", "aria-label": "Heat map: arrow keys move the time" }, svg);
    box.addEventListener("pointermove", event => {
      const cell = cellAt(event);
      if (!cell) return hideTip();
      const [line, c] = cell, rows = [];
      for (let row = line * per; row < Math.min(shownRows, (line + 1) * per); row++) rows.push(row);
      const row = rows.reduce((a, b) => values.at(b, c) > values.at(a, c) ? b : a);
      showTip([h("div", { class: "tip-head", text: names[row] + (per > 1 ? ` (largest of ${rows.length} rows)` : "") }), h("div", { class: "tip-row" }, h("span", { text: MEASURES.find(([key]) => key === which)[1] }), h("b", { text: show(values.at(row, c)) })), h("div", { class: "tip-more", text: `until ${micros(times[c])}` })], event.clientX + 16, event.clientY + 16);
    });
    box.addEventListener("pointerleave", hideTip);
    box.addEventListener("click", event => { const cell = cellAt(event); if (cell) choose(cell[1]); });
    box.addEventListener("keydown", event => { const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key]; if (step) { event.preventDefault(); choose(Math.max(0, Math.min(columns - 1, time() + step))); say(`Time ${micros(times[time()])}`); } });
    const ramp = h("span", { class: "ramp", "aria-hidden": "true", style: { background: `linear-gradient(90deg, ${theme.heat.join(",")})` } });
    return h("div", {}, h("div", { class: "key" }, h("span", { text: show(0) }), ramp, h("span", { text: show(most) }), which === "utilisation" || which === "busiest" ? null : h("span", { class: "soft", text: "(colour by square root)" }), h("span", { class: "soft", text: `largest: ${peak}` })), box);
  }
  function peakOf(values, names, times) {
    let best = [-1, 0, 0];
    for (let row = 0; row < values.rows; row++) for (let c = 0; c < values.columns; c++) { const v = values.at(row, c); if (v > best[0]) best = [v, row, c]; }
    return best[0] > 0 ? `${MEASURES.find(([key]) => key === measure)[2](best[0])} at ${names[best[1]]}, ${micros(times[best[2]])}` : "none";
  }
}

// Utilisation of parallel links: shows how evenly ECMP or a path policy balances the traffic.
function balance(run, all) {
  if (!all.some(one => one.recording.network.spread.some(set => set.links > 1))) return null;
  const self = picture({ id: "path-balance", title: "Balance of parallel links", wide: true,
    about: "Utilisation of each link between switches over the measured phase. Links of one row are alternatives for the same traffic: the wider a row, the less evenly paths share it. Jain's index is 1 if all are equal.",
    draw: width => {
      const net = run().recording.network, top = topTier(net), sets = net.spread.filter(set => set.links > 1);
      const dots = sets.flatMap(set => set.utilisation.map((value, i) => ({ row: `${tierName(set.from, top)} → ${tierName(set.to, top)}`, value, name: pretty(set.names[i]) })));
      const svg = plotOf({ width, height: 46 + 42 * sets.length, marginLeft: 130, marginRight: width > 560 ? 200 : 26, marginBottom: 34, marginTop: 8,
        style: { background: "transparent", color: theme.ink, fontSize: "11.5px", fontFamily: "inherit" },
        x: { domain: [0, Math.max(1, ...dots.map(dot => dot.value))], label: null, tickFormat: v => percent(v), ticks: Math.round(width / 120) }, y: { label: null, tickSize: 0 },
        marks: [Plot.ruleX([0], { stroke: theme.line }), Plot.tickX(dots, { x: "value", y: "row", stroke: theme.series[0], strokeOpacity: 0.55, strokeWidth: 2 }),
          Plot.dot(sets, { x: "mean", y: set => `${tierName(set.from, top)} → ${tierName(set.to, top)}`, fill: theme.series[1], r: 4.5, stroke: theme.card }),
          width > 560 ? Plot.text(sets, { frameAnchor: "right", y: set => `${tierName(set.from, top)} → ${tierName(set.to, top)}`, dx: 190, textAnchor: "end", text: set => `${count(set.links)} links, Jain's index ${set.jain === null ? "–" : number(set.jain, 3)}`, fill: theme.soft }) : null].filter(Boolean) });
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", "Utilisation of parallel links: " + sets.map(set => `${tierName(set.from, top)} to ${tierName(set.to, top)}: mean ${percent(set.mean)}, Jain's index ${set.jain === null ? "unknown" : number(set.jain, 3)}`).join("; "));
      return svg;
    },
    note: () => { const cut = run().recording.network.spread.filter(set => set.utilisation.length < set.links); return `Utilisation over the measured phase; the dot is the mean.${cut.length ? ` Of ${[...new Set(cut.map(set => count(set.links)))].join(" and ")} links, every n-th is drawn, the busiest included; ports.csv has all.` : ""}`; },
    rows: () => [["from tier", "to tier", "link", "utilisation"], ...run().recording.network.spread.flatMap(set => set.names.map((name, i) => [set.from, set.to, name, set.utilisation[i]]))] });
  return self;
}
