// The Kernel panel: counters read on an H200, their verdicts, the charts, and names that mean harm.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { browser, check, comes, lull, main, open, report, root, scratch, settle, view } from "./support.mjs";

const shots = process.env.SHOTS;
if (shots) mkdirSync(shots, { recursive: true });

const text = readFileSync(join(root, "test/golden/kernel/verdicts/trace.txt"), "utf8");

async function kernelTab(page) {
  await page.click('[data-tab="kernel"]');
  await settle(page);
  await page.waitForSelector(".kernel-verdict");
  return page.innerText(".drawer-body");
}

async function recorded() {
  const b = await browser();
  const server = await view(report("kernels", text));
  const page = await open(b, server.url, { viewport: { width: 1600, height: 1100 } });
  await comes(() => page.innerText(".verdict-line"), (t) => /Counters of 10 launches were read/.test(t), "the sentence says what the report is about");
  await page.waitForSelector(".kernel-verdict");
  check(await page.getAttribute('[data-tab="kernel"]', "aria-selected") === "true", "and the panel is open by itself");
  const shown = await kernelTab(page);
  for (const id of ["memory-bound", "uncoalesced", "bank-conflict", "divergence", "latency-bound", "fp32-bound", "small-grid", "low-occupancy", "atomics", "barrier"]) {
    check(shown.includes(id), `the list has ${id}`);
  }
  check((await page.innerText(".kernel-verdict")).startsWith("bank-conflict"), "the longest launch is shown first", await page.innerText(".kernel-verdict"));
  await page.click(".kernel-list tr:has-text('fp32-bound')");
  check((await page.innerText(".kernel-verdict")).startsWith("fp32-bound"), "a click shows another launch");
  check(await page.locator(".roofline .dot").count() >= 4, "launches with arithmetic are under the roof", await page.locator(".roofline .dot").count());
  check(await page.locator(".roofline .dot.on").count() === 1, "one of them is the chosen one");
  check(/tensor|fp32/.test(await page.textContent(".roofline")), "ceilings have names");
  await page.locator(".roofline .dot:not(.on)").first().dispatchEvent("click");
  check(!(await page.innerText(".kernel-verdict")).startsWith("fp32-bound"), "a dot shows its launch");
  await page.click(".kernel-list tr:has-text('barrier')");
  await comes(() => page.innerText(".kernel-details"), (t) => /Barrier\s+80\.1 %/.test(t), "what warps did");
  await page.click(".kernel-list tr:has-text('low-occupancy')");
  await comes(() => page.innerText(".kernel-details"), (t) => /limited by shared memory/.test(t), "what limits the occupancy");
  check(await page.locator(".curve").count() === 3, "three curves of occupancy");
  check(/DRAM/.test(await page.textContent(".memory-chart")), "the levels of memory");
  const visible = async (selector) => page.evaluate((s) => {
    const [box, all] = [document.querySelector(s).getBoundingClientRect(), document.querySelector(".drawer-body").getBoundingClientRect()];
    return box.top >= all.top && box.bottom <= all.bottom;
  }, selector);
  await page.setViewportSize({ width: 1200, height: 500 });
  await page.locator(".kernel-list tbody tr").last().click();
  check(await visible(".kernel-verdict"), "a choice far down the list shows its verdict at once");
  check(await page.evaluate(() => { const l = document.querySelector(".kernel-list"); return l.scrollWidth - l.clientWidth; }) <= 1, "long names leave the list as wide as it is");
  await page.setViewportSize({ width: 1600, height: 1100 });
  const wide = await page.evaluate(() => { const d = document.querySelector(".drawer-body"); return d.scrollWidth - d.clientWidth; });
  check(wide <= 1, "the panel is not wider than the window", wide);
  check(page.complaints.length === 0, "nothing in the console", page.complaints);
  if (shots) {
    for (const name of ["uncoalesced", "fp32-bound"]) {
      await page.click(`.kernel-list tr:has-text('${name}')`);
      await page.screenshot({ path: join(shots, `kernel-${name}-light.png`) });
    }
    const dark = await open(b, server.url, { colorScheme: "dark", viewport: { width: 1600, height: 1100 } });
    await kernelTab(dark);
    await dark.click(".kernel-list tr:has-text('fp32-bound')");
    await dark.screenshot({ path: join(shots, "kernel-dark.png") });
    await dark.context().close();
    const small = await open(b, server.url, { viewport: { width: 1024, height: 700 } });
    await kernelTab(small);
    await small.screenshot({ path: join(shots, "kernel-small.png") });
    await small.context().close();
  }
  await page.context().close();
  await server.end();
}

/** The same in one file, without a server. */
async function oneFile() {
  const b = await browser();
  const file = join(scratch, "kernels.html");
  execFileSync(lull, ["export", "-t", "html", "-f", "-o", file, report("kernels", text)]);
  const page = await open(b, pathToFileURL(file).href);
  check((await kernelTab(page)).includes("bank-conflict"), "one file has the counters as well");
  check(page.complaints.length === 0, "one file: nothing in the console", page.complaints);
  await page.context().close();
}

/** Counters that were refused, and a name that wants to be markup. */
async function refused() {
  const b = await browser();
  const server = await view(report("refused", `process pid=10 name=x
device process=1 device_id=0 name="<b>GPU</b>" capability=90 n_sms=132
launch name="<img src=x onerror=alert(1)>" grid_x=500 grid_y=1 grid_z=1 block_x=256 block_y=1 block_z=1 registers=32
profiled start=1us dur=20us profiled_id=1 process=1 device=1 launch=1 ordinal=1 status=1
`));
  const page = await open(b, server.url);
  const shown = await kernelTab(page);
  check(/unknown/.test(shown) && /not allowed/.test(shown), "refused counters say why", shown.slice(0, 300));
  check(shown.includes("<img src=x"), "a name stays text");
  check(await page.locator(".drawer-body img").count() === 0, "and never becomes markup");
  check(page.complaints.length === 0, "refused: nothing in the console", page.complaints);
  await page.context().close();
  await server.end();
}

/** Five launches of an H200 that were measured as one. */
async function ranged() {
  const b = await browser();
  const server = await view("test/data/kernels/span.lull");
  const page = await open(b, server.url);
  const sentence = await page.innerText(".verdict-line");
  check(/Counters of 1 range were read/.test(sentence), "a range is not called a launch", sentence);
  const body = await kernelTab(page);
  check(/launch-overhead/.test(body) && /5 launches in 138/.test(body), "a range has its verdict and its proof", body);
  check(/launches\s+5\s/.test(body) && /passes\s+12, one run of the program each/.test(body), "and says how it was measured", body);
  check(page.complaints.length === 0, "range: nothing in the console", page.complaints);
  await page.context().close();
  await server.end();
}

/** Without counters the panel has the command that reads them; tabs are in their order. */
async function none() {
  const b = await browser();
  const server = await view("test/data/torch/train.lull");
  const page = await open(b, server.url);
  await page.click('[data-tab="kernel"]');
  await settle(page);
  const shown = await page.innerText(".drawer-body");
  check(shown.includes("lull kernel --from train.lull -- python3 train.py --steps 14"), "the command names the report and the program", shown);
  const tabs = await page.$$eval("[data-tab]", (all) => all.map((t) => t.dataset.tab));
  check(tabs[0] === "verdict" && new Set(tabs).size === tabs.length && tabs.length >= 16, "each panel has one tab", tabs);
  check(tabs.join().includes("kernels,calls,ranges,ops,copies,memory"), "by their places", tabs);
  check(tabs.join().endsWith("health,requests,collectives,compare,ranks"), "what the recording has nothing for comes last", tabs);
  await page.context().close();
  await server.end();
}

await main({ no_counters: none, counters_of_an_h200: recorded, counters_in_one_file: oneFile, refused_counters: refused, a_range_as_one: ranged });
