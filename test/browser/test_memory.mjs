// The panel Memory: what a framework had in use, who had asked for it, and where the peak is; from the server and in one file.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { browser, check, finish, lull, open, report, scratch, settle, view } from "./support.mjs";

const shots = process.env.SHOTS;
if (shots) mkdirSync(shots, { recursive: true });

async function shot(page, name) {
  if (shots) await page.screenshot({ path: join(shots, `${name}.png`) });
}

/** The text of the panel once `wanted` is in it. */
async function textWith(page, wanted) {
  let text = "";
  for (let i = 0; i < 400; i++) {
    await settle(page);
    text = await page.innerText(".drawer-body");
    if (wanted.test(text)) break;
    await page.waitForTimeout(25);
  }
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

const b = await browser();
const path = report("allocs", readFileSync("test/golden/report/alloc_peak/trace.txt", "utf8"));
const server = await view(path);
const light = await open(b, server.url);
await panel(light, "server");
await shot(light, "memory-light");
await light.context().close();
const dark = await open(b, server.url, { colorScheme: "dark", viewport: { width: 1920, height: 1080 } });
await dark.click('[data-tab="memory"]');
await textWith(dark, /\[before the recording\]/);
check((await dark.getAttribute("html", "data-theme")) === "dark", "dark follows the system");
await shot(dark, "memory-dark");
await dark.context().close();
await server.end();

const file = join(scratch, "allocs.html");
execFileSync(lull, ["export", "-t", "html", "-o", file, path]);
const one = await open(b, pathToFileURL(file).href);
await panel(one, "one file");
await one.context().close();

// Names in a report may be anything.
const hostile = report("hostile", `process pid=1 name=python
lane kind=1 process=1 tid=1
op_label name="<img src=x onerror=window.hurt=1>" kind=1
op start=1us dur=9us lane=1 label=1
alloc start=2us lane=1 device_kind=1 device_id=0 address=1 size_bytes=1000
alloc start=3us lane=1 device_kind=0 address=1 size_bytes=-1000
alloc start=3us lane=1 device_kind=0 address=2 size_bytes=9223372036854775807
`);
const bad = await view(hostile);
const page = await open(b, bad.url);
await page.click('[data-tab="memory"]');
await textWith(page, /onerror/);
check((await page.evaluate(() => window.hurt)) === undefined, "a name is text");
check((await page.locator(".memory-pool").count()) === 2, "host and device have a chart", await page.locator(".memory-pool").count());
check(page.complaints.length === 0, "odd sizes: nothing in the console", page.complaints);
await page.context().close();
await bad.end();
await b.close();
finish("memory panel");
