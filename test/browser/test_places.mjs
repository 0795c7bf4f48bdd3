// Where the page meets other programs: it is shown inside of a notebook, and a click on a line of source opens an editor.

import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { browser, build, check, comes, limit, lull, main, open, report, root, scratch, until, view } from "./support.mjs";

const recording = (name) => join(root, `examples/reports/${name}.lull`);

// ---- a notebook ----

/** What a notebook puts into its document for a report. */
function cellOutput() {
  return execFileSync("python3", ["-c", "import sys; from lull._notebook import Page; print(Page(sys.argv[1])._repr_html_())", recording("sync_item")],
    { env: { ...process.env, PYTHONPATH: join(root, "python"), LULL_COMMAND: join(build, "lull") }, encoding: "utf8" });
}

/** A document such as that of a notebook, with the output of a cell and something to steal. */
async function notebook() {
  const b = await browser();
  const path = join(scratch, "notebook.html");
  writeFileSync(path, `<!DOCTYPE html><meta charset="utf-8"><script>window.secret = 42</script>${cellOutput()}`);
  const context = await b.newContext({ viewport: { width: 1000, height: 900 }, colorScheme: "dark" });
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

/** The page draws there. A report is input, so the page must not reach the notebook, which can run code. */
async function inline() {
  const { page, frame, context } = await notebook();
  await comes(() => page.innerText("pre"), (t) => /host waits for the device/.test(t), "the verdict stands above");
  check(await frame.evaluate(() => window.lull.state().records) > 10, "events are drawn");
  await comes(() => frame.innerText("body"), (t) => /GPU 0/.test(t), "the page has its rows");
  check(await frame.evaluate(() => document.documentElement.dataset.theme) === "dark", "dark follows the system");
  const box = await (await page.waitForSelector("iframe")).boundingBox();
  check(box.width > 900 && box.height === 600, "it has the width of the notebook", box);
  check(page.complaints.length === 0, "nothing in the console, nothing from the network", page.complaints);
  check(await page.getAttribute("iframe", "sandbox") === "allow-scripts", "it may run scripts and nothing else");
  const got = await frame.evaluate(() => {
    const attempt = (what) => { try { return String(what()); } catch (e) { return e.name; } };
    return { origin: self.origin, parent: attempt(() => parent.secret), storage: attempt(() => localStorage.length),
      opened: attempt(() => window.open("about:blank")) };
  });
  check(got.origin === "null" && got.parent === "SecurityError" && got.storage === "SecurityError" && got.opened === "null",
    "it reaches neither the notebook nor its storage", got);
  await context.close();
}

// ---- an editor ----

/** Links to lines of source on the panel of the verdict: [address, text]. */
async function links(url) {
  const page = await open(await browser(), url);
  await page.evaluate(() => window.lull.app.openTab("verdict"));
  await page.waitForSelector(".finding .place");
  const found = await page.$$eval(".finding .place a", (all) => all.map((a) => [a.getAttribute("href"), a.textContent]));
  await comes(() => page.innerText(".findings"), (t) => /\.py:\d+/.test(t), "the place is there in any case");
  check(page.complaints.length === 0, "nothing in the console", page.complaints);
  await page.context().close();
  return found;
}

async function editor() {
  const server = await view("--editor", "idea://open?file={file}&line={line}", recording("dataloader_cpu"));
  const [[href, text]] = await links(server.url);
  check(href === "idea://open?file=/srv/train/planted.py&line=82", "the address", href);
  check(text === "edit", "its text", text);
  await server.end();
  const to = join(scratch, "editor.html");
  execFileSync(lull, ["export", "-t", "html", "-o", to, recording("dataloader_cpu")], { stdio: "ignore" });
  check((await links(pathToFileURL(to).href)).length === 0, "a file that is sent to others has no links");
}

/** A report is input: its names stay names. */
async function odd() {
  const trace = readFileSync(join(root, "test/golden/cause/input-pipeline-sampled/trace.txt"), "utf8");
  const server = await view(report("odd", trace.replace("/home/u/train.py", () => '"/home/u/{line}$&?x#/page 1.py"')));
  const found = await links(server.url);
  check(found[0]?.[0] === "vscode://file/home/u/%7Bline%7D%24%26%3Fx%23/page%201.py:30", "the path is encoded", found);
  await server.end();
  for (const bad of ["javascript:alert(1)//{file}", "javascript://{file}", "vscode://file", "", "JAVASCRIPT://{file}"]) {
    const done = spawnSync(lull, ["view", "--no-browser", "--editor", bad, recording("sync_item")], { encoding: "utf8" });
    check(done.status === 2 && /option --editor: expected an address/.test(done.stderr), `${bad} is refused`, done.stderr);
  }
}

await main({ the_page_is_inline_in_a_notebook: inline, a_line_opens_the_editor: editor, odd_names_and_addresses: odd });
