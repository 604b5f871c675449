// Data, state in the address, numbers with units, colours, and creation of elements.
const data = JSON.parse(document.getElementById("data").textContent);
const report = window.report = { data, pictures: [] };
const byId = id => document.getElementById(id);

// Creates an element. Properties beginning with "on" are listeners, "data" and "style" are objects, all others are
// attributes.
function h(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "data") Object.assign(node.dataset, value);
    else if (key === "style") Object.assign(node.style, value);
    else if (key === "text") node.textContent = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter(child => child !== null && child !== undefined && child !== false));
  return node;
}

// State in the address of the page, so that a link includes the selection.
const state = {};
const listeners = [];
function readState() {
  for (const key of Object.keys(state)) delete state[key];
  for (const [key, value] of new URLSearchParams(location.hash.slice(1))) state[key] = value;
}
function setState(changes, quiet) {
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") delete state[key];
    else state[key] = String(value);
  }
  const text = new URLSearchParams(state).toString();
  try { history.replaceState(null, "", text ? "#" + text : location.pathname + location.search); } catch { /* A page in a frame may not. */ }
  if (!quiet) listeners.forEach(([keys, act]) => { if (keys.some(key => key in changes)) act(); });
}
const onState = (keys, act) => listeners.push([keys, act]);
const runs = data.runs;
const runIndex = () => Math.max(0, Math.min(runs.length - 1, Number(state.run ?? 0) || 0));
const recorded = () => runs.filter(run => run.recording);
// A run of a comparison has the colour of its row.
const hueOf = run => { const row = data.comparison?.rows.findIndex(one => one.label === run.label) ?? -1; return row >= 0 ? row : runs.indexOf(run); };

// Formats numbers with three to four digits, in the unit that makes them readable.
function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return "∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-6) return value.toExponential(2);
  const decimals = Math.max(0, Math.min(9, digits - 1 - Math.floor(Math.log10(size))));
  const text = value.toFixed(decimals);
  const short = text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  return Math.abs(value) >= 1e4 ? Number(short).toLocaleString("en-US").replace(/,/g, "\u202f") : short;
}
function scaled(value, steps) {
  const size = Math.abs(value);
  for (const [unit, scale] of steps) if (size >= scale) return number(value / scale, 3) + "\u00a0" + unit;
  const [unit, scale] = steps.at(-1);
  return number(value / scale, 3) + "\u00a0" + unit;
}
const bytes = value => value === 0 ? "0\u00a0B" : scaled(value, [["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]]);
// Sizes that are powers of two, as names of bins.
const binary = value => value % 1048576 === 0 ? `${value / 1048576}\u00a0MiB` : value % 1024 === 0 ? `${value / 1024}\u00a0KiB` : bytes(value);
const micros = value => value === 0 ? "0" : scaled(value, [["s", 1e6], ["ms", 1e3], ["µs", 1], ["ns", 1e-3]]);
const percent = value => number(value * 100, 3) + "\u00a0%";
const count = value => Math.round(value).toLocaleString("en-US").replace(/,/g, "\u202f");
function quantity(value, metric) {
  if (value === null || value === undefined) return "–";
  // Jain's index is not a percentage.
  if (metric.fraction) return /(^|[._])jain$/.test(metric.name) ? number(value, 3) : value === 0 ? "0" : percent(value);
  if (metric.unit === "us") return micros(value);
  if (metric.unit === "B") return bytes(value);
  if (metric.unit === "") return Number.isInteger(value) ? count(value) : number(value);
  return number(value, 4) + "\u00a0" + metric.unit;
}
// A number of the first screen, or its bounds if unfinished ops leave it undetermined.
function bounded(entry, metric) {
  if (!entry) return "–";
  if (entry.value !== null) return quantity(entry.value, metric);
  return entry.upper === null ? "≥ " + quantity(entry.lower, metric) : `≥ ${quantity(entry.lower, metric)}, ≤ ${quantity(entry.upper, metric)}`;
}
// Returns the name of a metric in words, without its unit, which stands next to each number.
function words(name) {
  // Names with a workload and a size range, such as "calls, 10 kB to 100 kB: slowdown p99".
  const sized = name.match(/^workload[. ](.+?)[. ]size[. ](\S*?)\.\.(\S*?)[. ](slowdown.*)$/);
  const unit = text => text.replace(/(\d)([kMG]?B)$/, "$1 $2");
  if (sized) return `${sized[1]}, ${sized[3] ? `${sized[2] === "0B" ? "up to" : unit(sized[2]) + " to"} ${unit(sized[3])}` : `above ${unit(sized[2])}`}: ${words(sized[4])}`;
  return name.replace(/_(us|gbps|bytes|packets)\b/g, "").replace(/p99_9/g, "p99.9").replace(/([^\d.])[._](?=[^\d.])|_(?=\d)|(?<=\D)\.(?=p\d)/g, "$1 ").replaceAll("_", " ")
    .replace(/\brtt\b/g, "RTT").replace(/^jain$/, "Jain's index").replace(/\bp50\b/, "median").replace("op latency unfinished", "unfinished ops").replace(/^workload (.+?) (?=slowdown)/, "$1: ");
}
// Formats sentences of the program: times in readable units, and arrows.
const pretty = text => text.replace(/(\d+(?:\.\d+)?) us\b/g, (_, value) => micros(Number(value))).replaceAll(" <-> ", " ↔ ").replaceAll(" -> ", " → ");
// Returns whether a name contains these words. A number at their end must match as a whole: "host 1" does not match
// host 10.
const contains = (name, words) => new RegExp(words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + (/\d$/.test(words) ? "(?!\\d)" : ""), "i").test(name);
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
const capital = text => text ? text[0].toUpperCase() + text.slice(1) : text;

// Colours of the theme. They are read when a picture is drawn, so that a saved picture contains them too.
const theme = {};
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const read = name => style.getPropertyValue("--" + name).trim();
  for (const name of ["ink", "soft", "line", "paper", "card", "good", "bad", "warn", "accent", "edge", "back"]) theme[name] = read(name);
  theme.series = [0, 1, 2, 3, 4, 5, 6, 7].map(i => read("s" + i));
  theme.heat = [0, 1, 2, 3, 4].map(i => read("h" + i));
}
const colour = index => theme.series[index % theme.series.length];
const dashes = [null, "7 3", "2 3", "9 3 2 3"];
const dash = index => dashes[Math.floor(index / theme.series.length) % dashes.length];
const parts = text => [1, 3, 5].map(i => parseInt(text.slice(i, i + 2), 16));
function heatColour(share) {
  const at = Math.max(0, Math.min(1, share)) * (theme.heat.length - 1);
  const low = Math.min(theme.heat.length - 2, Math.floor(at)), t = at - low;
  const [a, b] = [parts(theme.heat[low]), parts(theme.heat[low + 1])];
  return a.map((v, i) => Math.round(v + (b[i] - v) * t));
}
// Returns a colour between two colours of the theme.
const blend = (a, b, t) => rgb(parts(a).map((v, i) => Math.round(v + (parts(b)[i] - v) * t)));
const rgb = ([r, g, b]) => `rgb(${r},${g},${b})`;

// Converts the base64 bytes of a matrix to numbers by row and column.
function matrix({ most, cells }, rows, columns) {
  const text = atob(cells), scale = (most ?? 0) / 255, values = new Float32Array(text.length);
  for (let i = 0; i < text.length; i++) values[i] = text.charCodeAt(i) * scale;
  return { most: most ?? 0, at: (row, column) => values[row * columns + column], rows, columns };
}
function counts(triples, rows, columns) {
  const values = new Float64Array(rows * columns);
  let most = 0;
  for (let i = 0; i < triples.length; i += 3) {
    values[triples[i] * columns + triples[i + 1]] += triples[i + 2];
    most = Math.max(most, triples[i + 2]);
  }
  return { most, at: (row, column) => values[row * columns + column], rows, columns };
}

// Definitions of terms, shown on hover and on focus.
const tip = byId("tip");
function showTip(content, x, y) {
  tip.replaceChildren(...(Array.isArray(content) ? content : [content]));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(6, Math.min(x, document.documentElement.clientWidth - box.width - 8)) + "px";
  tip.style.top = (y + box.height + 12 > innerHeight && y - box.height - 14 > 0 ? y - box.height - 14 : y) + "px";
}
const hideTip = () => { tip.hidden = true; };
function define(label, text) {
  if (!text) return h("span", { text: label });
  const show = event => {
    const box = event.currentTarget.getBoundingClientRect();
    event.currentTarget.setAttribute("aria-describedby", "tip");
    showTip(text, box.left, box.bottom + 6);
  };
  return h("button", { class: "def", type: "button", text: label, onmouseenter: show, onfocus: show, onclick: show,
    onmouseleave: hideTip, onblur: hideTip, onkeydown: event => { if (event.key === "Escape") hideTip(); } });
}
function definition(name) {
  const known = data.definitions[name];
  if (!known) return null;
  const [unit, text, over] = known;
  return `${capital(text)}.${over && over !== "-" ? ` ${capital(over)}.` : ""}${unit ? ` In ${unit}.` : ""} (${name})`;
}
function say(text) { byId("live").textContent = text; }
