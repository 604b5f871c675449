// Creates reports with the command, opens each in Chromium, uses it, and measures it. See tools/check-report.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import puppeteer from "puppeteer-core";
import { person } from "./person.mjs";

const [apus, ...options] = process.argv.slice(2);
const shots = options.includes("--shots") ? resolve(options[options.indexOf("--shots") + 1]) : null;
// With `--keep DIR`, existing reports are not created again. They can be created on a busy machine, and timed
// (`--times`) on an idle one.
const kept = options.includes("--keep") ? resolve(options[options.indexOf("--keep") + 1]) : null, scratch = mkdtempSync(join(tmpdir(), "apus-report-")), folder = kept ?? scratch;
mkdirSync(folder, { recursive: true });
const axe = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(path => { try { return statSync(path); } catch { return false; } });
if (!chromium) throw new Error("Chromium is not installed (Debian: apt-get install chromium)");

// Scenario of the pictures in docs/report.md.
const guide = readFileSync(new URL("../../docs/report.md", import.meta.url), "utf8");
const faults = guide.match(/```toml file=report.toml\n([^]*?)```/)[1];
const mixed = `duration = "1ms"
warmup = "200us"
topology = "star hosts=9 100Gbps 1us 400kB"
algorithm = { name = "swift" }
[[workload]]
kind = "incast"
size = "64kB"
outstanding = 2
[[workload]]
name = "small"
kind = "poisson"
load = 0.1
sizes = "google_all_rpc"
`;
const unfinished = `duration = "1ms"
drain = "0s"
algorithm = { name = "swift" }
topology = "star hosts=3 100Gbps 1us"
[[workload]]
kind = "incast"
size = "1GB"
`;
const sixty = `duration = "3ms"
topology = "fat-tree k=4 100Gbps 1us 1MB"
algorithm = { name = "swift" }
[[workload]]
kind = "all-to-all"
hosts = [0, 1, 2, 3, 4, 5, 6, 7]
size = "64kB"
[sweep]
key = "algorithm.base_target"
values = ["15us", "25us", "40us"]
`;
// A million flows: 1024 hosts, each with an op to every other host.
const large = `duration = "100us"
drain = "0s"
topology = "fat-tree k=16 100Gbps 1us 1MB"
algorithm = { name = "swift" }
[[workload]]
kind = "all-to-all"
size = "4kB"
`;
// A fabric link that is down in the middle of the run.
const broken = (link, at, until) => `[[fault]]
link = "${link}"
kind = "down"
at = "${at}us"
until = "${until}us"
`;
const sixtyBroken = sixty.replace("[sweep]", broken("edge 0 <-> agg 0", 1000, 2000) + "[sweep]");
const many = `duration = "10ms"
topology = "fat-tree k=8 100Gbps 1us 1MB"
algorithm = { name = "swift" }
[[workload]]
kind = "permutation"
size = "256kB"
flows_per_pair = 40
`;
const largeBroken = large + broken("edge 0 <-> agg 0", 20, 60);
// Name, files, command, size limit in MB, and expected content of the report (see person.mjs; the time of a fault is in
// us).
const cases = [
  ["two", { "two.toml": unfinished }, ["run", "two.toml"], 2, { runs: 1, unfinished: true, causes: true, queue: false }],
  ["sixty", { "sixty.toml": sixty }, ["run", "sixty.toml"], 4, { runs: 3, causes: true }],
  ["sixty-faults", { "sixty.toml": sixtyBroken }, ["run", "sixty.toml"], 4, { runs: 3, causes: true, faults: 1500 }],
  ["faults", { "faults.toml": faults }, ["run", "faults.toml"], 2, { runs: 1, causes: true, queue: false, faults: 2500 }],
  ["mixed", { "mixed.toml": mixed }, ["run", "mixed.toml"], 4, { runs: 1, causes: true }],
  ["flows-5000", {}, ["run", "bench/incast-5000"], 2, { runs: 1, causes: true, unfinished: true }],
  ["flows-5120-faults", { "many.toml": many + broken("edge 0 <-> agg 0", 3000, 6000) }, ["run", "many.toml"], 2.5, { runs: 1, causes: true, faults: 4500, unfinished: true }],
  ["compare", { "mixed.toml": mixed }, ["compare", "mixed.toml", "--algorithms", "swift,dctcp,hpcc,bolt", "--seeds", "3"], 4, { runs: 4, causes: true, comparison: true }],
  ["sweep", { "mixed.toml": mixed }, ["sweep", "mixed.toml", "--vary", "algorithm.base_target=20us,30us,50us", "--vary", "workload.0.outstanding=1,2,4", "--seeds", "2"], 2, { runs: 0, comparison: true }],
  ["tune", { "mixed.toml": mixed }, ["tune", "mixed.toml"], 4, { runs: 2, causes: true, comparison: true }],
  ["reproduce", {}, ["reproduce", "swift/fig17", "--quick"], 4, { runs: 4, causes: true }],
  ["emulate", {}, ["emulate", "real/bottleneck", "--variant", "500us", "--set", "duration=600ms", "--set", "warmup=100ms"], 2, { runs: 1, causes: true, comparison: true }],
];
if (options.includes("--large")) {
  cases.push(["flows-1000000", { "large.toml": large }, ["run", "large.toml"], 15, { runs: 1, causes: true, unfinished: true }]);
  cases.push(["flows-1000000-faults", { "large.toml": largeBroken }, ["run", "large.toml"], 15, { runs: 1, causes: true, unfinished: true, faults: 40 }]);
}
const only = options.includes("--only") ? (options[options.indexOf("--only") + 1] ?? "").split(",") : null;
const unknown = only?.find(name => !cases.some(([one]) => one === name));
if (unknown !== undefined) {
  console.error(`--only: no report is called "${unknown}"; there are: ${cases.map(([name]) => name).join(", ")} (and others with --large)`);
  rmSync(scratch, { recursive: true });
  process.exit(2);
}

const browser = await puppeteer.launch({ executablePath: chromium, headless: true, userDataDir: join(scratch, "profile"), protocolTimeout: 600_000,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
let failed = false;
const check = (good, text) => { if (!good) { failed = true; console.log(`  FAILED: ${text}`); } };
const make = ([name, files, command]) => {
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  const started = performance.now();
  const page = command[0] === "emulate" ? join(folder, `${name}.html`) : join(folder, name, command[0] === "reproduce" ? command[1] : "", "report.html");
  if (kept && existsSync(page)) return { page, seconds: 0, bytes: statSync(page).size };
  try {
    execFileSync(resolve(apus), [...command, ...(command[0] === "emulate" ? ["--report", page] : ["--out", name])], { cwd: folder, stdio: ["ignore", "ignore", "pipe"], maxBuffer: 1 << 28 });
  } catch (error) {
    // Checks of an experiment may fail; a page is written nevertheless.
    if (command[0] !== "reproduce") throw new Error(`apus ${command.join(" ")}: ${error.stderr ?? error.message}`);
  }
  return { page, seconds: (performance.now() - started) / 1e3, bytes: statSync(page).size };
};
const open = async (file, width, scheme, hash = "") => {
  const page = await browser.newPage();
  const problems = [];
  page.on("pageerror", error => problems.push(error.message));
  page.on("console", message => { if (message.type() === "error") problems.push(message.text()); });
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(`file://${file}${hash}`, { waitUntil: "load" });
  return [page, problems];
};
// The page itself computes the intervals of differences between any two algorithms. From its numbers by seed, it must
// obtain the intervals of compare.json. A difference in the table must be marked as clear if the medians differ by 1 %
// and the interval excludes 0 on the same side.
async function sameIntervals(page, folder) {
  const { algorithms } = JSON.parse(readFileSync(join(folder, "compare.json")));
  const { rows, metrics } = await page.evaluate(() => report.data.comparison);
  const lines = await page.$$eval("#comparison tr[data-metric]", all => all.map(line => [line.dataset.metric, ...[...line.querySelectorAll("td")].map(cell => cell.textContent)]));
  const said = await page.$eval("#comparison", one => one.textContent.match(/Then the difference from (.+?):/)[1]);
  const reference = rows.findIndex(row => row.label === said);
  // Student's t for three pairs, which give two degrees of freedom.
  const interval = (of, from) => { const all = of.map((v, seed) => v - from[seed]), mean = all.reduce((a, b) => a + b) / 3, half = 4.303 * Math.sqrt(all.reduce((sum, d) => sum + (d - mean) ** 2, 0) / 2 / 3); return [mean - half, mean + half]; };
  const near = (a, b, unit) => Math.abs(a - b) <= 1e-4 * Math.abs(unit);
  let [intervals, cells] = [0, 0];
  for (const [name, ...texts] of lines) {
    const i = metrics.findIndex(metric => metric.name === name), numbers = rows.map(row => row.numbers[i]);
    const whole = number => number && number[0] !== null && number[5]?.length === 3 && number[5].every(v => v !== null);
    numbers.forEach((number, r) => {
      const found = algorithms[r].differences?.[name], median = algorithms[r].metrics[name]?.median, base = algorithms[reference].metrics[name]?.median;
      if (found?.pairs === 3 && whole(number) && whole(numbers[0])) {
        intervals++;
        const [low, high] = interval(number[5], numbers[0][5]), unit = Math.max(...number[5].map(Math.abs), ...numbers[0][5].map(Math.abs));
        check(near(low, found.low, unit) && near(high, found.high, unit), `${name} of ${algorithms[r].algorithm}: ${low} to ${high}, but compare.json has ${found.low} to ${found.high}`);
      }
      // Medians that look equal on the page show no difference.
      if (r === reference || !whole(number) || !whole(numbers[reference]) || number[0] === numbers[reference][0]) return;
      cells++;
      const by = median - base, [low, high] = interval(number[5], numbers[reference][5]), clear = Math.abs(by) > 0.01 * Math.abs(base) && (low > 0 && by > 0 || high < 0 && by < 0);
      check(clear !== /no clear difference|too few seeds/.test(texts[r]), `${name} of ${rows[r].label}: "${texts[r]}", but the interval is ${low} to ${high}`);
    });
  }
  check(intervals > 20 && cells > 20, `only ${intervals} intervals and ${cells} cells were compared with compare.json`);
}
const drawAll = page => page.evaluate(() => report.pictures.forEach(one => { one.visible = true; one.draw(); }));

if (options.includes("--figures")) {
  await figures();
} else {
  console.log("report            made, s   size, MB   first pictures, ms   slowest interaction, ms");
  for (const one of cases.filter(([name]) => !only || only.includes(name))) await examine(one);
}
await browser.close();
rmSync(scratch, { recursive: true });
process.exit(failed ? 1 : 0);

// Returns the reason why `apus emulate` cannot create network namespaces here; null if it can. Namespaces need rights
// that some machines do not grant.
function withoutNamespaces() {
  const user = process.getuid() === 0 ? [] : ["--user", "--map-root-user"];
  try {
    execFileSync("unshare", [...user, "--net", "true"], { stdio: ["ignore", "ignore", "pipe"] });
    return null;
  } catch (error) {
    return String(error.stderr ?? error.message).trim();
  }
}

async function examine(one) {
  const [name, , command, limit, what] = one;
  const missing = command[0] === "emulate" ? withoutNamespaces() : null;
  if (missing !== null) {
    console.log(`${name.padEnd(17)} skipped: ${missing}`);
    return;
  }
  const { page: file, seconds, bytes } = make(one);
  const [page, problems] = await open(file, 1400, "light");
  const ready = Number(await page.evaluate(() => document.documentElement.dataset.readyMs));
  const times = await page.evaluate(use);
  const slowest = Object.entries(times).sort((a, b) => b[1] - a[1])[0] ?? ["none", 0];
  console.log(`${name.padEnd(17)} ${seconds.toFixed(1).padStart(7)} ${(bytes / 1e6).toFixed(2).padStart(10)} ${String(ready).padStart(20)} ${slowest[1].toFixed(0).padStart(10)} (${slowest[0]})`);
  check(bytes < limit * 1e6, `${(bytes / 1e6).toFixed(2)} MB, at most ${limit}`);
  check(ready < 1000, `first pictures after ${ready} ms, at most 1000`);
  check(slowest[1] < 100, `${slowest[0]} took ${slowest[1].toFixed(0)} ms, at most 100`);
  if (options.includes("--times")) return page.close();
  if (command[0] === "compare") await sameIntervals(page, join(folder, name));
  const [hand, more] = await open(file, 1280, "light");
  for (const sentence of await person(hand, what)) check(false, sentence);
  problems.push(...more);
  // In print: all pictures, in light colours.
  const paper = await hand.pdf({ format: "A4", printBackground: true });
  check(paper.length > 20_000, `the printed page has ${paper.length} bytes`);
  if (shots) {
    mkdirSync(shots, { recursive: true });
    writeFileSync(join(shots, `${name}.pdf`), paper);
  }
  await hand.close();
  for (const [width, scheme] of [[1400, "light"], [1400, "dark"], [390, "light"]]) {
    const [other, more] = await open(file, width, scheme);
    await drawAll(other);
    await other.evaluate(axe);
    const { violations } = await other.evaluate(() => axe.run({ resultTypes: ["violations"] }));
    for (const violation of violations) check(false, `axe-core, ${scheme}, ${width} px: ${violation.id}: ${violation.help} (${violation.nodes.length}: ${violation.nodes[0].html.slice(0, 120)})`);
    const overflow = await other.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    check(overflow <= 0, `${scheme}, ${width} px: the page is ${overflow} px too wide`);
    if (shots) {
      mkdirSync(shots, { recursive: true });
      await other.screenshot({ path: join(shots, `${name}-${scheme}-${width}.png`), fullPage: true });
    }
    problems.push(...more);
    await other.close();
  }
  check(problems.length === 0, problems.slice(0, 3).join("; "));
  await page.close();
}

// Runs in the page: the actions of a person, each with its duration.
async function use() {
  const times = {}, frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  const timed = async (name, act) => { await frame(); const from = performance.now(); act(); document.body.offsetHeight; times[name] = Math.max(times[name] ?? 0, performance.now() - from); await frame(); };
  const see = async id => { document.querySelector(`[data-picture="${id}"]`)?.scrollIntoView(); await frame(); await new Promise(done => setTimeout(done, 120)); };
  const view = id => report.pictures.find(one => one.figure.dataset.picture === id);
  for (const box of document.querySelectorAll("main select")) {
    box.scrollIntoView({ block: "center" });
    await new Promise(done => setTimeout(done, 60));
    for (const option of [...box.options].slice(0, 3)) await timed(`choose ${box.getAttribute("aria-label")}`, () => { box.value = option.value; box.dispatchEvent(new Event("change")); });
  }
  if (view("slowdown-tail")) {
    await see("slowdown-tail");
    await timed("brush a tail", () => report.setState({ tail: "0.9-1" }));
    const find = document.querySelector("#ops input");
    await timed("filter ops", () => { find.value = "host 1"; find.dispatchEvent(new Event("input")); });
    await timed("show all ops", () => { find.value = ""; find.dispatchEvent(new Event("input")); });
    const follow = document.querySelector("#ops .follow");
    if (follow) {
      document.getElementById("cause").scrollIntoView();
      await timed("follow an op", () => report.setState({ op: 1 }));
      await timed("follow another op", () => report.setState({ op: 0 }));
    }
  }
  const slider = document.getElementById("slider");
  if (slider) {
    await see("topology");
    for (const place of [0.2, 0.5, 0.9]) await timed("move the slider", () => { slider.value = Math.round(place * slider.max); slider.dispatchEvent(new Event("input")); });
  }
  if (view("over-time-goodput-gbps")) {
    await see("over-time-goodput-gbps");
    const [low, high] = view("over-time-goodput-gbps").chart.range;
    await timed("zoom", () => report.zoom("time", [low + (high - low) / 4, high - (high - low) / 4]));
    await timed("zoom out", () => report.zoom("time", null));
    const filter = document.getElementById("filter");
    await timed("filter flows", () => { filter.value = "host 1"; filter.dispatchEvent(new Event("input")); });
  }
  return times;
}

// Draws the pictures of the documentation, from a run and a comparison of the scenario in docs/report.md.
async function figures() {
  const { page: run } = make(["faults", { "report.toml": faults }, ["run", "report.toml"]]);
  const { page: compared } = make(["compared", { "report.toml": faults }, ["compare", "report.toml", "--algorithms", "swift,dctcp,hpcc,bolt", "--seeds", "3"]]);
  const out = new URL("../../docs/figures/", import.meta.url).pathname;
  for (const [name, file, ids] of [
    ["report-cause", run, ["op-parts", "op-packets"]],
    ["report-heat-map", run, ["network-heat-map"]],
    ["report-topology", run, ["topology"]],
    ["report-comparison", compared, ["trade-off", "slowdown-tail"]],
  ]) {
    const [page] = await open(file, 1000, "light", "#op=0");
    await drawAll(page);
    const svg = await page.evaluate(ids => {
      const box = document.createElement("div");
      box.style.cssText = "position:absolute;left:0;top:0;width:900px";
      const all = ids.map(id => report.pictures.find(one => one.figure.dataset.picture === id));
      all.forEach(one => { box.append(one.body); });
      document.body.append(box);
      all.forEach(one => one.body.replaceChildren(one.drawn(900)));
      return report.svgOf(box).text;
    }, ids);
    writeFileSync(join(out, `${name}.svg`), svg + "\n");
    console.log(`docs/figures/${name}.svg`);
    await page.close();
  }
}
