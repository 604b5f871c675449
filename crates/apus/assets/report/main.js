// The page: its parts in order, and the handlers that change them.
readState();
readTheme();
readZooms();
titleBlock();
// Creates a part of the page. If that fails, an error appears in its place, and the other parts stay.
function part(make) {
  try {
    return make();
  } catch (error) {
    reportError(error);
    return h("p", { class: "card bad" }, `A part of this page could not be drawn: ${error.message}. The stored results are complete; please report it.`);
  }
}
// Redraws everything in the current theme; the address contains the selection.
function build() {
  listeners.length = 0;
  const content = [firstScreen, faultPictures, paperFigures, checksBlock, jobsBlock, comparePictures, slowdownPictures, causePictures, networkPictures, overTime, ...runs.length ? [details] : []].map(part).filter(Boolean);
  forget(byId("main"));
  byId("main").append(...content);
  // The verdict of a comparison precedes its details.
  const verdict = document.querySelector("#comparison .verdict");
  if (verdict) document.querySelector("#summary h2").after(h("div", { class: "card first" }, verdict));
  report.pictures.forEach(one => { if (printing || inSight(one.figure)) { one.visible = true; one.draw(); } });
  return content;
}
const content = build();
const links = content.filter(part => part.id).map(({ id }) => h("a", { href: "#", onclick: event => {
  event.preventDefault();
  const part = byId(id);
  // Pictures that are not yet drawn have a smaller height, and the page would scroll to a wrong position.
  report.pictures.forEach(one => { if (one.stale) one.draw(); });
  part.scrollIntoView({ behavior: "smooth" });
  part.querySelector("h2, h3")?.setAttribute("tabindex", "-1");
  part.querySelector("h2, h3")?.focus({ preventScroll: true });
}, text: { summary: "Summary", faults: "Faults", figures: "Figures", checks: "Checks", jobs: "Jobs", comparison: "Comparison", slowdown: "Slowdown", cause: "Cause", network: "Network", time: "Over time", details: "Details" }[id] ?? id }));
const themeButton = h("button", { type: "button", id: "theme", onclick: () => {
  const dark = document.documentElement.dataset.theme === "dark" || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  redraw();
} }, "Light or dark");
byId("nav").append(...links, themeButton);
byId("foot").append(h("p", {}, `Made by apus ${data.program}. Pictures: Observable Plot (ISC). Point at a dotted name for its definition; outputs.md has all of them.`));
function redraw() {
  readTheme();
  const at = scrollY;
  build();
  scrollTo(0, at);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
let settle, lastWidth = innerWidth;
addEventListener("resize", () => { if (innerWidth === lastWidth) return; lastWidth = innerWidth; clearTimeout(settle); settle = setTimeout(() => report.pictures.forEach(one => one.refresh()), 150); });
addEventListener("hashchange", () => { readState(); listeners.forEach(([, act]) => act()); });
addEventListener("scroll", hideTip, { passive: true });
report.state = state;
report.setState = setState;
document.documentElement.dataset.readyMs = Math.round(performance.now()); // Since the page was opened.
