// A picture with its heading, a note on omissions, its data as CSV, and its drawing as SVG and PNG.
const seen = new IntersectionObserver(entries => {
  for (const { target, isIntersecting } of entries) {
    target.picture.visible = isIntersecting;
    if (isIntersecting && target.picture.stale) target.picture.draw();
  }
}, { rootMargin: "300px" });

// `draw(width)` returns the drawing; `rows()` returns its data, with the header as the first row.
function picture({ title, about, note, controls, draw, rows, wide, id }) {
  const body = h("div", { class: "drawing" });
  const heading = h("h3", {}, about ? define(title, about) : title);
  const remark = h("p", { class: "note" });
  const file = (id ?? title).toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
  const menu = h("div", { class: "save", role: "group", "aria-label": `Save ${title}` },
    h("button", { type: "button", text: "CSV", title: "Copy the data as CSV", onclick: () => copy(csv(rows())) }),
    h("button", { type: "button", text: "SVG", title: "Save the picture as SVG", onclick: () => saveSvg(body, file) }),
    h("button", { type: "button", text: "PNG", title: "Save the picture as PNG", onclick: () => savePng(body, file) }));
  const figure = h("figure", { class: wide ? "card wide" : "card", data: { picture: file } },
    h("div", { class: "head" }, heading, controls ? h("div", { class: "controls" }, ...controls) : null, menu), body, remark);
  const self = { figure, body, title, rows, stale: true, visible: false, drawn: width => draw(width, self), draw() {
    if (!figure.isConnected) return;
    self.stale = false;
    const width = Math.max(240, body.clientWidth || figure.clientWidth - 28);
    // The height is fixed during drawing, so that the page does not jump.
    body.style.minHeight = body.offsetHeight + "px";
    body.replaceChildren(draw(width, self));
    body.style.minHeight = "";
    const text = typeof note === "function" ? note() : note;
    remark.textContent = text ?? "";
    remark.hidden = !text;
  }, refresh() {
    self.stale = true;
    if (self.visible || printing) self.draw();
  } };
  figure.picture = self;
  report.pictures.push(self);
  seen.observe(figure);
  return self;
}
let printing = false;
const inSight = figure => { const { top, bottom } = figure.getBoundingClientRect(); return top < innerHeight + 300 && bottom > -300; };
// Paper is white, so all pictures are printed in light mode, including those out of sight.
let themeBefore;
addEventListener("beforeprint", () => {
  printing = true;
  themeBefore = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  redraw();
});
addEventListener("afterprint", () => {
  printing = false;
  if (themeBefore) document.documentElement.dataset.theme = themeBefore; else delete document.documentElement.dataset.theme;
  redraw();
});

function forget(container) {
  for (const figure of container.querySelectorAll("figure")) {
    if (!figure.picture) continue;
    seen.unobserve(figure);
    report.pictures.splice(report.pictures.indexOf(figure.picture), 1);
  }
  container.replaceChildren();
}

const cellText = cell => {
  const text = cell === null || cell === undefined ? "" : String(cell);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const csv = table => table.map(row => row.map(cellText).join(",")).join("\n") + "\n";
report.csv = csv;

async function copy(text) {
  report.copied = text;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Some browsers give no permission for the clipboard, for example on local files.
    const area = h("textarea", { class: "unseen" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(`${plural(text.split("\n").length - 2, "row")} copied as CSV`);
}
let toastEnd;
function toast(text) {
  say(text);
  const box = byId("toast") ?? document.body.appendChild(h("div", { id: "toast" }));
  box.textContent = text;
  box.classList.add("shown");
  clearTimeout(toastEnd);
  toastEnd = setTimeout(() => box.classList.remove("shown"), 1800);
}

// Returns a picture as one SVG with its own background and font. It contains the drawings and the elements next to
// them, such as names of lines and bars, as text and boxes.
function svgOf(body) {
  const space = "http://www.w3.org/2000/svg", whole = body.getBoundingClientRect();
  const outer = document.createElementNS(space, "svg");
  const make = (tag, attributes, text) => {
    const node = document.createElementNS(space, tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    outer.append(node);
  };
  const round = value => Math.round(value * 10) / 10;
  const place = box => ({ x: round(box.left - whole.left), y: round(box.top - whole.top), width: round(box.width), height: round(box.height) });
  const filled = colour => colour && colour !== "transparent" && !/, 0\)$/.test(colour);
  // The words of a line form one text element.
  const write = node => {
    const style = getComputedStyle(node.parentElement), lines = [], range = document.createRange();
    for (const found of node.textContent.matchAll(/\S+/g)) {
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      const box = range.getBoundingClientRect(), last = lines.at(-1);
      if (!box.width) continue;
      if (last && Math.abs(last.box.top - box.top) < 3) last.words.push(found[0]); else lines.push({ box, words: [found[0]] });
    }
    const size = parseFloat(style.fontSize);
    for (const { box, words: own } of lines) make("text", { x: round(box.left - whole.left), y: round(box.top - whole.top + box.height / 2 + size * 0.35), "font-size": size, "font-weight": style.fontWeight, fill: style.color }, own.join(" "));
  };
  const walk = node => {
    if (node.nodeType === Node.TEXT_NODE) return write(node);
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    const box = node.getBoundingClientRect();
    if (!box.width || node.matches(".unseen, select, input")) return;
    if (node.tagName === "svg") {
      const copy = node.cloneNode(true);
      for (const [key, value] of Object.entries(place(box))) copy.setAttribute(key, value);
      return outer.append(copy);
    }
    if (node.tagName === "CANVAS") return make("image", { ...place(box), href: node.toDataURL(), preserveAspectRatio: "none" });
    if (node.matches(".ramp")) {
      const { x, y, width, height } = place(box), steps = 24;
      for (let i = 0; i < steps; i++) make("rect", { x: round(x + width * i / steps), y, width: round(width / steps + 0.4), height, fill: rgb(heatColour(i / (steps - 1))) });
      return;
    }
    const style = getComputedStyle(node), line = parseFloat(style.borderTopWidth);
    if (filled(style.backgroundColor) && !node.matches(".chart, .drawing")) make("rect", { ...place(box), rx: Math.min(parseFloat(style.borderTopLeftRadius) || 0, box.height / 2), fill: style.backgroundColor, "fill-opacity": style.opacity });
    if (node.tagName === "I" && line > 0 && box.height <= line + 1) make("line", { x1: place(box).x, x2: place(box).x + place(box).width, y1: place(box).y + line / 2, y2: place(box).y + line / 2, stroke: style.borderTopColor, "stroke-width": line, "stroke-opacity": style.opacity, ...(style.borderTopStyle === "dashed" ? { "stroke-dasharray": "5 3" } : {}) });
    node.childNodes.forEach(walk);
  };
  body.childNodes.forEach(walk);
  const [width, height] = [Math.ceil(whole.width) + 20, Math.ceil(whole.height) + 16];
  outer.setAttribute("xmlns", space);
  outer.setAttribute("viewBox", `-10 -8 ${width} ${height}`);
  outer.setAttribute("width", width);
  outer.setAttribute("height", height);
  outer.setAttribute("font-family", "system-ui, sans-serif");
  const back = document.createElementNS(space, "rect");
  for (const [key, value] of Object.entries({ x: -10, y: -8, width, height, fill: theme.card })) back.setAttribute(key, value);
  outer.prepend(back);
  return { text: new XMLSerializer().serializeToString(outer), width, height };
}
report.svgOf = svgOf;
function download(blob, name) {
  report.saved = { name, size: blob.size, type: blob.type };
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  toast(`${name} saved`);
}
function saveSvg(body, name) {
  download(new Blob([svgOf(body).text], { type: "image/svg+xml" }), name + ".svg");
}
async function savePng(body, name) {
  const { text, width, height } = svgOf(body);
  const image = new Image();
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  await image.decode();
  const canvas = h("canvas", { width: width * 2, height: height * 2 });
  const g = canvas.getContext("2d");
  g.drawImage(image, 0, 0, width * 2, height * 2);
  canvas.toBlob(blob => download(blob, name + ".png"), "image/png");
}

// Returns a drawing of the library. For screen readers it is a single image whose label states its content.
function plotOf(options) {
  const svg = Plot.plot(options);
  for (const mark of svg.querySelectorAll("[aria-label]")) {
    mark.dataset.mark = mark.getAttribute("aria-label");
    mark.removeAttribute("aria-label");
  }
  svg.querySelectorAll("[aria-hidden]").forEach(mark => mark.removeAttribute("aria-hidden"));
  return svg;
}

function select(label, options, value, change) {
  const box = h("select", { "aria-label": label, onchange: () => change(box.value) },
    ...options.map(([key, text]) => h("option", { value: key, text })));
  box.value = value;
  return box;
}
function section(id, title, lead, ...children) {
  return h("section", { id, "aria-labelledby": id + "-title" }, h("h2", { id: id + "-title", text: title }),
    lead ? h("p", { class: "lead", text: lead }) : null, ...children);
}
