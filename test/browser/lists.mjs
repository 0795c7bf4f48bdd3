// Lists and depth: the events of a row, a kernel among those of its name, a step against the median, what the rows of an
// area did, rows of SQL on the timeline. Numbers are compared with `lull query` and with the page as one file.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { browser, check, comes, lull, open, scratch, settle, sharedPage, sharedView, state } from "./support.mjs";

const file = "test/corpus/data/chat_greedy.lull";

const sql = (text) => JSON.parse(execFileSync(lull, ["query", "-f", "json", file, text], { maxBuffer: 1 << 28 }));
const page = () => sharedPage(file);

/** Select the first kernel of the view. */
const selectKernel = (p) => p.evaluate(async () => {
  const { app } = window.lull;
  const row = app.meta.rows.find((r) => r.kind === "kernel");
  const at = await app.source.ask("next", { lane: row.lane, t: Math.round((app.view.from + app.view.to) / 2), dir: 1 });
  await app.selectAt(row.lane, (at.start + at.end) / 2);
});

async function listing() {
  const p = await page();
  const [{ n, longest, total }] = sql("SELECT count(*) AS n, max(dur) AS longest, sum(dur) AS total FROM kernels");
  await p.locator('.titles-scroll [data-key$="/kernel"]').first().click({ button: "right" });
  await p.click(".menu >> text=List its events");
  await settle(p);
  const head = await comes(() => p.innerText(".drawer-body"), (t) => /events, together/.test(t), "a right click on a row lists its events");
  check(/200 of 16\.6 k events/.test(head) && n > 16550 && n < 16650, "it says how many there are", [head.slice(-80), n]);
  await p.click('th button:has-text("Duration")');
  await comes(() => p.$eval("thead", (t) => t.innerText), (t) => /Duration ↓/.test(t), "a heading sorts, the longest first");
  await p.click("tbody tr >> nth=0");
  const s = await comes(() => state(p), (x) => x.selection?.row.endsWith("/kernel"), "a row is shown on the timeline");
  check(s.tab === "events", "and the list stays", s.tab);
  check(s.selection.end - s.selection.start === longest, "the first is the longest kernel of the run", [s.selection, longest]);
  const answer = await p.evaluate((lane) => window.lull.app.source.ask("events", { lane, by: "name", n: 1000 }), s.selection.lane);
  check(answer.n === n && answer.ns === total && answer.bins.reduce((sum, b) => sum + b[2], 0) === n, "all are counted, once", [answer.n, answer.ns, n, total]);
  await p.$eval(".table-foot button", (b) => { b.click(); b.click(); });
  await comes(() => p.innerText(".table-foot"), (t) => /^400 of/.test(t), "there are more pages");
  await settle(p);
  check((await p.$$eval("tbody tr", (r) => r.length)) === 400, "a page comes once for two clicks", await p.innerText(".table-foot"));
  check(p.complaints.length === 0, "nothing in the console", p.complaints);
}

/** A title of which only the end is in view: other titles come while the mouse is pressed if it scrolls then. */
async function titleAtTheEdge() {
  const p = await open(await browser(), (await sharedView(file)).url, { viewport: { width: 1280, height: 420 } });
  const at = await p.evaluate(async () => {
    const { timeline } = window.lull;
    const clip = document.querySelector(".titles-clip").getBoundingClientRect();
    const title = [...document.querySelectorAll(".titles-scroll .title.group")].find((t) => t.getBoundingClientRect().bottom > clip.top + 30);
    timeline.scrollTo(timeline.scrollY + title.getBoundingClientRect().bottom - clip.top - 8);
    return { key: title.dataset.key, isOpen: title.ariaExpanded, x: clip.left + 60, y: clip.top + 4 };
  });
  await settle(p);
  await p.mouse.move(at.x, at.y);
  await p.mouse.down();
  await settle(p);
  await p.mouse.up();
  const isOpen = () => p.evaluate((key) => document.querySelector(`.titles-scroll [data-key="${key}"]`)?.ariaExpanded, at.key);
  await comes(isOpen, (is) => is && is !== at.isOpen, "a click on it opens or closes it");
  // As the browser does when it finds a word in them.
  const before = await p.evaluate(() => {
    const { timeline } = window.lull;
    timeline.scrollTo(0);
    document.querySelector(".titles-clip").scrollTop = 30;
    return timeline.scrollY;
  });
  await comes(() => p.evaluate(() => [window.lull.timeline.scrollY, document.querySelector(".titles-clip").scrollTop].join()), (at) => at === "30,0",
    "rows follow where titles are scrolled");
  check(before === 0, "they did not scroll before", before);
}

async function kernelDepth() {
  const p = await page();
  await selectKernel(p);
  const text = await comes(() => p.innerText(".drawer-body"), (t) => /All [\d\s]+of this name/.test(t), "all of its name are counted");
  check(/in range\s+forward/.test(text), "the range that launched it", text.slice(0, 500));
  check(/line\s+\w+\.forward chat_greedy\.py:\d+, sampled .* (before|after)/.test(text), "the line next to it, and how far away that was", text.slice(0, 500));
  const { selection } = await state(p);
  const step = await p.evaluate(async ({ start }) => (await window.lull.app.source.ask("steps")).steps.find((s) => s[1] <= start && s[2] > start)[0], selection);
  check(new RegExp(`step ${step}\\b`).test(text), "its step", [step, text.slice(0, 300)]);
  const quoted = selection.name.replaceAll("'", "''");
  const [{ n, longest }] = sql(`SELECT count(*) AS n, max(dur) AS longest FROM kernels WHERE name = '${quoted}'`);
  check(text.replace(/\s/g, "").includes(`All${n}ofthisname`), "how many have its name", n);
  check((await p.$$(".lengths-bars i")).length > 3 && (await p.$$(".lengths-bars .on")).length === 1, "how long these are, and which this one is");
  await p.click("text=To the slowest");
  await comes(() => state(p), (s) => s.selection?.end - s.selection?.start === longest && s.selection.name === selection.name, "a button goes to the slowest");
  check(p.complaints.length === 0, "nothing in the console", p.complaints);
}

async function againstMedian() {
  const p = await page();
  await p.evaluate(async () => {
    const { app } = window.lull;
    const row = app.meta.rows.find((r) => r.kind === "step" && app.pinned.includes(r.key));
    const longest = await app.source.ask("events", { lane: row.lane, by: "length", down: 1, n: 1, from: app.opening.steady_from + 1, to: app.opening.steady_to });
    const [lane, start, end] = longest.rows[0];
    await app.selectAt(lane, (start + end) / 2);
  });
  await settle(p);
  const rows = await comes(() => p.$$eval(".against tbody tr", (all) => all.map((r) => [...r.children].map((c) => c.textContent))), (all) => all.length > 2, "a step is compared");
  check(rows[0]?.[0] === "whole step" && rows[0][3].startsWith("+"), "the longest step is longer than the median one", rows);
  check(rows.some((r) => r[0] === "computing") && rows.some((r) => r[0] === "launch"), "and by what", rows);
  await p.click("text=To the median step");
  await comes(() => state(p), (s) => s.selection?.row === "rounds", "the median step is a click away");
  await comes(() => p.$$(".against"), (all) => all.length === 0, "which is compared with nothing");
}

async function area() {
  const p = await page();
  const box = await p.locator("canvas.rows").boundingBox();
  const kernels = await p.locator('.titles-scroll [data-key$="/kernel"]').first().boundingBox();
  await p.mouse.move(box.x + 200, kernels.y + 4);
  await p.mouse.down();
  await p.mouse.move(box.x + 700, kernels.y + 40, { steps: 4 });
  await p.mouse.up();
  await settle(p);
  const { range } = await state(p);
  const rows = await comes(() => p.$$eval(".area tbody tr", (all) => all.map((r) => [...r.children].map((c) => c.textContent))), (all) => all.length > 1, "the rows of an area are summed");
  const [{ n }] = sql(`SELECT count(*) AS n FROM kernels WHERE start < ${Math.ceil(range.to)} AND "end" > ${Math.floor(range.from)}`);
  check(rows.length >= 2 && /^Kernels/.test(rows[0][0]), "a drag over rows sums each of them", rows);
  check(Number(rows[0][1].replace(/\s/g, "")) === n, "as many kernels as a query finds there", [rows[0], n]);
  await p.click(".area tbody button >> nth=0");
  await comes(() => p.innerText(".table-foot"), (t) => t.replace(/\s/g, "").includes(`of${n}events`), "and lists those of this time");
  await comes(() => p.evaluate(() => decodeURIComponent(location.hash)), (hash) => hash.includes("a=gpu0/"), "the address has the area");
}

async function sqlJumps() {
  const p = await page();
  const from = sql("SELECT start, name FROM kernels ORDER BY start LIMIT 1 OFFSET 9000")[0];
  await p.evaluate(() => window.lull.app.openTab("query"));
  await settle(p);
  await p.fill("textarea", "SELECT start, dur, name FROM kernels ORDER BY start LIMIT 1 OFFSET 9000");
  await p.keyboard.press("Control+Enter");
  await p.click("tbody tr");
  const s = await comes(() => state(p), (x) => x.selection?.start === from.start, "a row of SQL selects its event");
  check(s.selection.name === from.name && s.tab === "query", "by time and name, and the query stays", s.selection);
  await p.fill("textarea", "SELECT start, dur FROM idle ORDER BY dur DESC LIMIT 1");
  await p.keyboard.press("Control+Enter");
  await p.waitForSelector("tbody tr");
  await p.click("tbody tr");
  await comes(() => state(p), (x) => x.range && x.range.to > x.range.from, "a row without a name shows its time");
  check(p.complaints.length === 0, "nothing in the console", p.complaints);
}

/** The page as one file gives the same. */
async function sameInAFile() {
  const html = join(scratch, "lists.html");
  execFileSync(lull, ["export", "-t", "html", "-o", html, "--force-overwrite", "examples/reports/sync_item.lull"], { stdio: "ignore" });
  const live = await sharedPage("examples/reports/sync_item.lull");
  const offline = await open(await browser(), pathToFileURL(html).href);
  const asked = async (x) => x.evaluate(async () => {
    const { app } = window.lull;
    const rows = ["kernel", "range", "call"].map((kind) => app.meta.rows.find((r) => r.kind === kind && r.n)).filter(Boolean);
    const span = { from: Math.round(app.opening.from), to: Math.round(app.opening.to) };
    const out = { sums: await app.source.ask("sums", { ...span, lanes: rows.map((r) => r.lane).join() }), lists: [] };
    delete out.sums.from, delete out.sums.to, delete out.sums.is_folded;
    for (const r of rows) out.lists.push(await app.source.ask("events", { lane: r.lane, by: "length", down: 1, n: 3, ...span }));
    return JSON.stringify(out);
  });
  const [a, b] = [await asked(live), await asked(offline)];
  check(a === b && a.length > 200, "events and sums are those of the live page", [a.slice(0, 600), b.slice(0, 600)]);
  await offline.evaluate(() => window.lull.app.openTab("source"));
  await settle(offline);
  await comes(() => offline.innerText(".drawer-body"), (t) => /--with-source|No line of the program/.test(t), "without source it says how to get it");
  check(offline.complaints.length === 0, "nothing in the console", offline.complaints);
}

export const cases = {
  events_of_a_row: listing, a_title_at_the_edge: titleAtTheEdge, a_kernel_among_its_kind: kernelDepth, a_step_against_the_median: againstMedian, sums_of_an_area: area,
  rows_of_sql: sqlJumps, the_same_in_a_file: sameInAFile,
};
