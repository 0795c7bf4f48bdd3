// Source: lines of code lead to the file, with the samples of each line; what is read, and what is not.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { answer, browser, check, comes, lull, open, scratch, settle, sharedPage, view } from "./support.mjs";

const file = "test/corpus/data/batching_server.lull";
const program = "/srv/app/batching_server.py"; // as the recording names it
const text = readFileSync("test/corpus/programs/batching_server.py", "utf8").split("\n");

async function fromAFolder() {
  const page = await sharedPage("--source", "test/corpus/programs", file);
  await page.click(".first-cause >> text=source");
  await settle(page);
  const body = await comes(() => page.innerText(".source-code"), (t) => t.includes(program), "a line of the verdict opens its file");
  const on = await page.$eval(".source-code tr.on", (r) => ({ line: r.dataset.line, code: r.querySelector(".code").textContent, link: r.querySelector("a")?.href }));
  check(text[on.line - 1].trimEnd() === on.code.trimEnd(), "the line is the one of the file", on);
  check(on.link === `vscode://file${program}:${on.line}`, "with a link into the editor", on.link);
  check(/\d %/.test(body), "and the share of samples beside lines", body.slice(0, 200));
  const told = await page.evaluate((f) => window.lull.app.source.ask("source", { file: f }), program);
  const [, , weight, total] = told.files.find((f) => f[0] === program);
  check(told.lines.length >= text.length - 1, "all lines are there", told.lines.length);
  check(told.times.reduce((sum, t) => sum + t[1], 0) === weight && weight <= total, "the lines of a file add up to its samples", [weight, total]);
  check(told.times.every(([line, own, all]) => own <= all && all <= total && line > 0), "no line has more than all", told.times);
  check(page.complaints.length === 0, "nothing in the console", page.complaints);
}

/** Only files that samples name, below the folder, no links. */
async function notOthers() {
  const folder = join(scratch, "reports");
  mkdirSync(join(folder, "app"), { recursive: true });
  copyFileSync(file, join(folder, "a.lull"));
  const server = await view(join(folder, "a.lull"));
  const ask = (args) => answer(server, "source", args);
  check(/is not in/.test((await ask({ file: program })).why), "without the file it says so");
  writeFileSync(join(scratch, "secret.py"), "secret\n");
  symlinkSync(join(scratch, "secret.py"), join(folder, "app", "batching_server.py"));
  check(/is not in/.test((await ask({ file: program })).why), "a symbolic link is not followed");
  writeFileSync(join(folder, "batching_server.py"), "one\ntwo\n");
  check(JSON.stringify((await ask({ file: program })).lines) === '[[1,"one"],[2,"two"]]', "a file in the folder of the report is found");
  writeFileSync(join(folder, "batching_server.py"), "a\0b");
  check(/no text/.test((await ask({ file: program })).why), "a file that is no text is not shown");
  for (const other of ["/etc/passwd", "../secret.py", join(scratch, "secret.py")]) {
    const refused = await ask({ file: other }).then(() => "", (e) => e.message);
    check(/no sample was in/.test(refused), `${other} is refused`, refused);
  }
  await server.end();
}

async function inOneFile() {
  const html = (name, ...args) => {
    execFileSync(lull, ["export", "-t", "html", "-o", join(scratch, name), ...args, file], { stdio: "ignore" });
    return pathToFileURL(join(scratch, name)).href;
  };
  const page = await open(await browser(), html("with.html", "--with-source", "test/corpus/programs"));
  await page.evaluate(() => window.lull.app.openTab("source"));
  await settle(page);
  const lines = await page.$$eval(".source-code [data-line]", (rows) => rows.map((r) => [Number(r.dataset.line), r.querySelector(".code").textContent]));
  check(lines.length > 20 && lines.every(([n, code]) => text[n - 1].trimEnd() === code.trimEnd()), "an exported page has lines of the program", lines.slice(0, 3));
  check(lines.length < text.length, "those around samples", [lines.length, text.length]);
}

export const cases = { lines_lead_to_source: fromAFolder, what_is_not_read: notOthers, source_in_one_file: inOneFile };
