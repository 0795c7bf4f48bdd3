// The page in a real browser: every panel on real and simulated reports, selecting, searching, measuring,
// links, hostile names, and the one-file form of it. Asserts look at the DOM and at window.lull, never at pixels.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { browser, build, check, comes, exportHtml, lull, main, open, report, scratch, settle, sharedView, skip, state, until, view } from "./support.mjs";

const reports = "examples/reports";

const shots = process.env.SHOTS;
if (shots) mkdirSync(shots, { recursive: true });

async function shot(page, name) {
  if (shots) await page.screenshot({ path: join(shots, `${name}.png`) });
}

/** All there are: a new one is tested as soon as it is in the list. */
const panels = (page) => page.$$eval("[data-tab]", (tabs) => tabs.map((t) => t.dataset.tab));

/** Open a tab and wait until it is drawn; gives its text. */
async function tab(page, id) {
  await page.click(`[data-tab="${id}"]`);
  return until(async () => {
    await settle(page);
    const text = await page.innerText(".drawer-body");
    return text && !/^…$/m.test(text) ? text : "";
  }, `the tab ${id} is drawn`);
}

async function clickThrough(name, url, expected) {
  const page = await open(await browser(), url);
  await shot(page, name);
  const s = await state(page);
  check(s.records > 0, `${name}: something is drawn`, s.records);
  await comes(() => page.innerText(".titles"), (t) => /GPU 0/.test(t), `${name}: a device has a row`);
  for (const id of await panels(page)) {
    const text = await tab(page, id);
    check(text.length > 10, `${name}: ${id} says something`, text);
    check(!/That did not work/.test(text), `${name}: ${id} works`, text.slice(0, 200));
    if (expected[id]) check(expected[id].test(text), `${name}: ${id} matches ${expected[id]}`, text.slice(0, 300));
    await shot(page, `${name}-${id}`);
  }
  await comes(() => page.innerText(".verdict-line"), (t) => expected.sentence.test(t), `${name}: the sentence`);
  check(page.complaints.length === 0, `${name}: nothing in the console`, page.complaints);
  return page;
}

/** Every text that is shown fits into its box, and no row title lies over another. */
async function looks(page, name) {
  const bad = await page.evaluate(() => {
    const out = [];
    const titles = [...document.querySelectorAll(".titles-scroll .title")].map((e) => e.getBoundingClientRect()).sort((a, b) => a.top - b.top);
    for (let i = 1; i < titles.length; i++) if (titles[i].top < titles[i - 1].bottom - 1) out.push("titles overlap");
    for (const selector of [".top", ".tabs", "footer"]) {
      const el = document.querySelector(selector);
      if (el.scrollWidth > el.clientWidth + 1) out.push(`${selector} is wider than the window`);
    }
    for (const name of document.querySelectorAll(".title.stacked .name, .title.stacked .number")) {
      if (name.scrollWidth > name.clientWidth + 1) out.push(`the title ${name.innerText} is cut`);
    }
    if (document.documentElement.scrollWidth > window.innerWidth) out.push("the page is wider than the window");
    return [...new Set(out)];
  });
  check(bad.length === 0, `${name}: nothing overlaps or is cut`, bad);
}

async function selecting() {
  const page = await dataloader();
  await page.evaluate(() => window.lull.app.show(window.lull.app.whole()));
  await tab(page, "verdict");
  await page.keyboard.press("n");
  await settle(page);
  let s = await state(page);
  check(s.selection?.row === "gpu0/idle", "N selects the longest gap", s.selection);
  const { opening } = await page.evaluate(() => ({ opening: window.lull.app.opening }));
  check(s.selection.start < opening.steady_to && s.selection.end > opening.steady_from, "of the steady steps", [s.selection, opening]);
  const first = s.selection?.start;
  await page.keyboard.press("n");
  await settle(page);
  s = await state(page);
  check(s.selection && s.selection.start !== first, "N again goes to another gap", s.selection);
  // A kernel, and back to the call that launched it.
  await page.evaluate(async () => {
    const { app } = window.lull;
    const row = app.meta.rows.find((r) => r.kind === "kernel");
    const at = await app.source.ask("next", { lane: row.lane, t: 0, dir: 1 });
    app.frame({ from: at.start, to: at.end });
    await app.selectAt(row.lane, (at.start + at.end) / 2);
  });
  await settle(page);
  s = await state(page);
  check(s.selection?.type === "event" && s.selection.links === 1, "a kernel is linked to its call", s.selection);
  const text = await page.innerText(".drawer-body");
  check(/grid/.test(text) && /launched it/.test(text), "the panel has its shape and its call", text.slice(0, 300));
  await page.click(".links .link");
  await settle(page);
  s = await state(page);
  check(/Launch|Memcpy|Memset|launch/.test(s.selection?.name ?? ""), "the link leads to the call", s.selection?.name);
  await page.keyboard.press(".");
  await settle(page);
  check((await state(page)).selection.start > s.selection.start, "a dot selects the next event");
  await page.keyboard.press("Escape");
  check((await state(page)).selection === null, "Escape clears the selection");
}

/** Two reports above each other: both are drawn, aligned by steps, and move together. */
async function comparing() {
  const page = await dataloader();
  check((await state(page)).tab === "compare", "two reports open on their comparison", (await state(page)).tab);
  const said = JSON.parse(execFileSync(lull, ["diff", "--format", "json", "--top", "0", `${reports}/dataloader_cpu.lull`, `${reports}/dataloader_cpu-fixed.lull`]));
  const text = (await tab(page, "compare")).replace(/\s+/g, " ");
  const percent = (v) => `${v > 0 ? "+" : "−"}${(100 * Math.abs(v)).toFixed(1)} %`;
  const { change, interval } = said.step_time_ns;
  check(text.includes(`(${percent(change)}, between ${percent(interval[0])} and ${percent(interval[1])})`), "the change and its limits are those of lull diff", text.slice(0, 200));
  check(text.includes(`moved from ${said.first_cause[0]} to ${said.first_cause[1]}`), "so is where the bottleneck went");
  check(said.causes.every((c) => text.includes(c.cause)), "all causes are there", said.causes);
  for (const kind of ["copies", "calls", "ranges"]) check(new RegExp(`${kind} ${said[kind].length}\\b`).test(text), `as many ${kind} changed`, said[kind].length);
  const drawn = () => page.$eval(".strips", (e) => Number(e.dataset.records));
  await comes(drawn, (n) => n > 20, "compare: both timelines are drawn");
  // Causes as lull diff has them: what changed, and between which limits.
  check(/−30\.3 ms −32\.8 ms … −27\.8 ms less input-pipeline/.test(text), "compare: a cause that is gone, with its limits", text.slice(0, 1500));
  check(/−5\.61 µs … \+2\.23 µs no visible change kernel-gap/.test(text), "compare: one that did not change", text.slice(0, 1500));
  const titles = await page.$$eval(".strips-title b", (all) => all.map((e) => e.innerText));
  check(titles.join() === "before,after", "before is above after", titles);
  const bar = () => page.innerText(".strips-bar b");
  const before = await bar();
  check(/^step \d+: .* → /.test(before), "it says which step", before);
  await page.click('.strips-bar [aria-label="Next step"]');
  await comes(bar, (text) => text !== before, "and goes to the next one");
  const labels = await page.$$eval(".strips-row", (all) => all.map((e) => e.innerText));
  check(labels.filter((l) => l === "idle by cause").length === 2, "both show idle time by cause", labels);
  const at = await page.locator(".strips-canvas").boundingBox();
  await page.mouse.move(at.x + 200, at.y + 40);
  await comes(() => page.isVisible(".strips .tip"), (is) => is, "a pointer tells what is there");
  await page.click('.strips-bar [aria-label="Zoom in"]');
  await settle(page);
  await comes(drawn, (n) => n > 0, "a closer look still shows something");
  check(page.complaints.length === 0, "compare: nothing in the console", page.complaints);
}

async function searching() {
  const page = await dataloader();
  const now = () => state(page);
  await page.keyboard.press("/");
  await page.keyboard.type("/gemm|kernel/");
  await page.keyboard.press("Enter");
  const first = await comes(now, (s) => s.hits > 0 && s.selection?.type === "event", "a regular expression finds names, and the first is selected");
  const before = first.selection?.start;
  await page.keyboard.press("Enter");
  await comes(now, (s) => s.selection && s.selection.start !== before, "Enter goes to the next hit");
  await page.keyboard.press("Shift+Enter");
  await comes(now, (s) => s.selection?.start === before, "Shift Enter goes back");
  check(page.complaints.length === 0, "search: nothing in the console", page.complaints);
  // The browser notes the refusal.
  await page.fill(".search", "/(/");
  await page.keyboard.press("Enter");
  await comes(() => page.innerText(".hits"), (text) => /[Pp]aren|Unmatched|unterminated/i.test(text), "a bad expression says so");
}

async function moving() {
  const page = await dataloader();
  await tab(page, "verdict"); // the rows get the room that they are moved in
  await page.evaluate(() => { document.activeElement?.blur(); window.lull.app.show(window.lull.app.whole()); });
  const box = await page.locator("canvas.rows").boundingBox();
  const length = (v) => v.to - v.from;
  const whole = (await state(page)).view;
  await page.mouse.move(box.x + 300, box.y + 100);
  await page.keyboard.press("w");
  const now = () => state(page);
  let s = await comes(now, (t) => length(t.view) < length(whole), "W zooms in");
  await page.keyboard.press("d");
  const panned = (await comes(now, (t) => t.view.from > s.view.from, "D pans")).view;
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -200);
  await page.keyboard.up("Control");
  await comes(now, (t) => length(t.view) < length(panned), "Ctrl and the wheel zoom");
  // Moves that follow each other quickly are one.
  const isWhole = (t) => Math.abs(t.view.from - whole.from) < 2 && Math.abs(t.view.to - whole.to) < 2;
  for (let i = 0; i < 3 && !isWhole(await now()); i++) await page.keyboard.press("Backspace");
  check(isWhole(await now()), "all of it can be taken back", (await now()).view);
  await page.keyboard.press("w");
  await settle(page);
  await page.mouse.move(box.x + 100, box.y + 150);
  await page.mouse.down();
  await page.mouse.move(box.x + 400, box.y + 150, { steps: 4 });
  await page.mouse.up();
  s = await comes(now, (t) => t.range && t.range.to > t.range.from, "a drag measures");
  await comes(() => page.innerText(".drawer-body"), (text) => /Measured/.test(text), "and its sums are shown");
  for (const key of [",", ".", "[", "]", "n"]) await page.keyboard.press(key); // no event is selected: nothing to complain of
  await comes(now, (t) => t.selection && t.selection.type !== "range", "N goes on from a range, too");
  await page.evaluate((r) => window.lull.app.setRange(r), s.range);
  await page.mouse.move(box.x + 100, box.y + 10);
  await page.mouse.down();
  await page.mouse.move(box.x + 300, box.y + 10, { steps: 4 });
  await page.mouse.up();
  await comes(now, (t) => length(t.view) < length(s.view), "a drag on the ruler zooms");
  await page.keyboard.press("Backspace");
  await comes(now, (t) => Math.abs(length(t.view) - length(s.view)) < 2, "Backspace goes back");
  await page.keyboard.press("?");
  await comes(() => page.innerText(".help"), (text) => /zoom to the selection/.test(text), "? shows the keys");
  await page.keyboard.press("Escape");
  const rows = (await state(page)).rows;
  await page.click(".title.group");
  await comes(now, (t) => t.rows !== rows, "a click on a group opens or closes it");
  await page.click(".title.group");
  await page.fill(".filter", "kernel");
  const titles = () => page.$$eval(".titles-scroll .title:not(.group) .name", (all) => all.map((e) => e.innerText));
  await comes(titles, (all) => all.length > 0 && all.every((t) => /kernel/i.test(t)), "a filter hides other rows");
  await comes(() => page.innerText(".row-count"), (t) => /^\d+ of \d+$/.test(t), "and says how many are left");
  await page.fill(".filter", "");
  await comes(titles, (all) => all.some((t) => !/kernel/i.test(t)), "without it all rows are back");
  check(page.complaints.length === 0, "moving: nothing in the console", page.complaints);
}

/** The address holds the view: the same address shows the same. */
async function links() {
  const page = await dataloader();
  await page.evaluate(() => { const { app } = window.lull; const l = app.meta.to - app.meta.from; app.show({ from: app.meta.from + l * 0.3, to: app.meta.from + l * 0.35 }); app.openTab("kernels"); app.pin("gpu0/copy"); app.toggle("metrics"); app.marks = [Math.round(app.view.from) + 5]; app.filter = "o"; app.changed("rows", "view"); });
  const { view: wanted } = await state(page);
  const from = Math.round(wanted.from);
  const url = await until(() => page.url().includes(`v=${from}+`) && page.url().includes("p=kernels") && page.url(), "the address holds the view");
  const again = await open(await browser(), url);
  const got = await comes(() => state(again), (s) => s.tab === "kernels", "an address shows the same tab");
  const layout = await again.evaluate(() => { const { app } = window.lull; return [app.pinned.join(), app.collapsed.has("metrics"), app.marks.map(Math.round).join(), app.filter, document.querySelector(".filter").value].join(" "); });
  check(layout === `rounds,gpu0/idle,gpu0/copy false ${from + 5} o o`, "and the same rows, pins and marks", layout);
  check(Math.abs(wanted.from - got.view.from) < 2 && Math.abs(wanted.to - got.view.to) < 2, "and the same view", [wanted, got.view]);
}

/** Search begins where one looks, has all hits, and keeps the zoom; G goes to a time or a step. */
async function finding(path) {
  const server = await view(path);
  for (const url of [server.url, exportHtml(path)]) {
    const page = await open(await browser(), url);
    const where = url.slice(0, 4);
    const now = () => state(page);
    const first = await now();
    const length = first.view.to - first.view.from;
    await page.fill(".search", "cudaLaunchKernel");
    await page.press(".search", "Enter");
    let s = await comes(now, (t) => t.selection?.name === "cudaLaunchKernel", `${where}: a search finds something`);
    check(s.selection.start >= first.view.from && s.selection.start <= first.view.to, `${where}: in what is shown`, [s.selection, first.view]);
    check(Math.abs(s.view.to - s.view.from - length) < 1, `${where}: the zoom stays`, [first.view, s.view]);
    const shown = await page.innerText(".hits");
    const seen = await page.evaluate(async () => {
      // To the last hit of all, by its number, and on: around to the first one.
      const { app } = window.lull;
      const n = app.hits.n;
      const told = app.hits.hits.length;
      app.hitIx = n - 2;
      const starts = [];
      for (let i = 0; i < 3; i++) { await app.goToHit(1); starts.push([app.hitIx, app.selection.start]); }
      await app.goToHit(-1);
      return { n, told, total: app.hits.total, starts, back: [app.hitIx, app.selection.start] };
    });
    check(seen.n === seen.total && seen.n > 2000 && seen.told <= 2000, `${where}: all hits have a number, a page is told`, [seen, shown]);
    check(seen.starts[0][0] === seen.n - 1 && seen.starts[1][0] === 0 && seen.starts[1][1] < seen.starts[2][1] && seen.starts[2][1] < seen.starts[0][1], `${where}: after the last one comes the first`, seen);
    check(seen.back[0] === 0 && seen.back[1] === seen.starts[1][1], `${where}: and back`, seen);
    await page.keyboard.press("Escape");
    await page.locator("canvas.rows").focus();
    await page.keyboard.press("g");
    await page.keyboard.type("step 20");
    await page.keyboard.press("Enter");
    s = await comes(now, (t) => t.selection?.name === "step 20", `${where}: G goes to a step`);
    await page.locator("canvas.rows").focus();
    await page.keyboard.press("g");
    await page.keyboard.press("Escape");
    check((await page.locator(".goto").count()) === 0 && page.complaints.length === 0, `${where}: G throws nothing`, page.complaints);
    await page.context().close();
  }
  await server.end();
}

/** Kernels by what they do, the full name on demand; a frame of a stack a line, the program's own marked. */
async function readable(page) {
  const pick = (kind) => page.evaluate(async (k) => {
    const { app } = window.lull;
    const row = app.meta.rows.find((r) => r.kind === k);
    const at = await app.source.ask("next", { lane: row.lane, t: Math.round(app.first().from), dir: 1 });
    await app.selectAt(row.lane, (at.start + at.end) / 2);
  }, kind);
  await pick("kernel");
  await comes(() => page.innerText(".drawer-body h3"), (text) => / · |gemm|reduce|attention/.test(text) && !/void|::/.test(text), "a kernel is named by what it does");
  const facts = await page.innerText(".drawer-body .pairs");
  check(/in\s+step \d+/.test(facts) && /in the run, median [\d.]+ [nµ]s/.test(facts) && /[\d.]+ × the median/.test(facts), "in which step it is, and whether it is a slow one", facts);
  await comes(() => page.innerText(".full-name"), (t) => /void |::|_/.test(t), "its full name is there");
  await pick("pysample");
  await comes(() => page.locator(".stack li").count(), (n) => n > 2, "a stack has a line for each frame");
  const own = await page.$$eval(".stack li", (all) => all.map((e) => [e.className, e.innerText]));
  check(own.some(([name, text]) => name === "own" && /gpt_char_train.py/.test(text)) && own.every(([name, text]) => (name === "own") === /gpt_char_train.py/.test(text)), "the program's own code is marked", own);
  const names = await tab(page, "kernels");
  check(/elementwise · /.test(names) && !/at::native/.test(names), "tables have the same names", names.slice(0, 300));
  // The longest name of all, far longer than what somebody types.
  const longest = await page.evaluate(async () => {
    const table = await window.lull.app.source.ask("table", { name: "cuda_gpu_kern_sum" });
    const ix = table.columns.findIndex((c) => c.name === "Name");
    return table.rows.map((r, row) => [r[ix].length, row, r[ix]]).sort((a, b) => b[0] - a[0])[0];
  });
  await page.locator(".drawer-body tbody tr").nth(longest[1]).click();
  await comes(() => state(page), (t) => t.selection?.name === longest[2], `a name of ${longest[0]} letters leads to the timeline`);
}

/** The names and places that the verdict tells lead there, and its sliders can be believed. */
async function verdictLinks() {
  const server = await view("test/corpus/data/gpt_char_train.lull");
  const page = await open(await browser(), server.url);
  await whatIf(page, "gpt_char_train");
  await page.click(".place .link");
  await comes(() => state(page), (t) => t.range && t.range.to > t.range.from, "a line of code leads to its time");
  await readable(page);
  await page.context().close();
  await server.end();
}

/** Every query that the page itself offers: as it stands in the box, and each of the buttons. */
async function examples(page) {
  const ran = async (what) => {
    await until(async () => (await page.locator(".drawer-body tbody tr").count()) || /That did not work|No rows/.test(await page.innerText(".drawer-body")), `${what} of Query is answered`);
    const text = await page.innerText(".drawer-body");
    check((await page.locator(".drawer-body tbody tr").count()) > 0 && !/That did not work|No rows/.test(text), `${what} of Query gives rows`, text.slice(0, 300));
  };
  await page.click("button:has-text('Run')");
  await ran("what stands in the box");
  const buttons = page.locator(".example");
  check((await buttons.count()) >= 4, "Query has examples", await buttons.count());
  for (let i = 0; i < (await buttons.count()); i++) {
    await page.$$eval(".drawer-body tbody tr", (rows) => rows.forEach((r) => r.remove()));
    await buttons.nth(i).click();
    await ran(await buttons.nth(i).innerText());
  }
}

async function tables() {
  const page = await dataloader();
  await page.evaluate(() => window.lull.app.show(window.lull.app.whole()));
  await tab(page, "kernels");
  const before = await page.locator("tbody tr").first().innerText();
  await page.click("th:has-text('Instances') button");
  await page.click("th:has-text('Instances') button");
  const after = await page.locator("tbody tr").first().innerText();
  check(before !== after || (await page.locator("tbody tr").count()) === 1, "a click on a heading sorts");
  await page.locator("tbody tr").first().click();
  const s = await comes(() => state(page), (t) => t.hits > 0 && t.selection, "a row leads to the timeline");
  const { opening } = await page.evaluate(() => ({ opening: window.lull.app.opening }));
  check(s.tab === "kernels", "the table is still there", s.tab);
  check(s.selection.start >= opening.steady_from && s.selection.end <= opening.steady_to, "it is one of the steady steps", [s.selection, opening]);
  await page.keyboard.press("Escape");
}

async function queries() {
  const page = await dataloader();
  await tab(page, "query");
  await examples(page);
  await page.fill("textarea", "select count(*) as n, '<b>x</b>' as t from kernels");
  await page.click("button:has-text('Run')");
  await comes(() => page.innerText(".drawer-body"), (text) => /<b>x<\/b>/.test(text), "SQL results are text");
  check(page.complaints.length === 0, "query: nothing in the console", page.complaints);
  // The browser notes the refusal.
  await page.fill("textarea", "delete from kernels");
  await page.click("button:has-text('Run')");
  await comes(() => page.locator("tbody tr").count(), (n) => n === 0, "SQL cannot change anything");
}

const HOSTILE = `<img src=x onerror=document.title='owned'>`;

/** Names of a report are text, whatever they look like. */
async function hostile() {
  const b = await browser();
  const long = "k".repeat(40000);
  const path = report("hostile", `process pid=10 name="${HOSTILE}"
device process=1 device_id=0 name="${HOSTILE}" uuid=aa n_sms=10
lane kind=1 process=1 tid=10 name="${HOSTILE}"
lane kind=2 process=1 device=1 context_id=1 stream_id=7
launch name="${HOSTILE}" grid_x=1
launch name="${long}" grid_x=1
label name="${HOSTILE}"
range start=0us dur=90us lane=1 label=1 depth=0
step start=0us dur=50us lane=1 number=1
step start=50us dur=50us lane=1 number=2
cuda_call start=1us dur=4us lane=1 name="</script><script>document.title='owned'</script>" correlation=2 api=2
kernel start=10us dur=20us lane=2 launch=1 correlation=2 process=1
kernel start=60us dur=20us lane=2 launch=2 correlation=3 process=1
`);
  const server = await view(path);
  for (const url of [server.url, exportHtml(path)]) {
    const page = await open(b, url);
    for (const id of await panels(page)) await tab(page, id);
    await page.evaluate(async () => {
      const { app } = window.lull;
      const row = app.meta.rows.find((r) => r.kind === "kernel");
      const at = await app.source.ask("next", { lane: row.lane, t: 0, dir: 1 });
      await app.selectAt(row.lane, (at.start + at.end) / 2);
      await app.search("img");
    });
    await comes(() => page.innerText(".drawer-body"), (text) => text.includes(HOSTILE), `${url.slice(0, 4)}: a hostile name is shown as it is`);
    check((await page.locator("img").count()) === 0, "and makes no element");
    check(!/owned/.test(await page.title()), "and runs nothing", await page.title());
    const complaints = page.complaints;
    check(complaints.length === 0, "hostile: nothing in the console", complaints);
    await page.context().close();
  }
  await server.end();
}

/** Both forms of the page fold the same events into the same records. */
async function oneFile(path, name) {
  const b = await browser();
  const html = exportHtml(path);
  check(statSync(fileURLToPath(html)).size < 5 << 20, `${name}: the file is small`, statSync(fileURLToPath(html)).size);
  const server = await view(path);
  const [online, offline] = [await open(b, server.url), await open(b, html)];
  for (const share of [1, 0.2, 0.03]) {
    for (const page of [online, offline])
      await page.evaluate((s) => { const { app } = window.lull; const l = app.meta.to - app.meta.from; app.show({ from: app.meta.from + l * 0.5, to: app.meta.from + l * 0.5 + l * s * 0.5 }); }, share);
    // A slow machine may still be loading when the page looks settled.
    const records = async () => {
      const got = [];
      for (const page of [online, offline]) {
        await settle(page);
        got.push((await state(page)).records);
      }
      return got;
    };
    await comes(records, ([x, y]) => x === y, `${name}: server and file give the same records at ${share}`);
  }
  for (const id of await panels(offline)) {
    const text = await tab(offline, id);
    check(text.length > 10 && !/That did not work/.test(text), `${name}: ${id} of the file`, text.slice(0, 200));
  }
  check(offline.complaints.length === 0, `${name}: the file has nothing in the console`, offline.complaints);
  const cut = exportHtml(path, "--max-size", "0");
  check(existsSync(fileURLToPath(cut)), "a limit that cannot be met still gives a file");
  await online.context().close();
  await offline.context().close();
  await server.end();
}

async function emptyReport() {
  const b = await browser();
  const server = await view(report("empty", "process pid=10 name=nothing\n"));
  const page = await open(b, server.url);
  for (const id of await panels(page)) check((await tab(page, id)).length > 5, `an empty report: ${id} says what is missing`);
  await comes(() => page.innerText(".verdict-line"), (t) => /No GPU work was recorded/.test(t), "an empty report says so on top");
  check(page.complaints.length === 0, "an empty report: nothing in the console", page.complaints);
  await server.end();
  await page.evaluate(() => window.lull.app.source.ask("meta").catch(() => undefined));
  await comes(() => page.isVisible(".gone"), (is) => is, "a page whose server is gone says so");
  await page.context().close();
}

/** What waits waited for, and who waited; and when a row has nothing to show. */
async function waiting() {
  const b = await browser();
  const path = report("waits", `process pid=10 name=train
device process=1 device_id=0 name=H200 uuid=aa n_sms=10
lane kind=1 process=1 tid=10 name=main
lane kind=1 process=1 tid=11 name=loader
lane kind=2 process=1 device=1 context_id=1 stream_id=7
lane kind=2 process=1 device=1 context_id=1 stream_id=9
launch name=short grid_x=1
launch name=long grid_x=1
label name=decode
range start=20us dur=470us lane=2 label=1 depth=0
cuda_call start=1us dur=4us lane=1 name=cudaLaunchKernel correlation=2 api=2
cuda_call start=6us dur=4us lane=1 name=cudaLaunchKernel correlation=3 api=2
cuda_call start=12us dur=98us lane=1 name=cudaStreamSynchronize correlation=4 api=2
cuda_sync start=12us dur=98us lane=3 kind=3 correlation=4 process=1
oscall start=120us dur=380us lane=1 name=pthread_cond_wait
cuda_call start=505us dur=5us lane=1 name=cudaLaunchKernel correlation=5 api=2
kernel start=10us dur=95us lane=3 launch=1 correlation=2 process=1
kernel start=10us dur=98us lane=4 launch=2 correlation=3 process=1
kernel start=520us dur=40us lane=3 launch=1 correlation=5 process=1
`);
  const server = await view(path);
  for (const url of [server.url, exportHtml(path)]) {
    const where = url.slice(0, 4);
    const page = await open(b, url);
    const at = (kind, us, n = 0) => page.evaluate(async ([k, t, i]) => {
      const { app } = window.lull;
      const found = await app.selectAt(app.meta.rows.filter((r) => r.kind === k)[i].lane, app.meta.from + t * 1000);
      return found.links?.map((l) => `${l.rel} ${l.name} ${l.end - app.meta.from}`);
    }, [kind, us, n]);
    const sync = await at("call", 60 - 1);
    if (where === "http") {
      // The recording begins at 1 us.
      check(sync.join() === "awaited short 104000", "a wait leads to what it waited for", sync);
      await comes(() => page.innerText(".drawer-body"), (t) => /was waited for/.test(t), "and the panel says so");
      const kernel = await at("kernel", 60 - 1);
      check(kernel.join() === "waiter cudaStreamSynchronize 109000,call cudaLaunchKernel 4000", "work leads to who waited for it, and to its call", kernel);
      const lock = await at("os", 300 - 1);
      check(lock.join() === "producer decode 489000", "a wait for a thread leads to what that did", lock);
      const idle = await at("idle", 300 - 1);
      check(idle.join() === "next short 559000,call cudaLaunchKernel 509000", "idle time leads to what ended it, and to its call", idle);
    } else {
      check(sync.join() === "", "the file does not guess what was waited for", sync);
      await comes(() => page.innerText(".drawer-body"), (text) => /lull view FILE/.test(text), "and says who knows it");
      const kernel = await at("kernel", 60 - 1);
      check(kernel.join() === "call cudaLaunchKernel 4000", "work leads to its call in the file, too", kernel);
    }
    await at("call", 60 - 1);
    // The list is asked for after the rest.
    await comes(() => page.$$eval(".gap", (all) => all.map((g) => g.innerText.replace(/\s+/g, " "))),
      (gaps) => gaps.length >= 2 && /^395 µs/.test(gaps[0]), `${where}: the longest gap of the row comes first`);
    await page.locator(".gap").first().click();
    await comes(async () => (await state(page)).selection, (s) => s?.type === "gap", `${where}: a click on it selects it`);
    check(page.complaints.length === 0, `${where}: waits: nothing in the console`, page.complaints);
    await page.context().close();
  }
  await server.end();
}

const RECEIPT = `process pid=10 name=a
device process=1 device_id=0 name=X uuid=aa n_sms=10
lane kind=1 process=1 tid=10 name=main
lane kind=1 process=1 tid=11 name=loader
lane kind=2 process=1 device=1 context_id=1 stream_id=7
launch name=gemm
launch name=relu
label name=load
cuda_call start=90us dur=8us lane=1 name=cudaLaunchKernel correlation=1
kernel start=100us dur=100us lane=3 launch=1 correlation=1
oscall start=150us dur=400us lane=1 name=sem_wait
range start=120us dur=430us lane=1 label=1
sched start=0us dur=160us lane=1 cpu=0 end_reason=1
sched start=170us dur=200us lane=2 cpu=1 end_reason=2
sched start=400us dur=150us lane=2 cpu=1 end_reason=1
cuda_call start=590us dur=8us lane=1 name=cudaLaunchKernel correlation=2
kernel start=600us dur=100us lane=3 launch=2 correlation=2
`;

/** A span that begins and ends inside of things, without a step: each counts for its part in it. */
async function receipts() {
  const b = await browser();
  const path = report("receipt", RECEIPT);
  const server = await view(path);
  const told = [];
  for (const url of [server.url, exportHtml(path)]) {
    const page = await open(b, url);
    const where = url.slice(0, 4);
    const r = await page.evaluate(() => {
      const { app } = window.lull;
      return app.source.ask("receipt", { from: app.meta.from + 150000, to: app.meta.from + 650000 });
    });
    const [d] = r.devices;
    const [main, loader] = ["p1/t1", "p1/t2"].map((key) => r.threads.find((t) => t.key === key));
    const us = (items) => items.map((i) => [i[0], i[2] / 1000, i[3]].join(" ")).join();
    check(d.ns === 500000 && d.busy_ns === 100000, `${where}: a device is busy for the parts inside`, d);
    check(us(d.kernels.top) === "gemm 50 1,relu 50 1", `${where}: kernels are cut at the edges`, d.kernels);
    check(d.causes.reduce((sum, c) => sum + c[2], 0) === 400000, `${where}: the rest has a cause or none, once`, d.causes);
    check(main.cpu_ns === 10000 && us(main.ranges.top) === "load 400 1", `${where}: the main thread`, main);
    check(main.calls.map((c) => [c[0], c[1], c[3] / 1000].join(" ")).join() === "call cudaLaunchKernel 8,os sem_wait 400", `${where}: inside which calls it was`, main.calls);
    check(loader.cpu_ns === 350000 && loader.runnable_ns === 30000, `${where}: on a CPU, and ready to run`, loader);
    told.push(JSON.stringify([d, { ...main, wait: 0 }, { ...loader, wait: 0 }]));
    // A drag shows it; what is busy or idle adds up to the span.
    await page.evaluate(() => { const { app } = window.lull; app.show(app.whole()); });
    const box = await page.locator("canvas.rows").boundingBox();
    await page.keyboard.down("Alt");
    await page.mouse.move(box.x + box.width * 0.3, box.y + 100);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.8, box.y + 100, { steps: 3 });
    await page.mouse.up();
    await page.keyboard.up("Alt");
    await comes(() => page.innerText(".drawer-body"), (text) => /Threads, of/i.test(text) && /sem_wait/.test(text) && /computing/.test(text) && /ready, waits for a CPU/.test(text), `${where}: a drag over the rows shows it`);
    check(page.complaints.length === 0, `${where}: receipt: nothing in the console`, page.complaints);
    await page.context().close();
  }
  check(told[0] === told[1], "the file tells what the server tells", told);
  const bad = await fetch(`${server.url}receipt?from=5&to=4`);
  check(bad.status === 400, "a span that ends before it begins is refused", bad.status);
  await server.end();
}

/** A gap of an ordinary recording: who did what meanwhile, and a link to the one that was waited for. */
async function guilty() {
  const server = await view("test/corpus/data/train_scans_loader.lull");
  const page = await open(await browser(), server.url);
  await page.locator("canvas.rows").focus();
  await whatIf(page, "train_scans_loader");
  await page.keyboard.press("n");
  await comes(() => page.innerText(".drawer-body"), (text) => /Threads, of/i.test(text) && /sem_clockwait waits for/.test(text) && /train_scans_loader.py:\d+/.test(text), "a gap says what threads did");
  await page.click(".receipt-threads .receipt-thread .small .link");
  const s = await comes(() => state(page), (t) => t.selection && t.selection.row !== "gpu0/idle", "who was waited for is a link");
  check(/^p\d+\/t\d+/.test(s.selection.row) && !s.selection.row.startsWith((await page.evaluate(() => window.lull.app.opening.threads[0]))), "to another thread", s.selection);
  check(page.complaints.length === 0, "a gap: nothing in the console", page.complaints);
  await page.context().close();
  await server.end();
}

/** The text of the row with this key, once its numbers are there. */
async function numberOf(page, key) {
  return until(async () => {
    const text = await page.$eval(`.title[data-key="${key}"] .number`, (e) => e.innerText).catch(() => "");
    return /%/.test(text) && text;
  }, `${key} has its number`);
}

/** What `lull stats -r overlap` says of the first device. */
function overlapOf(path) {
  const [names, values] = execFileSync(lull, ["stats", "-q", "-r", "overlap", "-f", "csv", path], { encoding: "utf8" }).trim().split("\n").map((l) => l.split(","));
  const of = (name) => Number(values[names.findIndex((n) => n.startsWith(name))] || 0);
  const computing = of("Compute Alone") + of("Compute+Copy") + of("Compute+Collective") + of("All Three");
  return { busy: of("Busy") / 100, idle: of("Idle") / of("Span"), computing: computing / of("Span") };
}

/** Numbers on the page are those of the command line, and what it left out is not among them. */
async function numbers(path) {
  const percent = (share) => `${100 * share >= 10 ? Math.round(100 * share) : (100 * share).toFixed(1)} %`;
  const b = await browser();
  const told = overlapOf(path);
  const { device: use } = JSON.parse(execFileSync(lull, ["why", "-f", "json", path], { encoding: "utf8" }));
  const waits = 1 - use.compute_ns / use.window_ns;
  const server = await view(path);
  for (const url of [server.url, exportHtml(path)]) {
    const page = await open(b, url);
    const where = url.slice(0, 4);
    const [device, idle] = [await numberOf(page, "gpu0"), await numberOf(page, "gpu0/idle")];
    check(device === `busy ${percent(told.busy)} of run`, `${where}: a device is busy as stats says`, [device, told]);
    check(idle === `not computing ${percent(waits)} of each step`, `${where}: its idle row says what the sentence does`, [idle, waits]);
    const about = await page.getAttribute('.title[data-key="gpu0/idle"]', "title");
    check(about.includes(`computing ${percent(told.computing)}, `) && about.includes(`idle ${percent(told.idle)}.`), `${where}: and of the run what stats says`, [about, told]);
    check(page.complaints.length === 0, `${where}: nothing in the console`, page.complaints);
    await page.context().close();
  }
}

/** Warm-up is drawn, and is in no number. */
async function warmUp() {
  const b = await browser();
  const path = `${reports}/dataloader_cpu.lull`;
  const told = JSON.parse(execFileSync(lull, ["why", "-f", "json", path], { encoding: "utf8" })).steps;
  const server = await view(path);
  for (const url of [server.url, exportHtml(path)]) {
    const page = await open(b, url);
    const text = await tab(page, "steps");
    const ns = (label) => { const m = new RegExp(`${label} ([\\d.]+) ms`).exec(text); return m ? Number(m[1]) * 1e6 : NaN; };
    check(new RegExp(`^${told.steady + told.warm_up} steps, the first left out as warm-up`).test(text), "steps: what is left out is said", text.slice(0, 200));
    check(Math.abs(ns("mean") / told.mean_ns - 1) < 0.01, "steps: the mean is that of lull why", [ns("mean"), told.mean_ns]);
    check(ns("fastest") > 20e6, "steps: the short first one is not the fastest", ns("fastest"));
    check((await page.locator(".step-bar.warm-up").count()) === told.warm_up && (await page.locator(".step-bar.warm-up i").count()) === 0, "steps: warm-up is drawn as such, without causes");
    check((await page.locator(".step-bar").count()) === told.steady + told.warm_up, "steps: all of them are drawn");
    await page.context().close();
  }
  await server.end();
}

/** A cause with less than half of the time is not what the device waits for; and what was measured is no guess. */
async function causes() {
  const b = await browser();
  for (const [name, isMost] of [["dataloader_cpu", true], ["dataloader_cpu-fixed", true], ["gil_thread", false], ["sync_item", false]]) {
    const server = await view(`${reports}/${name}.lull`);
    const page = await open(b, server.url);
    const [line, text] = [await page.innerText(".verdict-line .sentence"), await tab(page, "verdict")];
    const v = await page.evaluate(() => window.lull.app.source.ask("verdict"));
    const most = v.findings.reduce((x, y) => (y.cost_ns > x.cost_ns ? y : x));
    check((v.findings[v.first].cost_ns >= 0.5 * v.waiting_share * v.step_ns) === isMost, `${name}: what the test is about`);
    check(/ because /.test(line + text) === isMost, `${name}: because is said of what has most of the time`, line);
    if (!isMost) {
      check(line.includes(`fix first: ${v.findings[v.first].id} (`) && line.includes(`${most.id} accounts for most of it (`), `${name}: both causes are named`, line);
      for (const f of [v.findings[v.first], most]) check(text.includes(`without ${f.id} (${f.prediction.ratio.toFixed(2)} × as fast)`), `${name}: what fixing ${f.id} brings`, text.slice(0, 400));
      await comes(() => page.locator(".finding").nth(1).innerText(), (t) => new RegExp(`${most.id}`).test(t), `${name}: their cards stand side by side`);
    }
    check(!/a guess|likely|\bsure\b/.test(text), `${name}: what was measured is not called a guess`, text.slice(0, 300));
    check((text.match(/confidence/g) ?? []).length === 1, `${name}: confidence is told of the first`, text.slice(0, 300));
    const cut = await page.$eval(".sentence span", (e) => e.scrollHeight > e.clientHeight + 1);
    check(!cut, `${name}: the sentence is not cut`, line);
    check(/^lull kernel --from/m.test(await tab(page, "kernel")), `${name}: a command is written as it is typed`);
    check(page.complaints.length === 0, `${name}: causes: nothing in the console`, page.complaints);
    await page.context().close();
    await server.end();
  }
}

/** What if: nothing changed is 1.00 ×, more gone is never slower, and what the kernels need is always left. */
async function whatIf(page, path) {
  const v = await page.evaluate(() => window.lull.app.source.ask("verdict"));
  const sliders = page.locator(".whatif input");
  check((await sliders.count()) > 0, `${path}: there is something to change`);
  const all = await page.evaluate(async (n) => {
    const out = [];
    for (let i = 0; i < n; i++) {
      const box = document.querySelectorAll(".whatif")[i];
      const input = box.querySelector("input");
      for (const value of [0, 40, 99, 100]) {
        input.value = String(value);
        box.querySelector(".then").replaceChildren();
        input.dispatchEvent(new Event("change"));
        while (!box.querySelector(".then").innerText) await new Promise((done) => setTimeout(done, 5));
        out.push({ i, value, text: box.querySelector(".then").innerText.replace(/\s+/g, " ") });
      }
    }
    return out;
  }, await sliders.count());
  const ns = (text, unit) => Number(text) * { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9 }[unit];
  for (const s of all) {
    const m = /^now ([\d.]+) (\S+) then ([\d.]+) (\S+) ([\d.]+) × as fast/.exec(s.text);
    if (!m) { check(false, `${path}: what is said`, s); continue; }
    Object.assign(s, { now: ns(m[1], m[2]), then: ns(m[3], m[4]), ratio: Number(m[5]) });
    const last = s.value ? all[all.indexOf(s) - 1].then : s.then;
    check(s.value || (s.ratio === 1 && s.now === s.then), `${path}: nothing gone is as it is`, s);
    check(s.then <= last, `${path}: more gone is not slower`, [last, s]);
    check(s.then >= (1 - v.waiting_share) * v.free_ns * 0.98 || /unfused|optimizer/.test(v.findings[s.i]?.id), `${path}: the kernels are left`, s);
  }
}

/** What the page says of a job, once it knows. */
async function jobLine(page) {
  return until(async () => { const line = await page.innerText(".verdict-line"); return /Rank/.test(line) && line; }, "the sentence about the job");
}

/** The job of the page is the job of the terminal. */
async function sameJob() {
  const b = await browser();
  const folder = "test/data/ranks/slow4";
  const told = /([\d.]+) ms of each step of\s+([\d.]+) ms \((\d+) %\)/.exec(execFileSync(lull, ["why", folder], { encoding: "utf8" }));
  const server = await view(folder);
  const page = await open(b, server.url);
  const line = await jobLine(page);
  const got = /([\d.]+) ms of each step of ([\d.]+) ms \((\d+) %\)/.exec(line);
  check(told && got && [1, 2].every((i) => Math.abs(Number(got[i]) / Number(told[i]) - 1) < 0.005) && got[3] === told[3], "a job costs what the terminal says", [line, told?.[0]]);
  await page.context().close();
  await server.end();
}

/** A folder is a job: who is late, and ranks above each other. */
async function ranking() {
  const b = await browser();
  if (!existsSync(`${build}/sim/lull-job`)) skip("the made-up job (make sim) is not built");
  const folder = join(scratch, "job");
  execFileSync(`${build}/sim/lull-job`, [folder, "ranks=12", "steps=30", "slow=5", "slow-from=10", "slow-us=4000", "cause=input"], { stdio: "ignore" });
  const server = await view(folder);
  const page = await open(b, server.url);
  const line = await jobLine(page);
  check(/^Rank 5 \(.*\) delays the job/.test(line), "a job has one sentence", line);
  await comes(() => page.innerText(".drawer-body"), (text) => /12 ranks, 29 steps/.test(text) && /Rank 5/.test(text) && /input-pipeline/.test(text) && /since step 10/.test(text), "ranks: the straggler, since when and why");
  await settle(page);
  const heat = await page.$eval(".heat-canvas", (c) => {
    const px = new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer);
    return { w: c.width, h: c.height, isLate: px[5 * c.width + 20] !== px[4 * c.width + 20], wasLate: px[5 * c.width + 3] === px[5 * c.width + 20] };
  });
  check(heat.w === 29 && heat.h === 12 && heat.isLate && !heat.wasLate, "ranks: a cell for each rank and step, dark where it is late", heat);
  const titles = () => page.$$eval(".strips-title b", (all) => all.map((e) => e.innerText).join());
  await comes(titles, (text) => /^rank 5,rank \d+,rank \d+$/.test(text), "ranks: the late one stands above others");
  await comes(() => page.$eval(".strips", (e) => Number(e.dataset.records)), (n) => n > 20, "ranks: their timelines are drawn");
  await page.selectOption(".chosen select", { label: await page.$eval(".chosen select option:last-child", (o) => o.innerText) });
  await comes(titles, (text) => /rank 11$/.test(text), "ranks: another one can be added");
  await settle(page);
  // On the job's clock the others are there before the late one: its collectives are short.
  // The pointer may be a little outside, at its edge or while something is dragged.
  await page.locator(".heat-canvas").evaluate((c) => {
    const box = c.getBoundingClientRect();
    c.dispatchEvent(new PointerEvent("pointermove", { clientX: box.x - 3, clientY: box.y - 3 }));
  });
  check(await page.locator(".tip", { hasText: /^rank 0, step/ }).count() === 1, "ranks: outside of the first cell is the first cell");
  await page.locator(".heat-canvas").click({ position: { x: 40, y: 5 } });
  await comes(titles, (text) => /^rank 0/.test(text), "ranks: a click on the picture chooses the rank");
  check(/ranks of one job/.test(await tab(page, "compare")), "ranks are not compared as before and after");
  for (const id of await panels(page)) check(!/That did not work/.test(await tab(page, id)), `a job: ${id} works`);
  check(page.complaints.length === 0, "a job: nothing in the console", page.complaints);
  await page.context().close();
  check((await server.end()) === 0, "a job ends well");
}

/** Too large to wait for: the page is there at once, and the verdict comes by itself. */
async function large() {
  const b = await browser();
  const path = join(scratch, "large.lull");
  execFileSync(`${build}/bench/bench_make`, [path, "600000"], { stdio: "ignore" });
  const server = await view(path);
  const page = await open(b, server.url);
  const line = await until(async () => { const text = await page.innerText(".verdict-line"); return /of each step/.test(text) && text; }, "a large report gets its verdict", 180);
  check(/GPU \d is busy \d+ % of each step/.test(line), "a large report gets its verdict by itself", line);
  await settle(page);
  const named = await page.evaluate(async () => {
    const { app } = window.lull;
    const lane = app.meta.rows.find((r) => r.kind === "idle").lane;
    const { gaps } = await app.source.ask("gaps", { lane, n: 20 });
    const names = await app.source.ask("names", { id: gaps.map((g) => g[2]).join(",") });
    return names.filter((n) => n !== "idle").length;
  });
  check(named > 0, "and its idle time gets causes", named);
  const placed = () => page.evaluate(() => { const { app } = window.lull; return { pinned: app.pinned, first: app.meta.rows.find((r) => r.kind === "device").key, view: app.view, opening: app.opening }; });
  await comes(placed, (p) => p.opening && p.pinned.includes(`${p.opening.device}/idle`) && p.first === p.opening.device, "rows are those of the device that it is about");
  await comes(placed, (p) => p.view.from <= p.opening.from && p.view.to - p.view.from < 1.2 * (p.opening.to - p.opening.from), "and the view its steady steps");
  check(/gpu-bound/.test(await tab(page, "verdict")), "and the panel its findings");
  check(page.complaints.length === 0, "large: nothing in the console", page.complaints);
  await page.context().close();
  check((await server.end()) === 0, "a large report ends well");
}

/** On a small screen a gap's columns are there without scrolling to the side, and nothing in them is cut. */
async function narrow() {
  const page = await open(await browser(), (await sharedView("test/corpus/data/train_scans_loader.lull")).url, { viewport: { width: 1000, height: 700 } });
  await page.keyboard.press("n");
  await comes(() => page.innerText(".drawer-body"), (t) => /Next gap like this[^]*If fixed/i.test(t), "a gap and what its fix brings");
  const [wide, columns] = await page.$eval(".drawer-body", (d) => [d.scrollWidth - d.clientWidth, d.querySelectorAll(".columns > section").length]);
  check(wide <= 1 && columns === 4, "they are as wide as the window", [wide, columns]);
  const cut = await page.$$eval(".columns > section", (all) => all.map((s) => s.scrollWidth - s.clientWidth));
  check(Math.max(...cut) <= 1, "and hold what is in them", cut);
  await page.context().close();
}

/** Long names leave room for what they are, and what several processes say is said once. */
async function healthOfMany() {
  const path = report("many", `process pid=10 name=one
process pid=20 name=two
meta key=environment.CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE value=/etc/ssl/certs/ca-certificates.crt
issue name=stack_cut severity=1 count=5 process=1 text="call stacks that end before the outermost frame"
issue name=stack_cut severity=1 count=7 process=2 text="call stacks that end before the outermost frame"
issue name=stack_cut severity=1 count=1 process=2 text="call stacks that end before the outermost frame" detail="in python3"
`);
  const server = await view(path);
  const page = await open(await browser(), server.url, { viewport: { width: 1024, height: 700 } });
  const text = await tab(page, "health");
  check(/12 × stack cut/.test(text) && /1 × stack cut/.test(text) && text.match(/stack cut/g).length === 2, "what two processes say is said once", text);
  const widths = await page.$$eval(".drawer-body .pairs.wide > :nth-child(even)", (all) => all.map((e) => e.getBoundingClientRect().width));
  check(Math.min(...widths) >= 90, "values have room beside long names", widths);
  await page.context().close();
  check((await server.end()) === 0, "it ends well");
}

const pair = () => sharedView(`${reports}/dataloader_cpu.lull`, `${reports}/dataloader_cpu-fixed.lull`);

/** A page with a recording before its fix, and the one after it to compare. */
const dataloader = async () => open(await browser(), (await pair()).url);

async function everyPanel() {
  const page = await clickThrough("dataloader", (await pair()).url, {
    sentence: /GPU 0 does not compute for 9\d %/, verdict: /input-pipeline/, steps: /16 steps/, kernels: /gemm/, calls: /cudaLaunchKernel/, ranges: /data_load/,
    copies: /Host-to-Device/, compare: /as fast/, flame: /CPU samples/, health: /recorded/i, kernel: /No counters/, memory: /peak/,
  });
  await looks(page, "dataloader");
}

async function dark() {
  const page = await open(await browser(), (await pair()).url, { colorScheme: "dark", viewport: { width: 1920, height: 1080 } });
  check((await page.getAttribute("html", "data-theme")) === "dark", "dark follows the system");
  await looks(page, "dark, large");
  await shot(page, "dataloader-dark");
}

async function another(name, sentence) {
  const server = await view(`${reports}/${name}.lull`);
  const page = await clickThrough(name, server.url, { sentence, kernels: /Instances/ });
  await looks(page, name);
  await page.context().close();
  check((await server.end()) === 0, "Ctrl-C ends it well");
}

/** A recording of the simulated device. */
function simulated() {
  if (!existsSync(`${build}/sim/libcuda.so.1`) || !existsSync(`${build}/examples/train_cuda`)) skip("the simulated device is not built");
  const to = join(scratch, "sim");
  if (!existsSync(`${to}.lull`)) execFileSync(lull, ["profile", "-o", to, `${build}/examples/train_cuda`, "--steps=40"], { env: { ...process.env, LD_LIBRARY_PATH: `${build}/sim` }, stdio: "ignore" });
  return `${to}.lull`;
}

async function simulatedPanels() {
  const server = await view(simulated());
  const page = await clickThrough("simulated", server.url, { sentence: /./, steps: /40 steps/ });
  await comes(() => page.innerText(".top"), (t) => /simulated device/.test(t), "a simulated report says so on top");
}

await main({
  every_panel: everyPanel,
  dark_and_large: dark,
  before_and_after: comparing,
  selecting,
  searching,
  finding: () => finding("test/corpus/data/gpt_char_train.lull"),
  the_verdict: verdictLinks,
  moving,
  tables,
  queries,
  links,
  sync_item: () => another("sync_item", /host waits|GPU 0/),
  gil_thread: () => another("gil_thread", /GPU 0/),
  a_simulated_device: simulatedPanels,
  one_file_of_a_simulated_device: () => oneFile(simulated(), "simulated"),
  one_file: () => oneFile(`${reports}/sync_item.lull`, "sync_item"),
  numbers_of_d2h_logging: () => numbers("test/data/planted-native/d2h_logging.lull"),
  numbers_of_dataloader_cpu: () => numbers(`${reports}/dataloader_cpu.lull`),
  numbers_of_a_rank: () => numbers("test/data/ranks/slow4/rank0.lull"),
  warm_up: warmUp,
  causes,
  the_same_job: sameJob,
  waits: waiting,
  a_receipt_of_any_span: receipts,
  who_is_guilty_of_a_gap: guilty,
  a_large_report: large,
  ranks_of_a_job: ranking,
  hostile_names: hostile,
  an_empty_report: emptyReport,
  health_of_many: healthOfMany,
  narrow,
});
