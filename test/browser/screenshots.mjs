// The pictures of the README: the page itself, on recordings of ordinary programs.
//
//	node test/browser/screenshots.mjs FOLDER

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { smaller } from "./small_png.mjs";
import { browser, open, settle, view } from "./support.mjs";

const folder = process.argv[2] ?? "doc/images";
mkdirSync(folder, { recursive: true });
const b = await browser();

async function shoot(name, files, options, prepare) {
  const server = await view(...files);
  const page = await open(b, server.url, { viewport: { width: 1440, height: 840 }, ...options });
  await prepare?.(page);
  await page.waitForTimeout(300);
  await settle(page);
  const png = smaller(await page.screenshot());
  writeFileSync(join(folder, `${name}.png`), png);
  await page.context().close();
  await server.end();
  console.log(join(folder, `${name}.png`), png.length);
}

await shoot("view-light", ["test/corpus/data/train_scans_loader.lull"]);
await shoot("view-gap", ["--source", "test/corpus/programs", "test/corpus/data/batching_server.lull"], { colorScheme: "dark" }, (page) => page.keyboard.press("n"));
await shoot("view-compare", ["examples/reports/dataloader_cpu.lull", "examples/reports/dataloader_cpu-fixed.lull"]);
await b.close();
process.exit(0);
