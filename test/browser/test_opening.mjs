// What the page shows first on recordings of ordinary programs: a few steady steps with their cause, the kernels and the
// thread that launches them, without scrolling, on small and on large screens.

import { RUNS } from "./runs.mjs";
import { browser, check, comes, main, open, settle, state, view } from "./support.mjs";

const SIZES = [[1000, 700], [1600, 900]];

/** Which rows are in view as a whole, by key; and what the page opened on. */
const look = (page) => page.evaluate(async () => {
  const { app, timeline } = window.lull;
  const v = await app.source.ask("verdict");
  const { rows } = app.meta;
  const clip = document.querySelector(".titles").getBoundingClientRect();
  const seen = [...document.querySelectorAll(".title")].filter((e) => {
    const r = e.getBoundingClientRect();
    return r.top >= clip.top - 1 && r.bottom <= clip.bottom + 1;
  }).map((e) => e.dataset.key);
  const row = (key) => rows.find((r) => r.key === key);
  const steps = rows.find((r) => r.kind === "step" && app.pinned.includes(r.key));
  const threads = rows.filter((r) => r.kind === "thread").map((r) => r.key);
  return {
    seen, kinds: seen.map((key) => row(key)?.kind), pinned: app.pinned, opening: app.opening, scroll: timeline.scrollY, threads,
    launcher: rows.find((r) => r.is_launcher)?.key, top: rows.filter((r) => r.parent < 0 && !r.is_hidden).map((r) => r.kind), hasSteps: !!steps,
    view: app.view, whole: app.whole(), curves: rows.filter((r) => r.kind === "curve" && !r.is_hidden).map((r) => [r.title, r.unit, r.max, r.top]),
    first: v.findings[v.first], waits: v.families.reduce((a, b) => a + b, 0), legend: document.querySelector(".verdict-line .legend").innerText,
    sentence: document.querySelector(".verdict-line").innerText, isCut: [...document.querySelectorAll(".sentence span")].some((e) => e.scrollHeight > e.clientHeight + 1),
  };
});

function placed(name, s) {
  check(s.scroll === 0, `${name}: nothing is scrolled`, s.scroll);
  check(s.seen.includes(`${s.opening.device}/idle`) && s.pinned.includes(`${s.opening.device}/idle`), `${name}: idle time of the device that the sentence is about`, s.seen);
  check(s.kinds.includes("kernel"), `${name}: its kernels`, s.seen);
  check(s.launcher === s.opening.threads[0] && s.seen.includes(s.launcher), `${name}: the thread that launches them`, [s.launcher, s.opening.threads, s.seen]);
  check(s.seen.some((key) => key.startsWith(`${s.launcher}/`)), `${name}: and what it does`, s.seen);
  check(!s.kinds.includes("curve"), `${name}: no metrics`, s.seen);
  check(/GPU 0/.test(s.sentence) && !s.isCut, `${name}: the whole sentence`, s.sentence);
  const order = ["step", "idle", "device", "kernel", "copy", "thread"].map((kind) => s.kinds.indexOf(kind)).filter((at) => at >= 0);
  check(order.every((at, i) => !i || at > order[i - 1]), `${name}: rows in order`, s.kinds);
}

function told(name, s) {
  const { from, to, n_steps: nSteps } = s.opening;
  check(s.view.from <= from && s.view.to >= to && s.view.to - s.view.from < 1.2 * (to - from), `${name}: the view is what the analysis says`, [s.view, s.opening]);
  check(!s.hasSteps || nSteps < 4 || s.view.to - s.view.from < 0.9 * (s.whole.to - s.whole.from), `${name}: a part of the run`, s.view);
  check(s.first.share > s.waits || s.legend.includes(`${s.first.id} `), `${name}: the colours have the name of the first cause`, [s.legend, s.first.id]);
  check(s.top[s.top.length - 1] === "metrics", `${name}: metrics are one group, the last`, s.top);
  check(s.top.filter((kind) => kind === "device").length === 1, `${name}: one device is one row`, s.top);
  check(s.curves.every(([, , max]) => max > 0), `${name}: no curve that is zero all the time`, s.curves);
  check(s.curves.every(([, unit, max, top]) => top >= max && (unit !== "%" || top % 100 === 0)), `${name}: shares are drawn up to 100 %`, s.curves);
  check(new Set(s.threads.map((key) => key.replace(/^.*\//, ""))).size === s.threads.length, `${name}: a thread has one row`, s.threads);
}

/** Where kernels are the answer, their names lead to one of a steady step. */
async function kernelLink(page) {
  await page.click(".evidence .link");
  const s = await comes(() => state(page), (t) => /accelerate/.test(t.selection?.name ?? ""), "a kernel of the verdict leads to one of it");
  check(s.tab === "verdict", "the verdict is still there", s.tab);
}

async function opens(name) {
  const server = await view(`test/corpus/data/${name}.lull`);
  const page = await open(await browser(), server.url, { viewport: { width: SIZES[0][0], height: SIZES[0][1] } });
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    await settle(page);
    placed(`${name} ${width} × ${height}`, await look(page));
  }
  told(name, await look(page));
  if (name === "star_cluster") await kernelLink(page);
  check(page.complaints.length === 0, `${name}: nothing in the console`, page.complaints);
  await page.context().close();
  await server.end();
}

/** On a very large screen nothing that was closed for want of room stays closed, and what was opened has room. */
async function large() {
  const name = "gpt_char_train";
  const server = await view(`test/corpus/data/${name}.lull`);
  const page = await open(await browser(), server.url, { viewport: { width: 3840, height: 2160 } });
  placed(`${name} 3840 × 2160`, { ...(await look(page)), kinds: (await look(page)).kinds.filter((kind) => kind !== "curve") });
  const s = await page.evaluate(() => {
    const { app, timeline } = window.lull;
    return { roomy: [...app.roomy], room: timeline.height - timeline.top, height: timeline.layout.height, hash: location.hash };
  });
  check(s.roomy.includes("metrics"), "metrics are open", s);
  check(s.height <= s.room && s.height > 0.5 * s.room, "all of it is in view, and the screen is not empty", s);
  await page.click('.title[data-key="metrics"]');
  await comes(() => page.evaluate(() => location.hash), (hash) => !/[#&]t=/.test(hash), "the address does not tell what this screen has room for");
  await page.setViewportSize({ width: 1000, height: 700 });
  await page.reload();
  await settle(page);
  placed(`${name} again, 1000 × 700`, await look(page));
  check(page.complaints.length === 0, "nothing in the console", page.complaints);
  await page.context().close();
  await server.end();
}

/** Where requests come now and then, steps of average length need not be average ones: what is seen is what the sentence says. */
async function shares() {
  const server = await view("test/corpus/data/http_embedder.lull");
  const page = await open(await browser(), server.url);
  const { said, seen } = await page.evaluate(async () => {
    const { app } = window.lull;
    const { steps } = await app.source.ask("steps");
    const inside = steps.filter(([, from, to]) => (from + to) / 2 > app.opening.from && (from + to) / 2 < app.opening.to);
    const all = inside.reduce((sum, [, from, to]) => sum + to - from, 0);
    const { families } = await app.source.ask("verdict");
    return { said: families, seen: families.map((_, i) => inside.reduce((sum, step) => sum + step[5 + i], 0) / all) };
  });
  check(said.some((share) => share > 0.5) && said.every((share, i) => Math.abs(share - seen[i]) < 0.15), "causes have the shares of the sentence", [said, seen]);
  await page.context().close();
  await server.end();
}

await main({ large_screen: large, shares, ...Object.fromEntries(RUNS.map((name) => [name, () => opens(name)])) });
