// The page as it opens on twelve recordings of ordinary programs, small to very large, light and dark: to be looked at.
//
//	node test/browser/gallery.mjs FOLDER [NAME...]

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { RUNS } from "./runs.mjs";
import { browser, open, settle, view } from "./support.mjs";

const SIZES = [[1000, 700], [1600, 900], [3840, 2160]];

const [folder = "build/screenshots", ...names] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const b = await browser();
for (const name of names.length ? names : RUNS) {
  const server = await view(`test/corpus/data/${name}.lull`);
  for (const colorScheme of ["light", "dark"]) {
    const page = await open(b, server.url, { colorScheme });
    for (const [width, height] of SIZES) {
      await page.setViewportSize({ width, height });
      await page.waitForTimeout(200);
      await settle(page);
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`) });
    }
    await page.context().close();
  }
  await server.end();
  console.log(join(folder, `${name}-*.png`));
}
await b.close();
process.exit(0);
