// The critical path of a step: pieces that follow each other and fill it, on the rows that they are of.

import { answer, browser, check, comes, exportHtml, open, settle, sharedPage, sharedView, state } from "./support.mjs";

/** The path of a steady step, with the rows of its pieces. */
async function pathOf(server) {
  const { rows } = await answer(server, "meta");
  const { open } = await answer(server, "verdict");
  const step = await answer(server, "next", { lane: rows.find((r) => r.key === "rounds").lane, t: open.from, dir: 1 });
  const path = await answer(server, "path", { from: step.start, to: step.end, thread: open.threads[0] });
  const owner = (lane) => rows[rows.find((r) => lane >= r.lane && lane < r.lane + r.n_lanes).parent].title;
  return { step, path, owners: [...new Set(path.pieces.map((p) => owner(p[1])))] };
}

async function recordings() {
  const share = (x, kind) => (x.path.sums.find((s) => s[0] === kind)?.[1] ?? 0) / (x.step.end - x.step.start);
  const looks = {
    "test/corpus/data/gpt_char_train.lull": (x) => x.owners.includes("main thread") && x.owners.some((o) => /autograd/.test(o)) && share(x, "thread") > 0.9,
    "test/corpus/data/star_cluster.lull": (x) => x.owners.length === 1 && share(x, "work") > 0.99,
    "test/corpus/data/batching_server.lull": (x) => share(x, "wait") > 0.7,
  };
  for (const [file, is] of Object.entries(looks)) {
    const x = await pathOf(await sharedView(...(file.includes("batching") ? ["--source", "test/corpus/programs", file] : [file])));
    const { pieces, sums } = x.path;
    check(pieces[0][2] === x.step.start && pieces[pieces.length - 1][3] === x.step.end, `${file}: the path is as long as the step`, [pieces[0], x.step]);
    check(pieces.every((p, i) => p[3] > p[2] && (!i || p[2] === pieces[i - 1][3])), `${file}: its pieces follow each other`);
    check(sums.reduce((sum, s) => sum + s[1], 0) === x.step.end - x.step.start, `${file}: its parts add up`, sums);
    check(is(x), `${file}: it goes where the step's time goes`, [sums, x.owners]);
  }
}

const training = "test/corpus/data/gpt_char_train.lull";

/** Click on the row of steps, in the middle of the view. */
async function clickStep(page) {
  const canvas = await page.locator("canvas.rows").boundingBox();
  const steps = await page.locator('[data-key="rounds"]').boundingBox();
  await page.mouse.click(canvas.x + canvas.width / 2, steps.y + steps.height / 2);
  await settle(page);
}

/** One file has the paths of the steps that it opens on, and of others, as the server says them. */
async function inAFile() {
  const server = await sharedView(training);
  const page = await open(await browser(), exportHtml(training));
  await clickStep(page);
  await comes(() => page.innerText(".drawer-body"), (t) => /Critical path/.test(t) && /threads work/.test(t), "a click on a step shows its critical path");
  const shown = await page.evaluate(() => ({ path: window.lull.app.path, thread: window.lull.app.opening.threads[0] }));
  const told = await answer(server, "path", { from: shown.path.from, to: shown.path.to, thread: shown.thread });
  check(JSON.stringify(shown.path.pieces) === JSON.stringify(told.pieces), "it is that of the server", [shown.path.pieces.length, told.pieces.length]);
  const { steps } = await answer(server, "steps");
  const others = await page.evaluate((all) => Promise.all(all.map((s) => window.lull.app.source.ask("path", { from: s[1], to: s[2] }).then((p) => p.pieces.length, (e) => e.message))), steps.slice(1, -1));
  check(others.filter((n) => n > 2).length >= 20 && others.every((n) => n > 2 || /does not contain the critical path/.test(n)), "others have theirs, or say where it is", others);
  check(page.complaints.length === 0, "nothing in the console", page.complaints);
  await page.context().close();
}

async function onThePage() {
  const page = await sharedPage(training);
  await clickStep(page);
  const text = await comes(() => page.innerText(".drawer-body"), (t) => /Critical path/.test(t), "a click on a step shows its critical path");
  check(/threads work/.test(text) && /pt_autograd/.test(text), "what it is made of", text.slice(0, 600));
  const n = await page.evaluate(() => window.lull.app.path?.pieces.length);
  check(n >= 3, "the timeline has it", n);
  await page.click(".path .link >> nth=0");
  await settle(page);
  check((await state(page)).selection?.row === "rounds", "a click on a piece shows it, and the step stays selected");
  await page.keyboard.press("Escape");
  check(await page.evaluate(() => window.lull.app.path === null), "without the step there is no path");
  check(page.complaints.length === 0, "nothing in the console", page.complaints);
}

export const cases = { paths_in_a_file: inAFile, paths_of_recordings: recordings, a_path_on_the_page: onThePage };
