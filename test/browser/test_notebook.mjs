// The page of a report inside of a notebook: a frame that has the page as text, and no rights but to run its scripts.

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { browser, build, check, limit, main, root, scratch, until } from "./support.mjs";

const report = join(root, "examples/reports/sync_item.lull");

/** What a notebook puts into its document for a report. */
function cellOutput() {
  return execFileSync("python3", ["-c", "import sys; from lull._notebook import Page; print(Page(sys.argv[1])._repr_html_())", report],
    { env: { ...process.env, PYTHONPATH: join(root, "python"), LULL: join(build, "lull") }, encoding: "utf8" });
}

/** A document such as that of a notebook, with the output of a cell and something to steal. */
async function notebook(colorScheme) {
  const b = await browser();
  const path = join(scratch, `notebook-${colorScheme}.html`);
  writeFileSync(path, `<!DOCTYPE html><meta charset="utf-8"><h1 id="own">notebook</h1><script>window.secret = 42</script>${cellOutput()}`);
  const context = await b.newContext({ viewport: { width: 1000, height: 900 }, colorScheme });
  context.setDefaultTimeout(limit());
  const page = await context.newPage();
  page.complaints = [];
  page.on("console", (m) => page.complaints.push(`${m.type()}: ${m.text()}`));
  page.on("pageerror", (e) => page.complaints.push(`error: ${e.message}`));
  page.on("request", (r) => { if (!/^(data|blob|file|about):/.test(r.url())) page.complaints.push(`request: ${r.url()}`); });
  await page.goto(pathToFileURL(path).href);
  const frame = await (await page.waitForSelector("iframe")).contentFrame();
  await until(() => frame.evaluate(() => Boolean(window.lull && window.lull.state().isFull && window.lull.state().isIdle)), "the page settles");
  return { page, frame, context };
}

async function inline() {
  const { page, frame, context } = await notebook("light");
  check(/host waits for the device/.test(await page.innerText("pre")), "the verdict stands above");
  check(await frame.evaluate(() => window.lull.state().records) > 10, "events are drawn");
  check(/GPU 0/.test(await frame.innerText("body")), "the page has its rows");
  const box = await (await page.waitForSelector("iframe")).boundingBox();
  check(box.width > 900 && box.height === 600, "it has the width of the notebook", box);
  check(page.complaints.length === 0, "nothing in the console, nothing from the network", page.complaints);
  await context.close();
}

/** A report is input, and its page must not reach the notebook, which can run code. */
async function sealed() {
  const { page, frame, context } = await notebook("dark");
  check(await page.getAttribute("iframe", "sandbox") === "allow-scripts", "it may run scripts and nothing else");
  const got = await frame.evaluate(() => {
    const attempt = (what) => { try { return String(what()); } catch (e) { return e.name; } };
    return { origin: self.origin, parent: attempt(() => parent.secret), storage: attempt(() => localStorage.length),
      opened: attempt(() => window.open("about:blank")) };
  });
  check(got.origin === "null" && got.parent === "SecurityError" && got.storage === "SecurityError" && got.opened === "null",
    "it reaches neither the notebook nor its storage", got);
  check(await frame.evaluate(() => document.documentElement.dataset.theme) === "dark", "dark follows the system");
  await context.close();
}

await main({ the_page_is_inline: inline, it_cannot_reach_the_notebook: sealed });
