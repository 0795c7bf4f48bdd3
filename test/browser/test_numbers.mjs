// The page says what the commands say: numbers of steps, of memory, of predictions, on recordings of real programs.

import { execFileSync } from "node:child_process";
import { answer, browser, check, comes, exportHtml, lull, main, open, settle, sharedView, state } from "./support.mjs";

const corpus = "test/corpus/data";

/** A page of the server, and of the file. */
async function both(path, body) {
  const { url } = await sharedView(path);
  for (const at of [url, exportHtml(path)]) {
    const page = await open(await browser(), at);
    await body(page, at.slice(0, 4));
    check(page.complaints.length === 0, `${at.slice(0, 4)}: nothing in the console`, page.complaints);
    await page.context().close();
  }
}

/** Open a tab and give its text. */
async function tab(page, id) {
  await page.click(`[data-tab="${id}"]`);
  await settle(page);
  return comes(() => page.innerText(".drawer-body"), (t) => t && !/^…$/m.test(t), `${id} is drawn`);
}

const json = (...args) => JSON.parse(execFileSync(lull, [...args, "-f", "json"], { encoding: "utf8" }));

/** A device that computes for 0.2 of 53 ms waits for nearly all of each step, not for all of it. */
async function nearlyAll() {
  const path = `${corpus}/http_embedder.lull`;
  const said = execFileSync(lull, ["why", path], { encoding: "utf8" });
  check(/^The GPU does not compute for 99\.6 % of each step \(52\.97 of 53\.16 ms\)/.test(said), "lull why", said.slice(0, 80));
  await both(path, async (page, where) => {
    const text = (await page.innerText("body")).replace(/\s/g, " ");
    check(/GPU 0 does not compute for 99\.6 % of each step/.test(text) && /not computing 99\.6 % of each step/.test(text), `${where}: the sentence and the row`, text.slice(0, 200));
  });
}

/** Of thousands of steps the first ones are drawn, and the numbers are of all of them. */
async function manySteps() {
  const path = `${corpus}/slab_heat.lull`;
  const { steps } = json("why", path);
  const { steady, median } = await answer(await sharedView(path), "steps");
  check(steady.n === steps.steady && Math.abs(steady.mean_ns / steps.mean_ns - 1) < 0.002, "steps and mean of lull why", [steady, steps.mean_ns]);
  check(steady.parts_ns.reduce((a, b) => a + b, 0) === steady.sum_ns, "their parts add up", steady);
  const says = (...args) => execFileSync(lull, args, { encoding: "utf8" });
  check(/^7,927 steps of 39\.9 us on average/m.test(says("why", path)), "lull why groups the digits of many steps", says("why", path));
  check(/^new: 1 report, 7,927 steps$/m.test(says("gate", "--max", "step < 1 s", path)), "and so does lull gate");
  await both(path, async (page, where) => {
    const text = (await tab(page, "steps")).replace(/\s/g, " ");
    check(/7 928 steps, the first left out as warm-up · mean 39\.9 µs · median 39\.6 µs · fastest 32\.2 µs · slowest 128 µs/.test(text), `${where}: numbers of all steps`, text.slice(0, 200));
    check(/only the first 2 000 are drawn/.test(text) && (await page.locator(".step-bar").count()) === 2000, `${where}: it says what is drawn`, text.slice(0, 250));
  });
  // A step that is not drawn is compared with the median one, too.
  const page = await open(await browser(), (await sharedView(path)).url);
  const { steps: [late] } = await answer(await sharedView(path), "steps", { number: 6000 });
  await page.evaluate(async ([, from, to]) => {
    const { app } = window.lull;
    await app.selectAt(app.meta.rows.find((r) => r.key === "rounds" || r.kind === "step").lane, (from + to) / 2);
  }, late);
  await comes(() => page.innerText(".drawer-body"), (t) => new RegExp(`against the median step[\\s\\S]*step ${median[0]}`, "i").test(t), "a late step against the median one");
}

/** A file that was cut out of a recording does not begin at 0: what the page offers for commands is the file's time. */
async function cutOut() {
  const path = `${corpus}/gpt_char_train.lull`;
  const [gap] = json("query", path, "SELECT start, dur FROM idle ORDER BY dur DESC LIMIT 1");
  await both(path, async (page, where) => {
    await page.evaluate(async ({ start, dur }) => {
      const { app } = window.lull;
      const row = app.meta.rows.find((r) => r.kind === "idle");
      await app.selectAt(row.lane, start - app.meta.origin + dur / 2);
    }, gap);
    const title = await page.getAttribute('.drawer-body .pairs [title*="In the file"]', "title");
    check(title.includes(` ${gap.start} ns`), `${where}: the time in the file`, [title, gap]);
    const option = /--filter-time=\S+/.exec(await page.getAttribute('button:has-text("Copy time")', "title"))[0];
    check(option === `--filter-time=${gap.start}/${gap.start + gap.dur}`, `${where}: what is copied`, option);
  });
  const page = await open(await browser(), (await sharedView(path)).url);
  await page.evaluate(() => { const { app } = window.lull; const { from, to } = app.first(); app.select({ type: "range", lane: -1, row: "", start: from, end: to }); });
  await settle(page);
  const option = await comes(() => page.getAttribute('button:has-text("Copy time")', "title"), Boolean, "a range can be copied");
  check(json("stats", "-q", "-r", "cuda_gpu_kern_sum", /--filter-time=\S+/.exec(option)[0], path).length > 0, "and gives rows", option);
  check(/the page counts from the first event, \d+ in the file/.test(await tab(page, "query")), "Query says how its times differ");
}

/** The peak of memory is at the same moment in the chart, in the curve and in `lull stats`, counted from the first event. */
async function memoryPeak() {
  const path = "test/data/torch/ops.lull";
  const [peak] = json("stats", "-q", "-r", "memory", path);
  const { from } = await answer(await sharedView(path), "meta");
  const at = ((peak["Peak At (ns)"] - from) / 1e9).toFixed(6);
  check(at === "0.000808", "what the test is about", at);
  await both(path, async (page, where) => {
    const text = (await tab(page, "memory")).replace(/\u2009/g, "");
    check(text.includes(`${at}`) && /in use 76\.1 MiB/.test(text), `${where}: the chart begins at its peak`, text.slice(0, 300));
    check(/Memory in use\s+peak\s+76\.1 MiB\s+at\s+0\.0008 s\s+at the end\s+69\.0 MiB/.test(text), `${where}: the curve has the same`, text.slice(-600));
  });
}

/** G goes to steps that nobody marked, too, and says why it cannot go somewhere. */
async function goTo() {
  for (const [name, number] of [["slab_heat", 6000], ["frame_gain", 3], ["tile_histograms", 3]]) {
    const page = await open(await browser(), (await sharedView(`${corpus}/${name}.lull`)).url);
    const type = async (text) => { await page.locator("canvas.rows").focus(); await page.keyboard.press("g"); await page.keyboard.type(text); await page.keyboard.press("Enter"); };
    await type(`step ${number}`);
    await comes(() => state(page), (s) => s.selection?.name === `step ${number}` && s.view.from < s.selection.start && s.view.to > s.selection.end, `${name}: G goes to step ${number}`);
    check((await page.locator(".goto").count()) === 0, `${name}: the box closes`);
    for (const [text, why] of [["step 999999", /There is no step 999999/], ["next week", /Write a time/], ["5000 s", /The recording ends at/]]) {
      await type(text);
      await comes(() => page.innerText(".goto"), (t) => why.test(t), `${name}: ${text} says why not`);
      await page.keyboard.press("Escape");
    }
    check(page.complaints.length === 0, `${name}: G: nothing in the console`, page.complaints);
    await page.context().close();
  }
}

/** A prediction comes with its conditions, as lull why says them; only what is a ceiling is said to be one. */
async function conditions() {
  for (const [path, isBest] of [["test/data/unseen/graphs_partly.lull", true], [`${corpus}/slab_heat.lull`, false]]) {
    const said = execFileSync(lull, ["why", path], { encoding: "utf8" }).replace(/\s+/g, " ");
    const v = await answer(await sharedView(path), "verdict");
    const first = v.findings[v.first];
    check(/\) at best\. /.test(said) === isBest && first.is_ceiling === isBest, `${path}: what the test is about`, said);
    await both(path, async (page, where) => {
      const text = (await page.innerText(".first-cause")).replace(/\s+/g, " ");
      check(text.includes("at best") === isBest, `${where}: at best is said of a ceiling`, text);
      check(!first.assumes || (said.includes(`It assumes that ${first.assumes}.`) && text.includes(`It assumes that ${first.assumes}.`)), `${where}: what it assumes`, text);
      check((await page.innerText(".gain")) === `fix first cause: ${first.prediction.ratio.toFixed(2)}×${isBest ? " at best" : ""}`, `${where}: the line on top`, await page.innerText(".gain"));
    });
  }
}

/** Where all gaps are so short that they are drawn together, N finds the longest of them, and then the next. */
async function shortGaps() {
  const path = `${corpus}/slab_heat.lull`;
  const server = await sharedView(path);
  const page = await open(await browser(), server.url);
  const { lane } = await page.evaluate(() => window.lull.app.meta.rows.find((r) => r.kind === "idle"));
  const [longest] = json("query", path, "SELECT start, dur FROM idle ORDER BY dur DESC LIMIT 1");
  const { origin } = await answer(server, "meta");
  const { n, gaps } = await answer(server, "gaps", { lane, n: 3 });
  check(n > 20000 && gaps.length === 3 && gaps[0][0] + origin === longest.start && gaps[0][1] - gaps[0][0] === longest.dur, "the longest of all", [gaps, longest]);
  check(gaps[1][1] - gaps[1][0] <= longest.dur && gaps[2][1] - gaps[2][0] <= gaps[1][1] - gaps[1][0], "the longest first", gaps);
  await page.locator("canvas.rows").focus();
  await page.keyboard.press("n");
  const first = (await comes(() => state(page), (s) => s.selection?.row === "gpu0/idle", "N selects a gap")).selection;
  await page.click('button:has-text("Next gap like this")');
  await comes(() => state(page), (s) => s.selection?.row === "gpu0/idle" && s.selection.start > first.start, "and then the next one like it");
  check(page.complaints.length === 0, "gaps: nothing in the console", page.complaints);
  await page.context().close();
}

/** A cause of no family has its name everywhere, and its gaps have a card. */
async function causeOfNoFamily() {
  const path = `${corpus}/http_embedder.lull`;
  await both(path, async (page, where) => {
    check(/no-demand 8\d %/.test(await page.getAttribute(".verdict-line .shares", "title")), `${where}: the bar on top`, await page.getAttribute(".verdict-line .shares", "title"));
    check(/no-demand 8\d %/.test(await tab(page, "steps")), `${where}: Steps`);
    await page.locator("canvas.rows").focus();
    await page.keyboard.press("n");
    await comes(() => page.innerText(".drawer-body"), (t) => /cause\s+no-demand/.test(t) && /why: no-demand/i.test(t), `${where}: a gap has its cause, and a card`);
    const { start, end } = (await state(page)).selection;
    await page.evaluate(async ([from, to]) => {
      const { app } = window.lull;
      await app.selectAt(app.meta.rows.find((r) => r.kind === "step" && !r.is_hidden && app.pinned.includes(r.key)).lane, (from + to) / 2);
    }, [start, end]);
    const text = await comes(() => page.innerText(".drawer-body"), (t) => /against the median step/i.test(t), `${where}: a step`);
    check(/no-demand/.test(text) && !/unknown/.test(text), `${where}: against the median one`, text.slice(0, 600));
  });
}

/** The line on top has room for a legend, or none: never its first words alone. */
async function legend() {
  for (const name of ["gpt_char_train", "http_embedder", "slab_heat"]) {
    for (const width of [1220, 1280, 1440, 1920]) {
      const page = await open(await browser(), (await sharedView(`${corpus}/${name}.lull`)).url, { viewport: { width, height: 800 } });
      const bad = await page.evaluate(() => {
        const box = document.querySelector(".verdict-line .legend").getBoundingClientRect();
        const entry = document.querySelectorAll(".verdict-line .legend > span")[1].getBoundingClientRect();
        return entry.bottom > box.bottom + 1 || entry.right > box.right + 1 || box.bottom > document.querySelector(".verdict-line").getBoundingClientRect().bottom ? [box, entry] : null;
      });
      check(!bad, `${name}: the legend says what most of a step is at ${width} px`, bad);
      await page.context().close();
    }
  }
}

/** What is under the pointer gets its name when that comes, not when the pointer moves. */
async function lateNames() {
  const page = await open(await browser(), (await sharedView(`${corpus}/gpt_char_train.lull`)).url);
  let go;
  const released = new Promise((done) => { go = done; });
  await page.route(/\/names\?/, async (route) => { await released; await route.continue(); });
  const at = await page.evaluate(async () => {
    const { app, timeline } = window.lull;
    const row = app.meta.rows.find((r) => r.kind === "os");
    const found = await app.source.ask("next", { lane: row.lane, t: Math.round(app.first().from), dir: 1 });
    timeline.showRow(app.rowOfLane[row.lane]);
    app.names.texts.clear();
    app.frame({ from: found.start, to: found.end });
    return { row: row.key, x: timeline.width / 2 };
  });
  const box = await page.locator("canvas.rows").boundingBox();
  const title = await page.locator(`.title[data-key="${at.row}"]`).boundingBox();
  const tip = () => page.innerText(".tip").catch(() => "");
  await page.mouse.move(box.x + at.x, title.y + title.height / 2);
  // The tiles may come after the pointer.
  await comes(async () => { await page.mouse.move(box.x + at.x + Math.random(), title.y + title.height / 2); return tip(); }, (t) => /…/.test(t), "no name yet");
  go();
  await comes(tip, (t) => t && !/…/.test(t), "the name comes by itself");
  await page.context().close();
}

/** What a row is about can be seen at once, and stays when one scrolls to the other columns. */
async function wideTables() {
  await both("test/data/torch/ops.lull", async (page, where) => {
    for (const [id, button, name] of [["ops", "operators", "Name"], ["kernels", "with queue times", "Kernel Name"]]) {
      await tab(page, id);
      await page.click(`.choices button:text-is("${button}")`);
      await comes(() => page.innerText(".drawer-body th >> nth=0"), (t) => t.trim() === name, `${where}: ${button}: names first`);
      await page.$eval(".drawer-body", (e) => { for (const x of [e, ...e.querySelectorAll("*")]) x.scrollLeft = 5000; });
      const box = await page.locator(".drawer-body tbody td").first().boundingBox();
      check(box.x >= -1 && box.x < 200, `${where}: ${button}: they stay`, box);
    }
    await tab(page, "ops");
    await page.click('.choices button:text-is("operators")');
    await comes(() => page.innerText(".drawer-body tbody"), (t) => /[\s]469\u2009762\u2009048[\s]/.test(t) && !/469762048/.test(t), `${where}: FLOPs are whole numbers`);
  });
}

/** After a drag, numbers of each column are in it. */
async function columnsOfADrag() {
  for (const name of ["gpt_char_train", "http_embedder", "dqn_replay"]) {
    await both(`${corpus}/${name}.lull`, async (page, where) => {
      await page.evaluate(() => {
        const { app } = window.lull;
        const { from, to } = app.first();
        app.setRange({ from, to }, [app.meta.rows.find((r) => r.kind === "kernel").key]);
        app.select({ type: "range", lane: -1, row: "", start: from, end: to });
      });
      await settle(page);
      await comes(() => page.locator(".columns .receipt-line .num").count(), (n) => n > 2, `${where}: ${name}: numbers`);
      const bad = await page.$$eval(".columns .receipt-line .num, .columns .area td", (all) => all.map((e) => {
        const [box, column] = [e.getBoundingClientRect(), e.closest("section").getBoundingClientRect()];
        return box.right > column.right + 1 ? [e.innerText, box.right - column.right] : null;
      }).filter(Boolean));
      check(!bad.length, `${where}: ${name}: no number is cut`, bad);
    });
  }
}

/** A slider says at once how much is removed; where it cannot be moved it says why. */
async function sliders() {
  await both(`${corpus}/gpt_char_train.lull`, async (page, where) => {
    const input = page.locator(".whatif input").first();
    if (where === "file") {
      check(await input.isDisabled() && /lull why --what-if launch-bound=0\.5/.test(await input.getAttribute("title") ?? ""), "file: why it cannot be moved", await input.getAttribute("title"));
      return;
    }
    const then = await page.locator(".then").first().innerText();
    await input.evaluate((e) => { e.value = "50"; e.dispatchEvent(new Event("input")); });
    check(/^7\.01 ms → 3\.5\d ms$/.test(await page.locator(".whatif .strong").first().innerText()), "the text follows a drag", await page.locator(".whatif .strong").first().innerText());
    check((await page.locator(".then").first().innerText()) === then, "the prediction comes when it rests");
  });
}

/** Samples in one function are counted together, wherever in it they are. */
async function samplesOfAFunction() {
  const server = await sharedView("test/data/unseen/proofsheet.lull");
  const page = await open(await browser(), server.url);
  await page.locator("canvas.rows").focus();
  await page.keyboard.press("n");
  const { start, end } = (await comes(() => state(page), (s) => s.selection, "N selects a gap")).selection;
  const { from, to } = await answer(server, "meta");
  for (const span of [{ from: start, to: end }, { from, to }]) {
    const receipt = await answer(server, "receipt", span);
    for (const t of receipt.threads) {
      const names = t.samples.map(([fn, place]) => `${fn} ${place}`);
      check(new Set(names).size === names.length, `${t.key}: each function once`, t.samples);
    }
  }
  const text = await page.innerText(".drawer-body");
  check(/ProofPool::work\(\)[^]*?3 of 3 samples/.test(text), "3 of 3 samples", text.slice(0, 800));
  await page.context().close();
}

/** A tab is there if any of its tables is, and opens on one that has rows. */
async function opsWithoutOperators() {
  await both("test/data/unseen/dcn_ctr.lull", async (page, where) => {
    check((await page.getAttribute('[data-tab="ops"]', "class") ?? "") !== "absent", `${where}: Ops is there`);
    await tab(page, "ops");
    await comes(() => page.locator(".drawer-body tbody tr").count(), (n) => n > 0, `${where}: and shows Python functions`);
  });
}

/** Escape leaves the box that filters rows, and shows all of them again. */
async function leavingTheFilter() {
  const page = await open(await browser(), (await sharedView(`${corpus}/gpt_char_train.lull`)).url);
  const { rows } = await state(page);
  await page.click(".filter");
  await page.keyboard.type("kernel");
  await comes(() => state(page), (s) => s.rows < rows, "a filter leaves some rows");
  await page.keyboard.press("Escape");
  await comes(() => state(page), (s) => s.rows === rows, "Escape shows all");
  check((await page.inputValue(".filter")) === "" && await page.evaluate(() => document.activeElement.tagName === "CANVAS"), "and leaves the box");
  await page.context().close();
}

/** Two means of the same steps are both said to be what they are. */
async function twoMeans() {
  await both("test/data/unseen/ddpm_train.lull", async (page, where) => {
    check(/mean 78\.9 ms between marks, 79\.2 ms on the device · median/.test(await tab(page, "steps")), `${where}: both means`, (await page.innerText(".drawer-body")).slice(0, 200));
  });
}

await main({
  ops_without_operators: opsWithoutOperators,
  leaving_the_filter: leavingTheFilter,
  two_means_of_steps: twoMeans,
  samples_of_a_function: samplesOfAFunction,
  sliders,
  columns_of_a_drag: columnsOfADrag,
  names_in_wide_tables: wideTables,
  names_that_come_late: lateNames,
  the_legend_on_top: legend,
  a_cause_of_no_family: causeOfNoFamily,
  gaps_that_are_short: shortGaps,
  conditions_of_a_prediction: conditions,
  going_to_a_step: goTo,
  a_file_that_was_cut_out: cutOut,
  the_peak_of_memory: memoryPeak,
  thousands_of_steps: manySteps,
  nearly_all_of_a_step: nearlyAll,
});
