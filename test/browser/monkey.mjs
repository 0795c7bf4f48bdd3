// Random clicks, keys, drags and wheels on the page, for as long as somebody likes: no error may come of them.
//
//	node test/browser/monkey.mjs [MINUTES [SEED [REPORT...]]]
//
// What it did last is printed when something is wrong; the same seed does the same again.

import { check, open, browser, until, view } from "./support.mjs";

/** A small generator (mulberry32), so that a seed says what happens. */
function random(seed) {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const KEYS = "wsadfn,.[]rmpecq0123456789g/".split("").concat(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Escape", "Backspace", "Home", "Enter", "Tab", "?", "Shift+N", "Shift+Backspace"]);

/** One random action; gives what it was. */
async function act(page, next) {
  const { width, height } = page.viewportSize();
  const [x, y] = [Math.floor(next() * width), Math.floor(next() * height)];
  const pick = (list) => list[Math.floor(next() * list.length)];
  switch (Math.floor(next() * 8)) {
    case 0: case 1: await page.mouse.click(x, y); return `click ${x} ${y}`;
    case 2: await page.mouse.click(x, y, { button: "right" }); return `right click ${x} ${y}`;
    case 3: await page.mouse.dblclick(x, y); return `double click ${x} ${y}`;
    case 4: {
      const [x2, y2] = [Math.floor(next() * width), Math.floor(next() * height)];
      await page.mouse.move(x, y);
      await page.mouse.down();
      await page.mouse.move(x2, y2, { steps: 3 });
      await page.mouse.up();
      return `drag ${x} ${y} to ${x2} ${y2}`;
    }
    case 5: {
      await page.mouse.move(x, y);
      const by = Math.floor(next() * 800) - 400;
      if (next() < 0.5) await page.keyboard.down("Control");
      await page.mouse.wheel(0, by);
      await page.keyboard.up("Control");
      return `wheel ${by} at ${x} ${y}`;
    }
    case 6: {
      const tabs = await page.$$eval("[data-tab]", (all) => all.map((t) => t.dataset.tab));
      const id = pick(tabs);
      await page.evaluate((t) => window.lull?.app.openTab(t), id); // it may be loading another report
      return `tab ${id}`;
    }
    default: {
      const key = pick(KEYS);
      await page.keyboard.press(key);
      return `key ${key}`;
    }
  }
}

/** Links that leave the page are not followed: editors, and a reload by the choice of another report is fine. */
export async function monkey(page, seed, isOver, say = () => undefined) {
  const next = random(seed);
  const done = [];
  page.on("dialog", (d) => void d.dismiss());
  for (let n = 0; !isOver(n); n++) {
    let what;
    try {
      what = await act(page, next);
    } catch (e) {
      if (!/navigation|context was destroyed/i.test(e.message)) throw e; // another report was chosen
      await page.waitForSelector(".tabs");
      what = "another report";
    }
    done.push(what);
    if (n % 20 === 19) {
      // The page may be loading: the choice of another report does that.
      const look = () => page.evaluate(() => !!window.lull && document.querySelectorAll("[data-tab]").length > 5).catch(() => false);
      const isAlive = await until(look, "the page is there").catch(() => false);
      const body = await page.innerText(".drawer-body").catch(() => "");
      const bad = page.complaints.filter((c) => !/ERR_UNKNOWN_URL_SCHEME|Failed to launch|status of 4\d\d|^request: (?!https?:)/.test(c)); // links to editors
      if (bad.length || !isAlive || /That did not work/.test(body)) {
        check(false, `seed ${seed}: nothing is wrong after ${n + 1} actions`, { bad: bad.slice(0, 3), isAlive, body: /That did not work/.test(body) ? body.slice(0, 200) : undefined, last: done.slice(-25) });
        return false;
      }
      say(n + 1);
    }
  }
  return true;
}

if (process.argv[1]?.endsWith("monkey.mjs")) {
  const [minutes = "60", seed = "1", ...files] = process.argv.slice(2);
  const end = Date.now() + Number(minutes) * 60000;
  const all = files.length ? files : ["test/corpus/data/gpt_char_train.lull", "test/corpus/data/batching_server.lull", "examples/reports/dataloader_cpu.lull examples/reports/dataloader_cpu-fixed.lull", "test/data/ranks/slow4"];
  let [nActions, nBad] = [0, 0];
  for (let round = 0; Date.now() < end; round++) {
    const server = await view(...all[round % all.length].split(" "));
    const page = await open(await browser(), server.url, { viewport: { width: 1280, height: 800 } });
    let n = 0;
    if (!(await monkey(page, Number(seed) + round, (k) => k >= 400 || Date.now() > end, (k) => { n = k; }))) {
      nBad++;
      const how = await Promise.race([server.ended, new Promise((done) => setTimeout(done, 1000, "not yet"))]);
      console.log(`${all[round % all.length]}: lull view ended: ${how}; it said: ${server.stderr() || "nothing"}`);
    }
    nActions += n;
    await page.context().close();
    await server.end();
  }
  console.log(`${nActions} actions, ${nBad} of them ended in an error`);
  process.exit(nBad ? 1 : 0);
}
