// Uses a report like a person, with mouse and keyboard, and checks what becomes visible. `what` describes the content
// of the report: { faults, unfinished, causes, queue, runs, comparison }. Returns sentences about the failed checks.
export async function person(page, what) {
  const wrong = [];
  const check = (good, text) => { if (!good) wrong.push(text); };
  const text = selector => page.$eval(selector, one => one.textContent).catch(() => "");
  const settle = (ms = 120) => new Promise(done => setTimeout(done, ms));
  // Waits until a condition in the page holds. If it never does, the check after it reports the problem.
  const until = (condition, ...given) => page.waitForFunction(condition, { timeout: 10_000 }, ...given).catch(() => {});
  const changed = (selector, before) => until((selector, before) => document.querySelector(selector)?.textContent !== before, selector, before);
  const show = async selector => {
    const found = await page.$(selector);
    if (!found) return null;
    await found.evaluate(one => one.scrollIntoView({ block: "center", behavior: "instant" }));
    await settle();
    return (await page.$(selector))?.boundingBox();
  };
  const picture = id => `[data-picture="${id}"]`;
  const drag = async (box, from, to, height = 0.5) => {
    const x = share => box.x + 58 + share * (box.width - 76), y = box.y + box.height * height;
    await page.mouse.move(x(from), y);
    await page.mouse.down();
    await page.mouse.move(x((from + to) / 2), y, { steps: 3 });
    await page.mouse.move(x(to), y, { steps: 3 });
    await page.mouse.up();
    await settle();
  };
  const click = async selector => { const box = await show(selector); if (box) await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2); await settle(); return Boolean(box); };
  const view = (id, of) => page.evaluate((id, of) => { const one = report.pictures.find(one => one.figure.dataset.picture === id); return one?.chart ? (of === "range" ? one.chart.range : one.chart.series.map(line => line.name)) : null; }, id, of);

  // Reads the warnings, which are on the first screen.
  await page.evaluate(() => scrollTo(0, 0));
  const status = await page.$$eval(".status li", all => all.map(one => [one.className, one.textContent, one.getBoundingClientRect().top]));
  const said = status.map(([, words]) => words).join(" ");
  if (what.runs) {
    check(status.length > 0 && status[0][2] < 900, "the first screen does not say whether the run finished");
    check(!what.faults || /Link down|[Ll]oss of|[Cc]orruption|held back|of the rate/.test(said), `the warnings name no fault: ${said.slice(0, 200)}`);
    check(!what.unfinished || /had not ended/.test(said), `the warnings name no unfinished op: ${said.slice(0, 200)}`);
    check(what.faults || what.unfinished || !status.some(([level]) => level === "bad"), `a warning without a reason: ${said.slice(0, 200)}`);
  }
  const setup = await text(".what");
  check(/Topology/.test(setup) && /Load/.test(setup) && /Time/.test(setup), `the first screen does not say what was run: ${setup.slice(0, 200)}`);
  if (what.comparison && what.runs > 1) check(await page.$eval(".verdict", one => one.getBoundingClientRect().top < 400 && one.textContent.length > 10).catch(() => false), "a comparison does not begin with its answer");
  // Points at a number to show its definition.
  const defined = await show("main .def");
  if (defined) {
    await page.mouse.move(defined.x + defined.width / 2, defined.y + defined.height / 2);
    await settle();
    check(await page.$eval("#tip", tip => !tip.hidden && tip.textContent.length > 20), "a number has no definition on hover");
    await page.mouse.move(2, 2);
  }
  // Brushes a tail, and follows its first op to a queue.
  const tail = await show(`${picture("slowdown-tail")} .chart`);
  if (tail) {
    const before = await text("#ops h3");
    await drag(tail, 0.2, 1.015);
    await changed("#ops h3", before);
    const after = await text("#ops h3");
    check(after && after !== before, `a drag over the tail lists other ops: ${before} / ${after}`);
    check((await page.$$("#ops tbody tr")).length > 0, "no op is listed for the tail");
    await show("#ops input[type=search]");
    await page.focus("#ops input[type=search]");
    await page.keyboard.type("host 1 ");
    await until(() => [...document.querySelectorAll("#ops tbody tr")].every(one => /host 1(?!\d)/.test(one.textContent)));
    const names = await page.$$eval("#ops tbody tr", all => all.map(one => one.textContent));
    check(names.every(name => /host 1(?!\d)/.test(name)), "the filter of ops shows other hosts");
    await page.$eval("#ops input[type=search]", box => { box.value = ""; box.dispatchEvent(new Event("input")); });
  }
  if (what.causes) {
    check(await click("#ops .follow"), "no listed op can be followed");
    await until(() => /waited at|passed|of the time/.test(document.querySelector("#cause .answer")?.textContent));
    check(/waited at|passed|of the time/.test(await text("#cause .answer")), `the cause of the op has no sentence: ${await text("#cause .answer")}`);
    check(await show(picture("op-parts")) !== null && await show(picture("op-packets")) !== null, "the op has no picture of its time and its packets");
    check(await show(picture("op-window")) !== null, "the op's flow has no windows");
    const queue = await show(picture("op-queue-members"));
    check(queue !== null || what.queue === false, "nobody is named in the queue");
    if (queue) check(/left before it|No other packet/.test(await text(picture("op-queue-members"))), "the queue does not say who was in it");
    // Opens the list of a flow's ops from the queue, and goes back.
    const member = `${picture("op-queue-members")} .bars button`;
    if (queue && await page.$(member)) {
      await page.$eval(member, one => { one.focus(); one.click(); });
      await until(() => /Ops of “flow/.test(document.querySelector("#ops h3").textContent));
      check(/Ops of “flow/.test(await text("#ops h3")), `a flow in the queue does not lead to its ops: ${await text("#ops h3")}`);
      const back = () => page.$eval("#ops .back", one => !one.hidden);
      check(await back(), "no way leads back from the ops of a flow");
      await page.$eval("#ops .back", one => one.click());
      await until(() => document.querySelector("#ops .back").hidden);
      check(!await back() && await page.$eval("#ops input[type=search]", one => one.value === ""), "the way back leaves the filter");
    }
    check((await page.evaluate(() => location.hash)).includes("op="), "the address does not hold the op");
  } else {
    check(!what.runs || !(await page.$("#ops .follow")), "an op can be followed although there was no second run");
  }
  // Moves the slider with the keyboard, and clicks on the heat map.
  if (await show("#slider")) {
    const before = await text(".slider .time");
    await page.focus("#slider");
    await page.keyboard.press("ArrowRight");
    await changed(".slider .time", before);
    const moved = await text(".slider .time");
    check(moved !== before, "the slider does not move the time");
    const map = await show(`${picture("network-heat-map")} .chart`);
    await page.mouse.click(map.x + map.width * 0.85, map.y + map.height * 0.4);
    await changed(".slider .time", moved);
    check(await text(".slider .time") !== moved, "a click into the heat map does not choose the time");
    if (what.faults) {
      await page.evaluate(at => report.setState({ t: at }), what.faults);
      await settle();
      await show(picture("topology"));
      check((await page.$$(`${picture("topology")} .broken`)).length > 0, "no link is broken in the topology during the fault");
      check(/Link down|Slow link|loss|Corruption/.test(await text("#faults table")), "no table says whom the fault slowed");
      await show(picture("network-heat-map"));
      check(/down: |slow: |fault: /.test(await text(`${picture("network-heat-map")} svg`)), "the heat map does not name the fault");
    }
  }
  // Zooms pictures over time in and out, and filters flows.
  const rate = "over-time-goodput-gbps";
  const lines = await show(`${picture(rate)} .chart`);
  if (lines) {
    const before = await view(rate, "range");
    await drag(lines, 0.25, 0.75);
    const zoomed = await view(rate, "range");
    check(zoomed[1] - zoomed[0] < 0.6 * (before[1] - before[0]), "a drag does not zoom");
    const again = await show(`${picture(rate)} .chart`);
    await page.mouse.click(again.x + again.width / 2, again.y + again.height / 2, { clickCount: 2 });
    await until((id, range) => JSON.stringify(report.pictures.find(one => one.figure.dataset.picture === id)?.chart?.range) === range, rate, JSON.stringify(before));
    check(JSON.stringify(await view(rate, "range")) === JSON.stringify(before), "a double click does not show the whole run");
    if (what.runs === 1) {
      const name = (await view(rate, "names")).findLast(name => name.startsWith("flow "));
      const box = await show("#filter");
      if (name && box) {
        await page.focus("#filter");
        await page.keyboard.type(name);
        await show(`${picture(rate)} .chart`);
        await until((id, name) => report.pictures.find(one => one.figure.dataset.picture === id)?.chart?.series.map(line => line.name).filter(one => one.startsWith("flow ")).join() === name, rate, name);
        check((await view(rate, "names")).filter(one => one.startsWith("flow ")).join() === name, `the filter shows other flows than ${name}`);
        await page.$eval("#filter", box => { box.value = ""; box.dispatchEvent(new Event("input")); });
      }
    }
    // Reads values with the keyboard.
    await page.focus(`${picture(rate)} .chart`);
    await page.keyboard.press("ArrowRight");
    check((await text("#live")).length > 5, "the arrow keys read no value");
  }
  // Switches to another variant.
  if (what.runs > 1 && await page.$('#ops select[aria-label="Run"]')) {
    await page.select('#ops select[aria-label="Run"]', "1");
    await until(() => location.hash.includes("run=1") && [...document.querySelectorAll('main select[aria-label="Run"]')].every(one => one.value === "1"));
    check((await page.evaluate(() => location.hash)).includes("run=1"), "the address does not hold the run");
    const chosen = await page.$$eval('main select[aria-label="Run"]', all => all.map(one => one.value));
    check(chosen.every(value => value === "1"), `pictures are of other runs than the chosen one: ${chosen}`);
  }
  if (what.comparison) {
    const box = await show(picture("trade-off"));
    check(box !== null, "there is no picture of one number against another");
    const options = await page.$$eval(`${picture("trade-off")} select option`, all => all.length);
    check(options > 2, "no other number can be chosen");
    check(await show(picture("parallel-coordinates")) !== null, "there are no parallel coordinates");
  }
  // Exports data and pictures.
  const figures = await page.$$eval("main figure", all => all.map(one => one.dataset.picture));
  const own = ["slowdown-tail", "trade-off", rate].find(id => figures.includes(id)) ?? figures[0];
  if (own) {
    const save = n => `${picture(own)} .save button:nth-child(${n})`;
    await click(save(1));
    check((await page.evaluate(() => report.copied ?? "")).split("\n").length > 2, "no CSV is copied");
    await click(save(2));
    const svg = await page.evaluate(() => report.saved);
    check(svg?.name.endsWith(".svg") && svg.size > 1000, "no SVG is saved");
    await click(save(3));
    await page.waitForFunction(() => report.saved?.name.endsWith(".png"), { timeout: 10_000 }).catch(() => {});
    const png = await page.evaluate(() => report.saved);
    check(png?.name.endsWith(".png") && png.size > 1000, "no PNG is saved");
  }
  return wrong;
}
