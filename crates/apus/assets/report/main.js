// The page: its parts in order, and what changes them.
readState();
readTheme();
if (state.zoom) {
  const [a, b] = state.zoom.split("-").map(Number);
  if (a < b) zooms.set("time", [a, b]);
}
titleBlock();
const content = [firstScreen(), checksBlock(), jobsBlock(), comparePictures(), slowdownPictures(), causePictures(), networkPictures(), overTime(), runs.length ? details() : null].filter(Boolean);
byId("main").append(...content);
const links = content.filter(part => part.id).map(part => h("a", { href: "#", onclick: event => {
  event.preventDefault();
  part.scrollIntoView({ behavior: "smooth" });
  part.querySelector("h2, h3")?.setAttribute("tabindex", "-1");
  part.querySelector("h2, h3")?.focus({ preventScroll: true });
}, text: { summary: "Summary", checks: "Checks", jobs: "Jobs", comparison: "Comparison", slowdown: "Slowdown", cause: "Cause", network: "Network", time: "Over time", details: "Everything else" }[part.id] ?? part.id }));
const themeButton = h("button", { type: "button", id: "theme", onclick: () => {
  const dark = document.documentElement.dataset.theme === "dark" || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  redraw();
} }, "Light or dark");
byId("nav").append(...links, themeButton);
byId("foot").append(h("p", {}, `Made by apus ${data.program}. Pictures: Observable Plot (ISC). Point at a dotted name for its definition; outputs.md has all of them.`));
function redraw() {
  readTheme();
  report.pictures.forEach(one => { one.figure.picture.reset?.(); one.refresh(); });
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
let settle, lastWidth = innerWidth;
addEventListener("resize", () => { if (innerWidth === lastWidth) return; lastWidth = innerWidth; clearTimeout(settle); settle = setTimeout(redraw, 150); });
addEventListener("hashchange", () => { readState(); listeners.forEach(([, act]) => act()); });
addEventListener("scroll", hideTip, { passive: true });
report.state = state;
report.setState = setState;
// Pictures in sight are drawn at once, the others as they come into sight.
report.pictures.forEach(one => { if (one.figure.getBoundingClientRect().top < innerHeight + 300) { one.visible = true; one.draw(); } });
document.documentElement.dataset.readyMs = Math.round(performance.now()); // Since the page was opened.
