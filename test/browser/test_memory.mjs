// The panel Memory: what a framework had in use, who had asked for it, and where the peak is; from the server and in one file.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { browser, check, lull, main, open, report, root, scratch, settle, until, view } from "./support.mjs";

const shots = process.env.SHOTS;
if (shots) mkdirSync(shots, { recursive: true });

async function shot(page, name) {
  if (shots) await page.screenshot({ path: join(shots, `${name}.png`) });
}

/** The text of the panel once `wanted` is in it. */
async function textWith(page, wanted) {
  let text = "";
  await until(async () => {
    await settle(page);
    text = await page.innerText(".drawer-body");
    return wanted.test(text);
  }, `${wanted} is shown`).catch((e) => console.error(e.message));
  return text;
}

async function panel(page, name) {
  await page.click('[data-tab="memory"]');
  const text = await textWith(page, /\[before the recording\]/);
  check(/Test GPU \(0\)/.test(text), `${name}: the memory has the name of its device`, text);
  check(/peak 1\.49 MiB, 61 % of the reserved memory unused/.test(text), `${name}: the peak, and what is unused of what is held`, text);
  check(/aten::linear\s*train\.py:30 main\s*195 KiB/.test(text), `${name}: who holds the peak, with the line`, text);
  check(/other, or before the recording/.test(text), `${name}: what nobody was seen to allocate`, text);
  check((await page.locator(".memory-chart path").count()) === 8, `${name}: the whole, five places, what is held, the peak`,
    await page.locator(".memory-chart path").count());
  await page.click('.memory-tables button:text("by step")');
  check(/Growth/.test(await textWith(page, /Growth/)), `${name}: memory by step`);
  await page.click('.memory-tables button:text("left behind")');
  check(/aten::clone[^]*train\.py:44 keep/.test(await textWith(page, /Per Step/)), `${name}: who leaks`);
  await page.click('.memory-tables button:text("backward")');
  check(/to make it contiguous/.test(await textWith(page, /contiguous/)), `${name}: a copy that nobody expects`);
  await page.locator(".memory-chart").hover({ position: { x: 2, y: 50 } });
  check(/in use 977 KiB · reserved 3\.81 MiB, 75 % unused/.test(await page.innerText(".memory-readout")),
    `${name}: what the mouse is over`, await page.innerText(".memory-readout"));
  await page.evaluate(() => window.lull.app.show({ from: 0, to: 20000 }));
  await page.click('.memory-head button:text("Go to the peak")');
  await settle(page);
  const centre = await page.evaluate(() => (window.lull.app.view.from + window.lull.app.view.to) / 2);
  check(Math.abs(centre - 261000) < 1000, `${name}: the peak is in the middle`, centre);
  check(page.complaints.length === 0, `${name}: nothing in the console`, page.complaints);
}

const allocations = () => report("allocs", readFileSync(join(root, "test/golden/report/alloc_peak/trace.txt"), "utf8"));

async function served() {
  const server = await view(allocations());
  const page = await open(await browser(), server.url);
  await panel(page, "server");
  await shot(page, "memory-light");
}

async function dark() {
  const server = await view(allocations());
  const page = await open(await browser(), server.url, { colorScheme: "dark", viewport: { width: 1920, height: 1080 } });
  await page.click('[data-tab="memory"]');
  check(/before the recording/.test(await textWith(page, /\[before the recording\]/)), "the panel is drawn");
  check((await page.getAttribute("html", "data-theme")) === "dark", "dark follows the system");
  await shot(page, "memory-dark");
}

async function oneFile() {
  const file = join(scratch, "allocs.html");
  execFileSync(lull, ["export", "-t", "html", "-o", file, allocations()]);
  await panel(await open(await browser(), pathToFileURL(file).href), "one file");
}

/** Names in a report may be anything. */
async function hostile() {
  const server = await view(report("hostile", `process pid=1 name=python
lane kind=1 process=1 tid=1
op_label name="<img src=x onerror=window.hurt=1>" kind=1
op start=1us dur=9us lane=1 label=1
alloc start=2us lane=1 device_kind=1 device_id=0 address=1 size_bytes=1000
alloc start=3us lane=1 device_kind=0 address=1 size_bytes=-1000
alloc start=3us lane=1 device_kind=0 address=2 size_bytes=9223372036854775807
`));
  const page = await open(await browser(), server.url);
  await page.click('[data-tab="memory"]');
  check(/onerror/.test(await textWith(page, /onerror/)), "a name is shown as it is");
  check((await page.evaluate(() => window.hurt)) === undefined, "a name is text");
  check((await page.locator(".memory-pool").count()) === 2, "host and device have a chart", await page.locator(".memory-pool").count());
  check(page.complaints.length === 0, "odd sizes: nothing in the console", page.complaints);
}

await main({ memory_from_the_server: served, memory_in_the_dark: dark, memory_in_one_file: oneFile, hostile_names: hostile });
