// A picture with its heading, what it leaves out, its data as CSV, and itself as SVG and PNG.
const seen = new IntersectionObserver(entries => {
  for (const { target, isIntersecting } of entries) {
    target.picture.visible = isIntersecting;
    if (isIntersecting && target.picture.stale) target.picture.draw();
  }
}, { rootMargin: "300px" });

// `draw(width)` returns the drawing; `rows()` its data, the first row being the header.
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
  const self = { figure, body, title, rows, stale: true, visible: false, draw() {
    if (!figure.isConnected) return;
    self.stale = false;
    const width = Math.max(240, body.clientWidth || figure.clientWidth - 28);
    // The height stays while it is drawn, so that the page does not jump.
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
// Paper is white: pictures are printed as in light mode, those out of sight too.
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
    // Without permission for the clipboard, as in some browsers for files.
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

// All drawings of a picture, one below the other, as one SVG with its own background and font.
function svgOf(body) {
  const space = "http://www.w3.org/2000/svg";
  const drawings = [...body.querySelectorAll("svg, canvas")].filter(one => !one.parentElement.closest("svg") && !one.dataset.aside);
  const outer = document.createElementNS(space, "svg");
  let y = 0, width = 0;
  for (const one of drawings) {
    const box = one.getBoundingClientRect();
    let copy;
    if (one.tagName === "CANVAS") {
      copy = document.createElementNS(space, "image");
      copy.setAttribute("href", one.toDataURL());
      copy.setAttribute("preserveAspectRatio", "none");
    } else {
      copy = one.cloneNode(true);
    }
    copy.setAttribute("y", y);
    copy.setAttribute("width", box.width);
    copy.setAttribute("height", box.height);
    outer.append(copy);
    y += box.height;
    width = Math.max(width, box.width);
  }
  outer.setAttribute("xmlns", space);
  outer.setAttribute("viewBox", `0 0 ${width} ${y}`);
  outer.setAttribute("width", width);
  outer.setAttribute("height", y);
  outer.setAttribute("font-family", "system-ui, sans-serif");
  const back = document.createElementNS(space, "rect");
  back.setAttribute("width", "100%");
  back.setAttribute("height", "100%");
  back.setAttribute("fill", theme.card);
  outer.prepend(back);
  return { text: new XMLSerializer().serializeToString(outer), width, height: y };
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

// A drawing of the library. It is one image for readers of the screen: its own label says what it shows.
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
