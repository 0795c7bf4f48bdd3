// The flame graph: which samples it is of, its threads, inversion, search, callers and callees.

import { answer, browser, check, comes, exportHtml, open, sharedPage, sharedView } from "./support.mjs";

const file = ["--source", "test/corpus/programs", "test/corpus/data/batching_server.lull"];

const boxes = (page) => page.$$eval(".flame", (all) => all.map((b) => ({ name: b.getAttribute("aria-label"), top: parseInt(b.style.top), width: parseInt(b.style.width), hit: b.classList.contains("hit") })));
const total = async (page) => /all ([\d.]+ \S+),/.exec(await page.innerText(".flame-head"))?.[1];

async function shown() {
  const page = await sharedPage(...file);
  await page.evaluate(() => window.lull.app.openTab("flame"));
  const bar = await comes(() => page.innerText(".panel-bar"), (t) => /steady steps, /.test(t), "it opens on the steady steps");
  check(/CPU samples/.test(bar) && /all threads/.test(bar), "kinds of samples and threads can be chosen", bar);
  const steady = await total(page);
  await page.click(".choices >> text=whole run");
  await comes(() => total(page), (t) => t && t !== steady, "the whole run has more");
  await page.click(".choices >> text=steady steps");
  await comes(() => total(page), (t) => t === steady, "and the steps are a click away");
  const keys = await page.$$eval('[aria-label="Thread"] option', (o) => o.map((x) => x.value).filter(Boolean));
  await page.selectOption('[aria-label="Thread"]', keys[keys.length - 1]);
  await comes(() => total(page), (t) => t && t !== steady, "one thread has less");
  await page.selectOption('[aria-label="Thread"]', "");
  await comes(() => total(page), (t) => t === steady, "all threads again");
  // Python: the names are the program's.
  await page.click(".choices >> text=Python samples");
  await comes(() => boxes(page), (all) => all.some((b) => /BatchServer/.test(b.name)), "functions of the program are there");
  await page.fill('[aria-label="Find a function"]', "batchserver.take");
  await comes(() => boxes(page), (all) => all.some((b) => b.hit) && all.some((b) => !b.hit), "a search marks functions");
  await comes(() => page.innerText(".flame-head"), (t) => /found: \d+(\.\d)? %/.test(t), "and says how much they are of");
  await page.locator('.flame[aria-label="BatchServer.take"]').first().click();
  await page.click("text=callers and callees");
  await comes(() => page.innerText(".drawer-body"), (t) => /Callers[\s\S]*Callees/.test(t), "callers and callees of a function");
  await page.click(".flame-head >> text=back");
  await page.fill('[aria-label="Find a function"]', "");
  await page.click("text=callers below");
  const inverted = await comes(() => boxes(page), (all) => all.some((b) => b.top === 19 && /BatchServer/.test(b.name)), "inverted, the innermost functions come first");
  check(inverted[0].name === "all", "below all", inverted[0]);
  check(page.complaints.length === 0, "nothing in the console", page.complaints);
}

/** What the server sends: trees that add up, of code. */
async function trees() {
  for (const args of [file, ["test/corpus/data/gpt_char_train.lull"], ["test/corpus/data/star_cluster.lull"]]) {
    const path = args[args.length - 1];
    const server = await sharedView(...args);
    const [flame, whole] = [await answer(server, "flame"), await answer(server, "flame", { whole: 1 })];
    for (const f of [flame, whole]) {
      const below = f.nodes.map(() => 0);
      for (const [parent, , weight] of f.nodes) if (parent >= 0) below[parent] += weight;
      check(f.nodes[0][2] === f.total && f.nodes.every((n, i) => below[i] <= n[2]), `${path}: callees weigh no more than their caller`);
      check(f.threads.reduce((sum, t) => sum + t[1], 0) === f.total, `${path}: the threads are all of it`, [f.threads, f.total]);
      const bare = f.nodes.filter(([, label]) => /^0x/.test(label)).map((n) => n[1]);
      check(!bare.length, `${path}: no bare addresses`, bare.slice(0, 5));
      const odd = f.nodes.filter(([parent, , , kind]) => parent > 0 && f.nodes[parent][3] === 3 && kind !== 3);
      check(!odd.length, `${path}: the system's kernel calls no function of the program`, odd.slice(0, 5));
    }
    check(flame.is_steady && !whole.is_steady && flame.total < whole.total, `${path}: steady steps are a part of the run`, [flame.total, whole.total]);
  }
}

/** One file has what the server says, for each thread and kind, of the steady steps and of the whole run. */
async function inAFile() {
  const server = await sharedView(...file);
  const page = await open(await browser(), exportHtml(file[2]));
  await page.evaluate(() => window.lull.app.openTab("flame"));
  for (const kind of ["CPU samples", "Python samples"]) {
    await page.click(`.choices >> text=${kind}`);
    const args = kind.startsWith("P") ? { kind: "python" } : {};
    for (const scope of ["steady steps", "whole run"]) {
      await page.click(`.choices >> text=${scope}`);
      const told = await answer(server, "flame", { ...args, ...(scope === "whole run" ? { whole: 1 } : {}) });
      check(told.threads.length > 1, "several threads have samples", told.threads);
      for (const [key, weight] of told.threads.sort((a, b) => b[1] - a[1]).slice(0, 4)) {
        await comes(() => page.selectOption('[aria-label="Thread"]', key).then(() => true).catch(() => false), (is) => is, `${kind}: ${key} can be chosen`);
        await comes(() => page.evaluate(() => document.querySelector(".flame-head")?.innerText ?? ""), (t) => shows(t, weight, kind), `${kind} of ${key}, ${scope}: as much as the server says (${weight})`);
      }
      await page.selectOption('[aria-label="Thread"]', "");
      await comes(() => page.evaluate(() => document.querySelector(".flame-head")?.innerText ?? ""), (t) => shows(t, told.total, kind), `${kind}, ${scope}: all of them again`);
    }
  }
  check(page.complaints.length === 0, "nothing in the console", page.complaints);
  await page.context().close();
}

/** Whether the head of the graph says this weight, in ns or samples, as three digits. */
function shows(text, weight, kind) {
  const [, number, unit] = /^all ([\d.]+) (\S+),/.exec(text) ?? [];
  const scale = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9, sample: 1, samples: 1 }[unit];
  return kind.startsWith("P") === /sample/.test(unit ?? "") && Math.abs((Number(number) * scale) / weight - 1) < 0.006;
}

export const cases = { flames_in_a_file: inAFile, flames: shown, flames_of_code: trees };
