// Ten things that people want to know of a recording, each with at most five actions: a click, a key, a drag, a word
// typed. The answers are those of the commands. At the end some random clicks (monkey.mjs does more of them).

import { execFileSync } from "node:child_process";
import { monkey } from "./monkey.mjs";
import { check, comes, lull, settle, sharedPage, state } from "./support.mjs";

const training = "test/corpus/data/gpt_char_train.lull";
const server = ["--source", "test/corpus/programs", "test/corpus/data/batching_server.lull"];
const pair = ["examples/reports/dataloader_cpu.lull", "examples/reports/dataloader_cpu-fixed.lull"];

const sql = (file, text) => JSON.parse(execFileSync(lull, ["query", "-f", "json", file, text], { maxBuffer: 1 << 28 }));

/** A page whose actions are counted. */
async function user(...args) {
  const page = await sharedPage(...args);
  let n = 0;
  const act = async (does) => {
    n++;
    await does();
    await settle(page);
  };
  return {
    page, n: () => n,
    click: (selector, options) => act(() => page.click(selector, options)),
    key: (key) => act(() => page.keyboard.press(key)),
    type: (text) => act(() => page.keyboard.type(text)),
    at: (x, y) => act(() => page.mouse.click(x, y)),
    tab: (id) => act(() => page.click(`[data-tab="${id}"]`)),
    text: () => page.innerText(".drawer-body"),
  };
}

const atMostFive = (u, what) => check(u.n() <= 5, `${what}: at most five actions`, u.n());

async function onSteps(u) {
  const canvas = await u.page.locator("canvas.rows").boundingBox();
  const steps = await u.page.locator('[data-key="rounds"]').boundingBox();
  await u.at(canvas.x + canvas.width / 2, steps.y + steps.height / 2);
}

async function steadyStep() {
  const u = await user(training);
  await onSteps(u);
  const { selection } = await comes(() => state(u.page), (s) => s.selection, "a click selects a step");
  const { opening } = await u.page.evaluate(() => ({ opening: window.lull.app.opening }));
  check(/^step \d+$/.test(selection.name) && selection.start >= opening.steady_from && selection.end <= opening.steady_to, "a steady step", selection);
  const n = sql(training, `SELECT count(*) AS n FROM kernels WHERE start < ${selection.end} AND "end" > ${selection.start}`)[0].n;
  await comes(() => u.text(), (t) => t.includes(`Kernels: ${n},`), "how many kernels it has");
  check(/Critical path/.test(await u.text()) && /Against the median step|step 7/.test(await u.text()), "why it takes that long, and whether others do");
  atMostFive(u, "a steady step");
}

async function guiltyOfAGap() {
  const u = await user(...server);
  await u.key("n");
  await comes(() => u.text(), (t) => /polling/.test(t) && /clock_nanosleep/.test(t) && /BatchServer\.take|batching_server\.py:\d+/.test(t), "the cause, the call and the line");
  const { selection } = await state(u.page);
  const { gaps: [[from, to]] } = await u.page.evaluate((lane) => {
    const { app } = window.lull;
    return app.source.ask("gaps", { lane, n: 1, from: app.opening.steady_from, to: app.opening.steady_to });
  }, selection.lane);
  check(selection.start === from && selection.end === to, "it is the longest of the steady steps", [selection.start, selection.end, from, to]);
  atMostFive(u, "who is guilty of a gap");
}

async function slowestOfAKernel() {
  const u = await user(training);
  await u.tab("kernels");
  await u.click("tbody tr >> nth=0");
  await u.tab("selection");
  await comes(() => u.text(), (t) => /To the slowest/.test(t), "all of its name are there");
  await u.click("text=To the slowest");
  const [most] = sql(training, "SELECT name, max(dur) AS longest FROM kernels GROUP BY name ORDER BY sum(dur) DESC LIMIT 1");
  await comes(() => state(u.page), (s) => s.selection.name === most.name && s.selection.end - s.selection.start === most.longest, "the slowest of the kernel with most time");
  await comes(() => u.text(), (t) => /launched it/.test(t), "and the call that launched it");
  atMostFive(u, "the slowest of a kernel");
}

async function whatWorkersDid() {
  const u = await user(training);
  await onSteps(u);
  await comes(() => u.text(), (t) => /pt_autograd_0/.test(t) && /cuLaunchKernel/.test(t), "each thread with its calls");
  // Its rows are closed, as those of most threads are at first.
  const key = await u.page.evaluate(() => {
    const { app } = window.lull;
    const row = app.meta.rows.find((r) => r.kind === "thread" && /pt_autograd/.test(r.title));
    app.collapsed.add(row.key);
    app.changed("rows");
    return row.key;
  });
  await u.click('.receipt-thread .strong:has-text("pt_autograd")');
  await comes(() => u.page.evaluate((k) => {
    const { timeline } = window.lull;
    return timeline.layout.rows.some((p) => p.row.key === k && p.isOpen && p.y >= timeline.scrollY - 1) && timeline.layout.rows.some((p) => p.row.key === `${k}/call`);
  }, key), (is) => is, "and its rows");
  atMostFive(u, "what the workers did");
}

async function hottestLine() {
  const u = await user(...server);
  await u.tab("source");
  const lines = await comes(() => u.page.$$eval(".source-code [data-line]", (rows) => rows.map((r) => [parseFloat(r.children[0].textContent) || 0, r.querySelector(".code").textContent.trim()])), (all) => all.length > 20, "the source is there");
  const most = lines.sort((a, b) => b[0] - a[0])[0];
  check(most[0] > 50 && most[1] === "time.sleep(0.01)", "the line with most samples", most);
  atMostFive(u, "the hottest line");
}

async function whatAFixBrings() {
  const u = await user(training);
  const why = JSON.parse(execFileSync(lull, ["why", "--format", "json", training]));
  const text = await u.text();
  check(/CUDA graphs/.test(text) && /[\d.]+ × as fast/.test(text), "what to try, and what it brings", text.slice(0, 400));
  const speedup = JSON.stringify(why).match(/"speedup":\s*([\d.]+)/)?.[1];
  check(!speedup || text.includes(`${Number(speedup).toFixed(2)} ×`), "as lull why says", speedup);
  atMostFive(u, "what a fix brings");
}

async function didItHelp() {
  const u = await user(...pair);
  const text = await comes(() => u.text(), (t) => /as fast/.test(t), "how much faster");
  check(/between .* and/.test(text) && /moved from input-pipeline to launch-bound/.test(text), "between which limits, and what is the next thing to do");
  atMostFive(u, "did it help");
}

async function findByName() {
  const u = await user(training);
  await u.key("/");
  await u.type("lerp");
  await u.key("Enter");
  const { hits, selection } = await comes(() => state(u.page), (s) => s.hits > 0 && s.selection, "a part of a name is found");
  check(hits === sql(training, "SELECT count(*) AS n FROM kernels WHERE name LIKE '%lerp%'")[0].n, "all of them", hits);
  check(/lerp/i.test(selection.name), "and one is shown", selection.name);
  atMostFive(u, "find by name");
}

async function longestWait() {
  const u = await user(training);
  await u.click('.title:has-text("OS calls") >> nth=0', { button: "right" });
  await u.click("text=List its events");
  await u.click('th button:has-text("Duration")');
  await u.click("tbody tr >> nth=0");
  const { selection } = await comes(() => state(u.page), (s) => s.selection?.row.endsWith("/os"), "the longest OS call is shown");
  const longest = await u.page.evaluate((lane) => window.lull.app.source.ask("events", { lane, by: "length", down: 1, n: 1 }), selection.lane);
  check(longest.rows[0][2] - longest.rows[0][1] === selection.end - selection.start, "it is the longest of its thread", selection);
  atMostFive(u, "the longest wait");
}

async function whereTheTimeGoes() {
  const u = await user(...server);
  await u.tab("flame");
  await u.click(".choices >> text=Python samples");
  await comes(() => u.page.$$eval(".flame", (all) => all.map((b) => b.getAttribute("aria-label"))), (names) => names.includes("BatchServer.take") || names.includes("BatchServer.wait"), "functions of the program");
  atMostFive(u, "where the time of the CPU goes");
}

async function randomClicks() {
  const page = await sharedPage(...pair);
  await monkey(page, 7, (n) => n >= 40);
}

export const cases = {
  a_steady_step: steadyStep, who_is_guilty_of_a_gap: guiltyOfAGap, slowest_of_a_kernel: slowestOfAKernel, what_the_workers_did: whatWorkersDid,
  the_hottest_line: hottestLine, what_a_fix_brings: whatAFixBrings, did_it_help: didItHelp, find_by_name: findByName, the_longest_wait: longestWait,
  where_the_time_goes: whereTheTimeGoes, random_clicks: randomClicks,
};
