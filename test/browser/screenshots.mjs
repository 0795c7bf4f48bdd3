// The pictures of the README: the page itself, on the recordings in examples/reports.
//
//	node test/browser/screenshots.mjs FOLDER

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { browser, open, settle, view } from "./support.mjs";

const folder = process.argv[2] ?? "doc/images";
mkdirSync(folder, { recursive: true });
const b = await browser();

async function shoot(name, files, options, prepare) {
  const server = await view(...files);
  const page = await open(b, server.url, options);
  if (prepare) await page.evaluate(prepare);
  await page.waitForTimeout(300);
  await settle(page);
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await page.context().close();
  await server.end();
  console.log(join(folder, `${name}.png`));
}

const large = { viewport: { width: 1600, height: 900 } };
const reports = "examples/reports";
await shoot("view-light", [`${reports}/sync_item.lull`], large);
await shoot("view-dark", [`${reports}/dataloader_cpu.lull`, `${reports}/dataloader_cpu-fixed.lull`], { ...large, colorScheme: "dark" }, async () => {
  const { app } = window.lull;
  const idle = app.meta.rows.find((r) => r.kind === "idle");
  const { gaps } = await app.source.ask("gaps", { lane: idle.lane, n: 1, from: Math.round(app.view.from), to: Math.round(app.view.to) });
  await app.selectAt(idle.lane, (gaps[0][0] + gaps[0][1]) / 2);
});
await shoot("view-compare", [`${reports}/dataloader_cpu.lull`, `${reports}/dataloader_cpu-fixed.lull`], large, async () => {
  window.lull.app.openTab("compare");
});
await b.close();
process.exit(0);
