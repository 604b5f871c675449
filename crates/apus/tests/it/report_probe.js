// Uses a report as a person would: hovers, zooms, filters, changes the run; leaves what it saw in
// an element that the test reads.
(async () => {
  const pause = () => new Promise(done => setTimeout(done, 30));
  const seen = { charts: window.report.charts.length, errors: window.problems };
  const chart = window.report.charts[0];
  const fire = (target, type, fraction) => {
    const box = chart.over.getBoundingClientRect();
    target.dispatchEvent(new MouseEvent(type, { bubbles: true, button: 0, movementX: 1, view: window,
      clientX: box.left + fraction * box.width, clientY: box.top + box.height / 2 }));
  };
  const tip = () => chart.over.querySelector(".tip");
  fire(chart.over, "mouseenter", 0.5);
  fire(chart.over, "mousemove", 0.5);
  await pause();
  seen.tip = tip().textContent;
  seen.tip_shown = getComputedStyle(tip()).display;
  const range = u => [u.scales.x.min, u.scales.x.max];
  seen.before = range(chart);
  fire(chart.over, "mousedown", 0.25);
  fire(chart.over, "mousemove", 0.5);
  fire(chart.over, "mousemove", 0.75);
  fire(document, "mouseup", 0.75);
  await pause();
  seen.zoomed = range(chart);
  seen.zoomed_with_it = range(window.report.charts[1]);
  fire(chart.over, "dblclick", 0.5);
  await pause();
  seen.after = range(chart);
  const shown = () => chart.series.filter(series => series.single && series.show).map(series => series.label);
  seen.shown = shown();
  const filter = document.getElementById("filter");
  const type = async text => {
    filter.value = text;
    filter.dispatchEvent(new Event("input"));
    await pause();
  };
  await type("flow 78:");
  seen.filtered = shown();
  await type("");
  const name = [...chart.root.querySelectorAll(".u-legend .u-series")].find(row => row.textContent.includes("flow 78:"));
  name.querySelector("th").click();
  await pause();
  seen.hidden = shown();
  seen.topology = window.report.topology ? window.report.topology.width : 0;
  document.body.append(Object.assign(document.createElement("pre"), { id: "probe", textContent: JSON.stringify(seen) }));
})();
