// The page on recordings of ordinary programs, to be looked at: as it opens, on small to very large screens, light and
// dark; and its panels.
//
//	node test/browser/gallery.mjs FOLDER [NAME...]
//
// NAME is a recording of runs.mjs, or a panel of PANELS.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { RUNS } from "./runs.mjs";
import { browser, open, settle, view } from "./support.mjs";

const SIZES = [[1000, 700], [1600, 900], [3840, 2160]];
const COLOURS = ["light", "dark"];

const corpus = (name) => `test/corpus/data/${name}.lull`;
const SOURCE = ["--source", "test/corpus/programs"];
const tab = (id) => (page) => page.evaluate((t) => window.lull.app.openTab(t), id);

/** What is opened, and what is done there. */
const PANELS = {
  requests: [[corpus("http_embedder")], tab("requests")],
  compare: [["examples/reports/dataloader_cpu.lull", "examples/reports/dataloader_cpu-fixed.lull"], tab("compare")],
  kernels: [[corpus("gpt_char_train")], tab("kernels")],
  flame: [[...SOURCE, corpus("batching_server")], async (page) => { await tab("flame")(page); await page.click(".choices >> text=Python samples"); }],
  gap: [[...SOURCE, corpus("batching_server")], (page) => page.keyboard.press("n")],
  step: [[corpus("gpt_char_train")], (page) => page.keyboard.press("]")],
  kernel: [[corpus("leaf_resnet")], (page) => page.click(".evidence .link")],
  source: [[...SOURCE, corpus("batching_server")], tab("source")],
  events: [[corpus("train_scans_loader")], async (page) => { await page.click('.title:has-text("OS calls") >> nth=0', { button: "right" }); await page.click("text=List its events"); }],
  steps: [[corpus("dqn_replay")], tab("steps")],
  ranks: [["test/data/ranks/slow4"], tab("ranks")],
  counters: [["test/data/kernels/operators.lull"], tab("kernel")],
  memory: [["test/data/torch/ops.lull"], tab("memory")],
  operators: [["test/data/torch/ops.lull"], tab("ops")],
  imported: [["test/data/pytorch/kineto-h200.json.gz"], tab("verdict")],
};

const [folder = "build/screenshots", ...names] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const b = await browser();

/** A page of its own for each size: what is open at first depends on the room. */
async function shoot(name, server, prepare) {
  for (const colorScheme of COLOURS) {
    for (const [width, height] of SIZES) {
      const page = await open(b, server.url, { colorScheme, viewport: { width, height } });
      await prepare?.(page);
      await page.waitForTimeout(300);
      await settle(page);
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`) });
      await page.context().close();
    }
  }
  console.log(join(folder, `${name}-*.png`));
}

for (const name of names.length ? names : [...RUNS, ...Object.keys(PANELS)]) {
  const [files, prepare] = PANELS[name] ?? [[corpus(name)]];
  const server = await view(...files);
  await shoot(PANELS[name] ? `panel-${name}` : name, server, prepare);
  await server.end();
}
await b.close();
process.exit(0);
