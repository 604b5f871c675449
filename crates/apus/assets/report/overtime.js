// Flows and ports over time: the range over all flows, and single lines.
const QUANTITIES = [
  [["goodput_gbps", "rate per flow, Gb/s"], ["cwnd_packets", "window, packets"], ["fabric_cwnd_packets", "fabric window, packets"], ["endpoint_cwnd_packets", "endpoint window, packets"]],
  [["smoothed_rtt_us", "smoothed RTT, µs"], ["target_delay_us", "target delay, µs"], ["pacing_delay_us", "pacing delay, µs"], ["in_flight_packets", "packets in flight"]],
];
// A fault that lasts for the whole run would cover every picture, so a note names it instead of a band.
const lasts = (recording, fault) => !fault.instant && fault.at_us <= recording.warmup_us && (fault.until_us ?? Infinity) >= recording.duration_us;
// A fault is followed by the time until the last op that it slowed ended, and by the time at which the loads were even
// again.
const faultsOf = recording => recording.faults.filter(fault => !lasts(recording, fault)).flatMap(fault => {
  const to = fault.until_us ?? recording.duration_us, all = [{ from: fault.at_us, to, instant: fault.instant, text: fault.text }];
  if (fault.slowed_until_us > to) all.push({ from: to, to: fault.slowed_until_us, after: true, text: `After ${fault.text}` });
  if (Number.isFinite(fault.even_again_us)) all.push({ from: fault.even_again_us, instant: true, text: `Loads even again: ${fault.subject}` });
  return all;
});
const lastingOf = recording => recording.faults.filter(fault => lasts(recording, fault)).map(fault => fault.text);

function overTime() {
  const all = recorded();
  if (!all.length || !all[0].recording.times_us.length) return null;
  const overlay = all.length > 1;
  let filter = "";
  const grid = h("div", { class: "grid two-wide", data: { sync: "time" } });
  const time = recording => ({ x: recording.times_us, faults: faultsOf(recording), warmup: recording.warmup_us, domain: [Math.min(0, recording.times_us[0]), Math.max(recording.duration_us, recording.times_us.at(-1))] });
  // Pictures are redrawn one after the other, so that typing does not wait for all of them.
  function again() {
    for (const { picture } of grid.querySelectorAll("figure")) {
      picture.reset?.();
      picture.stale = true;
      setTimeout(() => { if (picture.stale && picture.visible) picture.draw(); });
    }
  }
  const MOST_MATCHES = 24;
  const hidesBy = (names, other) => {
    let found = 0;
    return names.map((name, i) => filter ? !contains(name, filter) || ++found > MOST_MATCHES : other(i));
  };
  const common = () => {
    const shown = overlay ? all : [runs[runIndex()].recording ? runs[runIndex()] : all[0]];
    return { shown, recording: shown[0].recording, faults: shown.flatMap(run => faultsOf(run.recording)), warmup: shown[0].recording.warmup_us,
      xDomain: [0, Math.max(...shown.map(run => time(run.recording).domain[1]))], xFormat: micros, readout: micros, xLabel: "simulated time", sync: "time", height: 240 };
  };
  const singles = (run, members, faint) => {
    const names = members.map(one => one.name ?? flowName(run, one.flow)), hidden = hidesBy(names, i => faint && i >= 4);
    return members.map((one, i) => ({ name: names[i], colour: colour(i), x: run.recording.times_us, y: one.values, faint, hidden: hidden[i], width: 1.1 }));
  };
  // Runs have different times, so each value has its own row.
  const table = lines => overlay ? [["line", "time_us", "value"], ...lines.flatMap(one => one.x.map((t, i) => [one.name, t, one.y[i]]))] :
    [["time_us", ...lines.map(one => one.name)], ...lines[0].x.map((t, i) => [t, ...lines.map(one => one.y[i])])];
  for (const members of QUANTITIES) {
    const present = members.filter(([column]) => all.some(run => run.recording.quantities[column]));
    if (!present.length) continue;
    let column = present[0][0];
    const unit = text => text.split(", ").at(-1);
    const view = picture({ id: "over-time-" + members[0][0], title: members === QUANTITIES[0] ? "Rates and windows of flows" : "Delays of flows", wide: false,
      about: "Every sample of the active flows: dark band 25 to 75 %, light band 5 to 95 %, line median, dashed the mean; thin lines are single flows. With several runs, the medians of each.",
      controls: [select("Quantity", present, column, value => { column = value; series = null; view.refresh(); })],
      draw: (width, self) => {
        const base = common(), text = present.find(([key]) => key === column)[1];
        series ??= build(base, text);
        const areas = overlay ? [] : bands(base);
        const chart = lineChart(width, { ...base, series, areas, yLabel: text });
        self.chart = chart;
        return h("div", {}, chart, legend(series, () => self.refresh()));
      },
      note: () => {
        const run = common().shown[0], q = run.recording.quantities[column];
        if (!q || overlay) return overlay ? "Medians over the active flows of each run." : "";
        return `${capital(q.definition)}. ${q.flows.length < run.recording.flow_count ? `Single lines: ${ordered(run).length} of ${count(run.recording.flow_count)} flows: those with the slowest ops first, the others spread evenly; four are shown until you choose others below or by the filter.` : run.recording.flow_count > 4 ? "The flows with the slowest ops are shown; choose others below or by the filter." : ""}${run.recording.every > 1 ? ` Every ${run.recording.every}th sample is drawn.` : ""}`;
      },
      rows: () => table(series ?? build(common(), "")) });
    let series = null;
    const bands = ({ recording }) => {
      const b = recording.quantities[column]?.bands;
      if (!b || recording.flow_count < 2) return [];
      return [{ x: recording.times_us, low: b.p5, high: b.p95, colour: theme.series[0], opacity: 0.13 }, { x: recording.times_us, low: b.p25, high: b.p75, colour: theme.series[0], opacity: 0.2 }];
    };
    // The flows of the slowest ops come first, because the second run has sampled them.
    const ordered = run => {
      const own = (run.causes?.lines?.[column] ?? []).filter(one => one.values.some(v => v !== null)), others = run.recording.quantities[column].flows;
      return [...own, ...others.filter(one => !own.some(other => other.flow === one.flow))];
    };
    const build = ({ shown, recording }) => {
      if (overlay) return shown.filter(run => run.recording.quantities[column]).map(run => ({ name: run.label, colour: colour(hueOf(run)), dash: dash(hueOf(run)), x: run.recording.times_us, y: run.recording.quantities[column].bands.p50 }));
      const q = recording.quantities[column], lines = [];
      if (!q) return lines;
      if (recording.flow_count > 1) {
        lines.push({ name: "median of flows", colour: theme.ink, x: recording.times_us, y: q.bands.p50, width: 2 }, { name: "mean", colour: theme.ink, dash: "5 4", x: recording.times_us, y: q.bands.mean, width: 1.25 });
        if (column === "smoothed_rtt_us" && recording.quantities.target_delay_us) lines.push({ name: "median target", colour: theme.bad, dash: "8 4", x: recording.times_us, y: recording.quantities.target_delay_us.bands.p50 });
      }
      return [...lines, ...singles(shown[0], ordered(shown[0]), recording.flow_count > 1)];
    };
    view.reset = () => { series = null; };
    grid.append(view.figure);
  }
  for (const [key, title, text, about] of [["queue_kb", "Queues of the busiest ports", "mean queue, kB", "Time average of the wire bytes in the port over each interval, the packet in service included."], ["throughput_gbps", "Throughput of the busiest ports", "throughput, Gb/s", "Wire bytes sent in each interval."]]) {
    if (!all.some(run => run.recording.ports.length)) continue;
    let series = null;
    const view = picture({ id: "ports-" + key, title, about,
      draw: (width, self) => {
        const base = common();
        series ??= overlay ? base.shown.filter(run => run.recording.ports.length).map(run => ({ name: `${run.label}: ${pretty(run.recording.ports[0].name)}`, colour: colour(hueOf(run)), dash: dash(hueOf(run)), x: run.recording.times_us, y: run.recording.ports[0][key] })) :
          singles(base.shown[0], base.recording.ports.map(port => ({ name: pretty(port.name), values: port[key] })), false).map((one, i) => ({ ...one, hidden: filter ? one.hidden : i >= 6, width: 1.5 }));
        self.chart = lineChart(width, { ...base, series, yLabel: text });
        return h("div", {}, self.chart, legend(series, () => self.refresh()));
      },
      note: () => overlay ? "Of each run, the port that carried the most traffic." : `The ${plural(common().recording.ports.length, "switch port")} that carried the most traffic; port_samples.csv has their samples.`,
      rows: () => { const { shown, recording } = common(); return table(overlay ? shown.filter(run => run.recording.ports.length).map(run => ({ name: `${run.label}: ${run.recording.ports[0].name}`, x: run.recording.times_us, y: run.recording.ports[0][key] })) : recording.ports.map(port => ({ name: port.name, x: recording.times_us, y: port[key] }))); } });
    view.reset = () => { series = null; };
    grid.append(view.figure);
  }
  const bands = all.some(run => faultsOf(run.recording).length), lasting = [...new Set(all.flatMap(run => lastingOf(run.recording)))];
  const faults = `${bands ? " Red bands are faults; paler ones last until the ops that they slowed had ended, and lines show when loads were even again." : ""}${lasting.length ? ` During the whole run: ${lasting.slice(0, 3).join("; ")}${lasting.length > 3 ? ` and ${lasting.length - 3} more` : ""}.` : ""}`;
  const box = section("time", "Over time", "Drag over a picture to zoom all of them; double-click to show the whole run again." + faults,
    h("div", { class: "bar" }, h("label", {}, `Flows and ports (at most ${MOST_MATCHES}) whose name contains `, h("input", { id: "filter", type: "search", placeholder: "flow 7, host 3…", oninput: event => {
      filter = event.target.value.trim().toLowerCase();
      again();
    } }))), grid);
  onState(["run"], again);
  return box;
}
