// First screen: set-up, completion status, and the most important numbers.
function titleBlock() {
  const verbs = { run: "Run", reproduce: "Reproduction", compare: "Comparison", sweep: "Sweep", tune: "Tuning", emulate: "Emulation", rerun: "Repeated run" };
  byId("top").append(
    h("p", { class: "kind", text: `${verbs[data.command] ?? "Report"} · apus ${data.program}` }),
    h("h1", { text: data.title }),
    data.subtitle ? h("p", { class: "subtitle", text: data.subtitle }) : "");
}

function whatWasRun() {
  const box = h("dl", { class: "what" });
  // A sweep has no runs, but a common set-up of all its settings. If several directories are joined, each has its own
  // named set-up.
  const joined = Array.isArray(data.setup) ? data.setup : runs.length ? [] : [data.setup];
  const all = [...runs.map(run => run.setup), ...joined].filter(Boolean);
  if (!all.length) return null;
  const line = (name, key) => {
    const every = [...new Set(all.flatMap(setup => setup[key] ?? []))].filter(Boolean);
    // In a comparison, networks that differ only by an additional part share a line, which names the algorithms that
    // need the part.
    const part = text => key === "topology" && every.find(other => text.startsWith(other + ", ")), having = text => runs.filter(run => run.setup?.topology?.includes(text)).map(run => run.label);
    // The set-up of a run names no directory, so a line that it shares with a sweep is not attributed to the sweep.
    const sharing = text => all.filter(setup => [setup[key]].flat().includes(text)), own = text => sharing(text).length < all.length && sharing(text).every(setup => setup.of);
    const full = text => own(text) ? `${sharing(text).map(setup => setup.of).join(", ")}: ${text}` : part(text) && having(text).length ? `with ${having(text).join(", ")}:${text.slice(part(text).length + 1)}` : text;
    const texts = every.map(full), most = Math.max(3, ...(joined.length > 1 ? [12] : []), Array.isArray(all[0][key]) ? all[0][key].length : 0);
    if (!texts.length) return;
    const shown = texts.slice(0, most);
    box.append(h("dt", { text: name }), h("dd", {}, ...shown.map(text => h("div", { text })), texts.length > most ? h("div", { class: "soft", text: `and ${texts.length - most} more, which differ in their settings` }) : null));
  };
  line("Topology", "topology");
  line("Load", "load");
  // A comparison shows the algorithms that it compares, and a sweep its settings, instead of those of the scenario.
  const compared = data.comparison;
  if (data.command === "compare" && compared) box.append(h("dt", { text: "Compared" }), h("dd", { text: compared.rows.map(row => row.label).join(", ") }));
  else line("Algorithm", "algorithms");
  if (compared) for (const { key, values } of compared.axes) box.append(h("dt", { text: "Varied" }), h("dd", { text: `${key}: ${values.slice(0, 12).join(", ")}${values.length > 12 ? ` and ${values.length - 12} more` : ""}` }));
  line("Time", "time");
  if (compared) box.append(h("dt", { text: "Numbers" }), h("dd", {}, h("div", { text: compared.caption }), runs.length && data.command !== "emulate" ? h("div", { class: "soft", text: `Curves, causes and the network are of ${runs.length > 1 ? "the first seed of each" : "the first seed"} (${runs[0].seed})` }) : null));
  if (!runs.length || compared) return box;
  const seeds = [...new Set(runs.map(run => run.seeds))];
  const text = seeds.every(n => n === 1) ? `one seed (${[...new Set(runs.map(run => run.seed))].join(", ")}): numbers have no spread over seeds` :
    `${Math.max(...seeds)} seeds from ${runs[0].seed} upwards: numbers are medians; pictures show the first seed`;
  box.append(h("dt", { text: "Seeds" }), h("dd", { text }));
  if (runs.length > 1) box.append(h("dt", { text: "Runs" }), h("dd", { text: `${runs.length}: ${runs.slice(0, 8).map(run => run.label).join(", ")}${runs.length > 8 ? " and others" : ""}` }));
  return box;
}

// Returns a line about the checks of an experiment.
function verdictLine() {
  const checks = data.checks, of = name => checks.filter(one => one.verdict === name).length;
  if (!checks.length) return null;
  const bad = of("fail") + of("stale"), near = checks.filter(one => one.kind === "reproduction" && !one.fitted && one.deviation_percent !== null && one.deviation_percent !== undefined);
  const half = near.length ? near.map(one => Math.abs(one.deviation_percent)).sort((a, b) => a - b)[Math.ceil(near.length / 2) - 1] : null;
  const parts = [`${of("pass")} of ${plural(checks.length, "check")} pass`, of("differs") ? `${of("differs")} differ for a stated reason` : null, bad ? `${bad} fail` : null].filter(Boolean);
  const text = parts.join(", "), more = near.length > 1 ? `half of the ${near.length} numbers of the paper are reproduced within ${number(half, 2)} %` : near.length ? `the paper's number is reproduced within ${number(half, 2)} %` : "";
  return { level: bad ? "bad" : of("differs") ? "warn" : "good", text, more, of: [] };
}

// Names the cause of a full port: the workloads before the followed op that waited there longest, with a link to it.
function filled(text, of) {
  const run = runs.find(one => of.includes(one.label) && one.causes && one.busiest_port && text.startsWith(one.busiest_port) && /in use/.test(text));
  const waits = run?.causes.ops.flatMap((op, i) => op.waits.filter(wait => op.ports.find(port => port.port === wait.port)?.name === run.busiest_port).map(wait => [wait, i])).sort((a, b) => b[0].us - a[0].us);
  if (!waits?.length) return null;
  const [wait, op] = waits[0], groups = run.recording.ops.groups, inside = wait.groups.filter(([, , size]) => size > 0.1 * wait.bytes).slice(0, 3);
  return h("button", { type: "button", class: "quiet", text: `${inside.length ? `Before the op that waited there longest (${micros(wait.us)}): ${inside.map(([group, flows, size]) => `${bytes(size)} of ${plural(flows, "flow")} of ${groups[group] ?? "others"}`).join(", ")}` : "The op that waited there longest"} →`, onclick: () => { setState({ run: runs.length > 1 ? runs.indexOf(run) : null, op, hop: null }); byId("cause")?.scrollIntoView({ behavior: "smooth" }); } });
}

// The numbers of a comparison cover all seeds, a status covers one seed.
function overSeeds(run, text) {
  const all = data.comparison, i = all?.metrics.findIndex(metric => metric.name === "op_latency_us.unfinished") ?? -1;
  const entry = i >= 0 && /had not ended/.test(text) ? all.rows.find(row => row.label === run.label)?.numbers[i] : null;
  return entry && entry[3] < entry[4] ? `over the seeds: median ${count(entry[0] ?? entry[1])}, ${count(entry[3])} to ${count(entry[4])} ops` : null;
}

const LEVELS = { bad: ["✕", "Problem"], warn: ["!", "Warning"], info: ["i", "Note"], good: ["✓", "Finished"] };
function statusBlock() {
  const list = h("ul", { class: "status", "aria-label": "Status" });
  // Equal sentences of several runs share a line.
  const lines = new Map();
  for (const run of runs) {
    for (const { level, text, more: own } of run.status) {
      const over = overSeeds(run, text), more = [own, over].filter(Boolean).join("; ");
      const key = level + text + more;
      if (!lines.has(key)) lines.set(key, { level, text, more, over, of: [] });
      lines.get(key).of.push(run.label);
    }
  }
  const order = ["bad", "warn", "info", "good"];
  let all = [...lines.values()].sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level));
  // Lines that differ only in their numbers are grouped: the first one is shown, with the others below.
  const alike = new Map();
  for (const line of all) {
    const key = line.level + line.text.replace(/\d[\d.]*( [mu]?s)?/g, "#");
    alike.set(key, [...(alike.get(key) ?? []), line]);
  }
  all = [...alike.values()].flatMap(group => group.length < 3 || group[0].level === "good" ? group : [{ ...group[0], joined: true, more: (group[0].over ? `${capital(group[0].over)}; ` : "") + group.slice(1, 7).map(line => `${line.of.slice(0, 3).join(", ")}: ${line.text.replace(/ had not ended.*/, "")}${line.over ? ` (${line.over})` : ""}`).join("; ") + (group.length > 7 ? `; and ${group.length - 7} more` : "") }]);
  const finished = all.filter(line => line.level === "good");
  if (finished.length > 1) {
    all = all.filter(line => line.level !== "good");
    const of = finished.flatMap(line => line.of);
    all.push({ level: "good", text: "Finished: all ops of the measured phase ended", more: "no flow stopped, no fault", of });
  }
  const verdict = verdictLine();
  if (verdict) all.unshift(verdict);
  const more = all.length > 6;
  const show = ({ level, text, more, of, joined }) => h("li", { class: level }, h("span", { class: "mark", "aria-hidden": "true", text: LEVELS[level][0] }),
    h("span", { class: "unseen", text: LEVELS[level][1] + ": " }),
    h("span", {}, runs.length > 1 && of.length ? h("span", { class: "of", text: (of.length === runs.length ? "all runs" : of.length > 4 ? `${of.length} runs` : of.join(", ")) + (data.comparison && data.command !== "emulate" ? `, seed ${runs[0].seed}` : "") + ": " }) : null, h("b", { text: pretty(text) }), more ? h("span", { class: "more-of", text: joined ? pretty(more) : capital(pretty(more)) }) : null, filled(text, of)));
  list.append(...(more ? all.slice(0, 5) : all).map(show));
  if (more) {
    list.append(h("li", { class: "more" }, h("button", { type: "button", text: `Show ${all.length - 5} more`, onclick: event => {
      event.currentTarget.parentElement.replaceWith(...all.slice(5).map(show));
    } })));
  }
  return list;
}

// For settings without recorded runs: states whether all of their ops ended.
function settingsLine() {
  const all = data.comparison, i = all?.metrics.findIndex(metric => metric.name === "op_latency_us.unfinished") ?? -1;
  if (i < 0) return null;
  // The largest value over the seeds counts, because a median hides seeds with unfinished ops.
  const open = all.rows.filter(row => row.numbers[i] && (row.numbers[i][4] ?? Infinity) > 0), missing = all.rows.filter(row => !row.numbers[i]);
  const partial = all.rows.filter(row => row.numbers[i]?.[5]?.includes(null));
  const show = (level, text) => h("li", { class: level }, h("span", { class: "mark", "aria-hidden": "true", text: LEVELS[level][0] }), h("span", { class: "unseen", text: LEVELS[level][1] + ": " }), h("span", {}, h("b", { text })));
  const named = rows => `${rows.slice(0, 3).map(row => row.values.length ? row.values.join(" · ") : row.label).join("; ")}${rows.length > 3 ? `; and ${rows.length - 3} more` : ""}`;
  return h("ul", { class: "status", "aria-label": "Status" },
    missing.length ? show("bad", `${missing.length} of ${all.rows.length} settings have no results: ${named(missing)}`) : null,
    partial.length ? show("bad", `${partial.length} of ${all.rows.length} settings have seeds without results: ${named(partial)}`) : null,
    open.length ? show("warn", `Ops had not ended with ${open.length} of ${all.rows.length} settings, so that latencies are lower bounds: ${named(open)}`) : null,
    !missing.length && !partial.length && !open.length ? show("good", `Finished: all ops ended with all ${all.rows.length} settings`) : null);
}

// A single run: four cards of numbers, each with its reference value.
function numberCards(run) {
  const cards = h("div", { class: "cards" });
  for (const part of [...new Set(data.metrics.map(metric => metric.part))]) {
    // Flows of several workloads are not expected to be equal, and their joint latencies have no meaning. The table
    // above has the numbers of each workload.
    const mixed = metric => run.workloads.length && (metric.name === "jain" || /^op_latency_us\.p/.test(metric.name));
    const rows = data.metrics.filter(metric => metric.part === part && run.numbers[metric.name] && !mixed(metric));
    if (!rows.length) continue;
    cards.append(h("div", { class: "card" }, h("h3", { text: part === "Ops" && run.workloads.length ? "Ops of all workloads" : part }), h("table", { class: "numbers" },
      h("thead", { class: "unseen" }, h("tr", {}, h("th", { scope: "col", text: "number" }), h("th", { scope: "col", text: "value" }))),
      h("tbody", {}, ...rows.map(metric => {
        const entry = run.numbers[metric.name];
        const [value, what] = entry.beside ?? [];
        const spread = entry.max > entry.min ? `${quantity(entry.min, metric)} … ${quantity(entry.max, metric)} over the seeds` : null;
        const port = metric.name === "busiest_port.utilisation" && run.busiest_port ? h("span", { class: "beside", text: pretty(run.busiest_port) }) : null;
        const grave = ["op_latency_us.unfinished", "stalled.at_end"].includes(metric.name) && entry.value > 0;
        return h("tr", {}, h("th", { scope: "row" }, define(metric.heading, definition(metric.name))),
          h("td", {}, h("span", { class: grave ? "value bad" : "value", text: bounded(entry, metric) }),
            what ? h("span", { class: "beside", text: metric.unit === "us" ? `${!(value > 0) ? "" : entry.value === null ? "≥ " + number(entry.lower / value, 2) + " × " : entry.value < value * 1.02 ? "as fast as " : number(entry.value / value, 2) + " × "}${quantity(value, metric)} ${what}` : `${what}: ${quantity(value, metric)}` }) : null,
            port, spread ? h("span", { class: "beside", text: spread }) : null));
      })))));
  }
  return cards;
}

// Several runs: a table with a column per run; the best value of each row is marked.
function numberTable() {
  const metrics = data.metrics.filter(metric => runs.some(run => run.numbers[metric.name]));
  const rows = [];
  let part = "";
  for (const metric of metrics) {
    if (metric.part !== part) {
      part = metric.part;
      rows.push(h("tr", { class: "part" }, h("th", { scope: "rowgroup", colspan: runs.length + 1, text: part })));
    }
    const values = runs.map(run => run.numbers[metric.name]?.value ?? null);
    const known = values.filter(value => value !== null);
    const best = metric.better > 0 ? Math.max(...known) : Math.min(...known), worst = metric.better > 0 ? Math.min(...known) : Math.max(...known);
    rows.push(h("tr", {}, h("th", { scope: "row" }, define(metric.heading, definition(metric.name))), ...runs.map((run, i) => {
      const entry = run.numbers[metric.name];
      const differs = metric.better && known.length > 1 && best !== worst && Math.abs(best - worst) > 0.01 * Math.max(Math.abs(best), Math.abs(worst));
      const spread = entry && entry.max > entry.min ? h("span", { class: "beside", text: `${quantity(entry.min, metric)} … ${quantity(entry.max, metric)}` }) : null;
      return h("td", { class: differs && values[i] === best ? "best" : null }, bounded(entry, metric), spread);
    })));
  }
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Numbers of all runs" }, h("table", { class: "wide-numbers" },
    h("caption", { text: "Bold: the best run of a row, where runs differ by more than 1 %. Point at a name for its definition." }),
    h("thead", {}, h("tr", {}, h("td"), ...runs.map((run, i) => h("th", { scope: "col" }, h("i", { class: "dot", style: { background: colour(i) } }), run.label)))),
    h("tbody", {}, ...rows)));
}

function plainTable(lines, caption, header = true) {
  const isNumber = text => /^([<>≥] ?=? )?-?[\d.]+( [+.]+-? [\d.]+)?(\s.*)?$/.test(text);
  const [head, ...rest] = header ? lines : [null, ...lines], isColumn = i => rest.some(row => isNumber(row[i] ?? ""));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, h("table", {}, h("caption", { text: caption }),
    head ? h("thead", {}, h("tr", {}, ...head.map((text, i) => text ? h("th", { scope: "col", class: isColumn(i) ? "n" : null, text }) : h("td")))) : null,
    h("tbody", {}, ...rest.map(row => h("tr", {}, ...row.map((text, i) => i === 0 && header ? h("th", { scope: "row", text }) : h("td", { class: (header ? isColumn(i) : isNumber(text)) ? "n" : null, text })))))));
}

// Formats times and sizes of a table in readable units.
function timed(lines) {
  const units = lines[0].map(head => head.endsWith(", us") ? micros : head.endsWith(", B") ? bytes : null);
  return lines.map((row, r) => row.map((cell, i) => cell === "-" ? "–" : !units[i] ? cell : r === 0 ? cell.replace(/, \w+$/, "") : cell.replace(" .. ", " … ").replace(/\d+(\.\d+)?/g, value => units[i](Number(value)))));
}

function checksBlock() {
  const all = [...data.checks, ...data.shown];
  if (!all.length) return null;
  const unit = one => one.unit ? " " + one.unit : "";
  const band = one => one.low === null && one.high === null ? "shown" : one.low === null ? `≤ ${number(one.high)}` : one.high === null ? `≥ ${number(one.low)}` : `${number(one.low)} … ${number(one.high)}`;
  const verdict = { pass: ["✓ pass", "pass"], fail: ["✕ FAIL", "fail"], differs: ["≠ differs", "differs"], stale: ["✕ STALE", "fail"] };
  const reason = one => [one.source, one.censored || one.differs || one.why].filter(Boolean).join(". ");
  const rows = all.map((one, i) => {
    const [text, name] = verdict[one.verdict] ?? ["", ""];
    const measured = one.censored ? (one.lower === null ? "censored" : `≥ ${number(one.lower)}${unit(one)} (censored)`) : one.measured === null ? "not measured" : number(one.measured) + unit(one);
    return h("tr", {}, h("th", { scope: "row", text: one.name }),
      h("td", { class: "n", text: one.paper === null ? "–" : number(one.paper) + unit(one) }), h("td", { class: "n", text: measured }),
      h("td", { class: "n", text: one.spread && one.spread[0] < one.spread[1] ? `${number(one.spread[0])} … ${number(one.spread[1])}` : "" }),
      h("td", { class: "n", text: one.deviation_percent === null || one.deviation_percent === undefined ? "" : `${one.deviation_percent > 0 ? "+" : ""}${number(one.deviation_percent, 3)} %` }),
      h("td", { class: "n", text: band(one) }),
      h("td", { class: name, text: text + (one.pass && one.seeds_outside ? `, ${one.seeds_outside} of ${one.seeds.length} seeds outside` : "") }),
      h("td", { text: one.fitted ? "fitted" : one.kind || "" }),
      h("td", { class: "why", text: i > 0 && reason(one) && reason(one) === reason(all[i - 1]) ? "as above" : reason(one) }));
  });
  const head = ["", "paper", "simulated (median)", "over the seeds", "deviation", "accepted", "verdict", "kind", "source, and reason for a difference"];
  const failed = data.checks.filter(one => one.verdict === "fail" || one.verdict === "stale").length;
  return section("checks", "Paper and simulation", `${data.checks.length} checks: ${data.checks.filter(one => one.verdict === "pass").length} pass, ${failed} fail, ${data.checks.filter(one => one.verdict === "differs").length} differ for a stated reason.`,
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Checks" }, h("table", { id: "check-table" },
      h("thead", {}, h("tr", {}, ...head.map((text, i) => text ? h("th", { scope: "col", class: i > 0 && i < 6 ? "n" : null, text }) : h("td")))), h("tbody", {}, ...rows))));
}

const jobsOfRuns = () => runs.flatMap(run => (run.jobs ?? []).map(job => [run, job]));

function jobsTable(of) {
  const us = value => value === null || value === undefined ? "not ended" : micros(value);
  const head = ["job", ...(runs.length > 1 ? ["run"] : []), "completion", "ideal", "slowdown", "bus bandwidth", "compute", "send", "wait", "unfinished"];
  const rows = of.map(([run, job]) => [job.name, ...(runs.length > 1 ? [run.label] : []), us(job.completion_us), us(job.ideal_us), job.slowdown === null ? "–" : number(job.slowdown, 3),
    job.bus_bandwidth_gbps === null ? "–" : number(job.bus_bandwidth_gbps, 3) + " Gb/s", us(job.compute_us), us(job.send_us), us(job.wait_us), count(job.unfinished)]);
  return plainTable([head, ...rows], "Completion time of each job, and its ideal on the fabric without other traffic; compute, send and wait are means over the ranks");
}

// A comparison has its own numbers over all seeds.
const hasOwnNumbers = () => runs.length > 0 && !["emulate", "tune"].includes(data.command) && !(data.comparison && runs.every(run => data.comparison.rows.some(row => row.label === run.label)));

function jobsBlock() {
  const of = jobsOfRuns();
  if (!of.length) return null;
  return section("jobs", "Jobs", null, hasOwnNumbers() ? null : jobsTable(of), ...of.flatMap(([run, job]) => jobDetails(run, job)));
}

function firstScreen() {
  const box = h("section", { id: "summary", "aria-labelledby": "summary-title" }, h("h2", { class: "unseen", id: "summary-title", text: "Summary" }));
  if (!runs.length) {
    const what = whatWasRun(), state = settingsLine();
    if (what) box.append(state ? h("div", { class: "two" }, what, state) : what);
  } else {
    box.append(h("div", { class: "two" }, whatWasRun(), statusBlock()));
    if (!hasOwnNumbers()) return box;
    const jobs = jobsOfRuns();
    if (jobs.length) box.append(h("div", { class: "card workloads" }, jobsTable(jobs)));
    // The numbers of all ops combine different workloads.
    if (runs.length === 1 && runs[0].workloads.length) box.append(h("div", { class: "card workloads" }, plainTable(timed(runs[0].workloads), "Each workload by itself; the numbers below are those of all ops together")));
    box.append(runs.length === 1 ? numberCards(runs[0]) : numberTable());
  }
  return box;
}

function details() {
  const box = section("details", "Details", null);
  for (const run of runs) {
    const own = h("details", {}, h("summary", { text: runs.length > 1 ? `All numbers of ${run.label}` : "All numbers of the run" }), h("pre", { tabindex: 0, text: run.text }));
    if (runs.length > 1 && run.workloads.length) own.append(plainTable(timed(run.workloads), "Workloads side by side"));
    if (run.notes.length) own.append(h("h3", { text: "What the run leaves out" }), h("ul", {}, ...run.notes.map(text => h("li", { text }))));
    if (run.setup) own.append(h("details", {}, h("summary", { text: "Settings, as a scenario" }), h("pre", { tabindex: 0, text: run.setup.settings })));
    box.append(own);
  }
  return box;
}
