// Uses a report like a person: reads the warnings, points at a definition, zooms, filters, brushes a tail, follows an
// op to its flow and its queue, moves the slider, and exports. Writes its observations into an element that the test
// reads.
(async () => {
  // Pictures are normally drawn when they become visible; here they are drawn at once.
  const pause = async () => {
    await new Promise(done => setTimeout(done, 40));
    report.pictures.forEach(one => { if (one.stale) one.draw(); });
  };
  const text = selector => document.querySelector(selector)?.textContent ?? "";
  const seen = { errors: window.problems };
  const done = () => document.body.append(Object.assign(document.createElement("pre"), { id: "probe", textContent: JSON.stringify(seen) }));
  try {
    seen.status = [...document.querySelectorAll(".status .unseen")].map(one => one.textContent);
    seen.first = text(".status li");
    const name = [...document.querySelectorAll(".def")].find(one => one.textContent.includes("op latency"));
    name.focus();
    seen.definition = text("#tip");
    name.blur();
    report.pictures.forEach(one => { one.visible = true; one.draw(); });
    await pause();
    const view = id => report.pictures.find(one => one.figure.dataset.picture === id);
    const chart = id => view(id).chart;
    const fire = (target, type, fraction) => {
      const box = target.getBoundingClientRect(), left = 58, width = box.width - 58 - 18;
      target.dispatchEvent(new PointerEvent(type, { bubbles: true, button: 0, clientX: box.left + left + fraction * width, clientY: box.top + box.height / 2 }));
    };
    const drag = (target, from, to) => { fire(target, "pointerdown", from); fire(target, "pointermove", (from + to) / 2); fire(target, "pointerup", to); };
    const rate = "over-time-goodput-gbps";
    if (view(rate)) {
      fire(chart(rate), "pointermove", 0.5);
      seen.tip = text("#tip");
      seen.before = chart(rate).range;
      drag(chart(rate), 0.25, 0.75);
      await pause();
      seen.zoomed = chart(rate).range;
      seen.zoomed_with_it = chart("over-time-smoothed-rtt-us").range;
      fire(chart(rate), "dblclick", 0.5);
      await pause();
      seen.after = chart(rate).range;
      const filter = document.getElementById("filter");
      const type = async words => { filter.value = words; filter.dispatchEvent(new Event("input")); await pause(); };
      await type("flow 78:");
      seen.filtered = chart(rate).series.filter(one => one.faint).map(one => one.name);
      await type("");
      [...view(rate).figure.querySelectorAll(".legend button")].find(one => one.textContent === "median of flows")?.click();
      await pause();
      seen.without_median = chart(rate).series.some(one => one.name === "median of flows");
      view(rate).figure.querySelectorAll(".save button")[0].click();
      [...view(rate).figure.querySelectorAll(".legend button")].find(one => one.textContent === "median of flows")?.click();
      await pause();
      seen.csv = (report.copied ?? "").slice(0, 60);
      seen.svg = report.svgOf(view(rate).body).text.slice(0, 40);
    }
    // Red bands of faults in the pictures over time.
    seen.bands = [...document.querySelectorAll("#time figure svg")].filter(svg => [...svg.querySelectorAll('[data-mark="rect"]')].some(group => group.outerHTML.includes(`fill="${getComputedStyle(document.documentElement).getPropertyValue("--bad").trim()}"`))).length;
    // The axis of an op may begin before the op. Its zoom must be restored from the address.
    report.zoom("op", [-1.5, 2]);
    report.readZooms();
    seen.zooms = [...report.zooms];
    report.zoom("op", null);
    seen.small_lines = document.querySelector('[data-picture="small-multiples"] .small')?.firstChild.querySelectorAll(".legend button").length;
    seen.what = text(".what");
    seen.curves = [...document.querySelectorAll('[data-picture="over-goodput-gbps"] .legend button')].map(one => one.textContent);
    const slider = document.getElementById("slider");
    if (slider) {
      const times = [];
      seen.broken = new Set([...document.querySelectorAll('[data-picture="topology"] .broken')].map(one => one.getAttribute("x2"))).size;
      for (const place of [0, slider.max]) { slider.value = place; slider.dispatchEvent(new Event("input")); await pause(); times.push(text(".slider .time")); }
      seen.times = times;
    }
    if (view("slowdown-tail")?.chart) {
      drag(chart("slowdown-tail"), 0.5, 1);
      await pause();
      seen.listed = document.querySelectorAll("#ops tbody tr").length;
    }
    const follow = document.querySelector("#ops .follow");
    seen.causes = report.data.runs.reduce((sum, run) => sum + (run.causes?.ops.length ?? 0), 0);
    if (follow) {
      follow.click();
      await pause();
      document.querySelectorAll("#cause figure").forEach(figure => figure.picture.draw());
      await pause();
      seen.answer = text("#cause .answer");
      seen.followed = text("#cause");
      seen.members = document.querySelectorAll("#cause .bars li").length;
      seen.address = location.hash;
    }
  } catch (error) {
    seen.errors = [...seen.errors, error.stack];
  }
  done();
})();
