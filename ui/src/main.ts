import "./style.css";

import { App } from "./app";
import { askDevices } from "./devices";
import { h } from "./dom";
import { Drawer, tabsOf } from "./drawer";
import * as format from "./format";
import { goToText } from "./go";
import { Header } from "./header";
import { Input } from "./input";
import { type Command, commands, listen } from "./keys";
import { localSource } from "./local";
import { Minimap } from "./minimap";
import { rowMenu } from "./row_menu";
import { type Verdict, knowVerdict } from "./panels/verdict";
import { HttpSource, type Source } from "./source";
import { useTheme } from "./theme";
import { Timeline } from "./timeline";
import type { Meta } from "./types";
import * as url from "./url";

function stored(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null; // a file has no storage
  }
}

function store(name: string, value: string): void {
  try {
    localStorage.setItem(name, value);
  } catch {
    // Nothing that matters.
  }
}

/** The view as a part of the address. */
function keep(hash: string): void {
  try {
    history.replaceState(null, "", hash);
  } catch {
    // A page inside of a notebook has no address.
  }
}

function helpBox(all: Command[], close: () => void): HTMLElement {
  const mouse: [string, string][] = [
    ["wheel", "scroll rows"], ["Ctrl wheel, pinch", "zoom"], ["Shift wheel, swipe", "pan"], ["drag", "measure; snaps to edges, Alt: free"],
    ["drag on ruler", "zoom to that"], ["Space drag", "pan both ways"], ["click", "select an event or a gap"], ["double click", "zoom to it"], ["right click on a title", "list the events of a row, pin it"],
  ];
  return h("div", { class: "help", role: "dialog", "aria-label": "Keys", onclick: close },
    h("div", { class: "help-box", onclick: (e: Event) => e.stopPropagation() },
      h("h3", null, "Keys"), h("div", { class: "help-list" }, all.filter((c) => c.text).flatMap((c) => [h("span", null, c.keys.map((k) => h("kbd", null, k))), h("span", null, c.text)])),
      h("h3", null, "Pointer"), h("div", { class: "help-list" }, mouse.flatMap(([k, v]) => [h("span", null, h("kbd", null, k)), h("span", null, v)])),
      h("button", { class: "primary", onclick: close }, "Close")));
}

class Page {
  private readonly status = h("span");
  private readonly timeline: Timeline;
  private readonly time = h("span", { class: "mono", title: "Since the first event" });
  private readonly live = h("div", { class: "live", "aria-live": "polite" });
  private help: HTMLElement | null = null;
  private hashTimer = 0;

  constructor(private readonly root: HTMLElement, private readonly app: App, source: Source) {
    const timeline = (this.timeline = new Timeline(app));
    const ctx = { app, timeline };
    const header = new Header(app, { theme: () => this.theme(!app.isDark), help: () => this.toggleHelp(all), share: () => void this.share() });
    const drawer = new Drawer(ctx);
    timeline.onMenu = (p, x, y) => rowMenu(ctx, p, x, y);
    const input = new Input(app, timeline, (text) => { this.status.textContent = text; });
    const gone = h("div", { class: "gone", hidden: true }, "lull view has ended. Loaded data is still shown; start it again to see more.");
    if (source instanceof HttpSource) source.onGone = (isGone) => { gone.hidden = !isGone; };
    const all = commands(app, timeline, {
      focusSearch: () => { header.search.focus(); header.search.select(); }, toggleHelp: () => this.toggleHelp(all), toggleTheme: () => this.theme(!app.isDark),
      goTo: () => this.goTo(), clear: () => this.clear(header), share: () => void this.share(),
      openTabAt: (ix) => { const tab = tabsOf(app)[ix]; if (tab) app.openTab(tab.id); },
    });
    listen(all, () => this.help !== null && false);
    root.replaceChildren(header.el, new Minimap(app).el, timeline.el, drawer.el, this.footer(), input.tip, this.live, gone);
    this.wire(timeline);
    expose(app, timeline, drawer, source);
  }

  private wire(timeline: Timeline): void {
    const { app } = this;
    const changed = (): void => {
      window.clearTimeout(this.hashTimer);
      this.hashTimer = window.setTimeout(() => keep(`#${url.encode(app)}`), 250);
    };
    app.on("verdict", () => askDevices(app));
    askDevices(app);
    for (const part of ["view", "rows", "selection", "range", "search", "drawer"] as const) app.on(part, changed);
    app.on("hover", () => {
      this.time.textContent = timeline.pointer ? format.moment(timeline.timeAt(timeline.pointer.x) - app.meta.from, timeline.nsPerPixel) : "";
    });
    app.on("selection", () => {
      const s = app.selection;
      this.status.textContent = s ? `selected ${format.duration(s.end - s.start)}` : "";
      this.live.textContent = s ? `selected ${format.clean(s.name ?? s.type, 100)}, ${format.duration(s.end - s.start)}` : "";
      timeline.canvas.setAttribute("aria-label", `${app.meta.rows.length} rows, ${format.duration(app.view.to - app.view.from)} in view${s ? `, selected ${format.clean(s.name ?? s.type, 100)}` : ""}`);
    });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (e) => { if (!stored("lull:theme")) this.theme(e.matches, false); });
  }

  private footer(): HTMLElement {
    const { meta } = this.app;
    const lost = meta.n_lost ? h("button", { class: "lost", onclick: () => this.app.openTab("health") }, `● ${format.count(meta.n_lost)} lost`) : h("span", { class: "good" }, "● 0 lost");
    return h("footer", null, this.time, this.status, h("span", { class: "hint" }, "W S zoom · A D pan · drag measure · N next gap · ? keys"), h("span", { class: "space" }),
      meta.n_damaged ? h("span", { class: "lost" }, "damaged file") : null, lost, h("span", null, `lull ${meta.version}`));
  }

  /** Rows that have room on this screen; an address that says what is open is right as it is. */
  useRoom(): void {
    if (!/[#&]t=/.test(location.hash)) this.timeline.useRoom();
  }

  theme(isDark: boolean, keep = true): void {
    this.app.isDark = isDark;
    useTheme(isDark);
    if (keep) store("lull:theme", isDark ? "dark" : "light");
    this.app.changed("theme");
  }

  private toggleHelp(all: Command[]): void {
    if (this.help) {
      this.help.remove();
      this.help = null;
    } else {
      this.help = helpBox(all, () => this.toggleHelp(all));
      this.root.append(this.help);
    }
  }

  private clear(header: Header): void {
    const { app } = this;
    if (this.help) {
      this.help.remove();
      this.help = null;
    } else if (app.hits || app.query) {
      header.search.value = "";
      void app.search("");
    } else if (app.selection) {
      app.select(null);
    } else {
      app.setRange(null);
    }
  }

  /** "1.5s", "200 ms", or "step 12". */
  private goTo(): void {
    const input = h("input", { placeholder: "time such as 1.5 s, or step 12", "aria-label": "Go to" });
    const message = h("div", { role: "alert" });
    const box = h("div", { class: "goto" }, input, message);
    // Removing it takes its focus away, which would remove it once more.
    const done = (): void => { input.removeEventListener("blur", done); box.remove(); };
    input.addEventListener("blur", done);
    input.addEventListener("keydown", (e) => {
      e.stopPropagation();
      if (e.key === "Escape") done();
      if (e.key !== "Enter") return;
      void goToText(this.app, input.value.trim()).then((why) => {
        message.textContent = why;
        if (!why) done();
      });
    });
    this.root.append(box);
    input.focus();
  }

  private async share(): Promise<void> {
    const hash = `#${url.encode(this.app)}`;
    const text = this.app.source.isOffline ? hash : `lull view ${this.app.meta.name} '${hash}'`;
    try {
      await navigator.clipboard.writeText(text);
      this.status.textContent = `copied: ${text}`;
    } catch {
      this.status.textContent = text;
    }
  }
}

/** What tests and curious people can ask the page. */
function expose(app: App, timeline: Timeline, drawer: Drawer, source: Source): void {
  (window as unknown as { lull: unknown }).lull = {
    app,
    timeline,
    state: () => ({
      view: app.view, selection: app.selection, range: app.range, tab: app.tab, rows: timeline.layout.rows.length, pinned: app.pinned,
      records: timeline.nRecords, labels: timeline.nLabels, pending: app.tiles.nPending, isFull: timeline.isFull,
      isIdle: !timeline.isDirty && !app.tiles.isBusy && !app.names.isBusy && !drawer.isBusy && !(source instanceof HttpSource && source.nAsked), cacheBytes: app.tiles.bytes, hits: app.hits?.total ?? 0,
    }),
    frameTimes: timeline.frameTimes,
    timings: source instanceof HttpSource ? source.timings : [],
  };
}

async function start(): Promise<void> {
  const root = document.getElementById("app")!;
  const source: Source = (await localSource()) ?? new HttpSource();
  const report = source.isOffline ? 0 : url.reportOf(location.hash);
  const meta = await source.ask<Meta>("meta", { f: report || undefined });
  // The answer says what to show first; while it is being computed that comes at once, too.
  const answer = await source.ask<Verdict>("verdict", { f: report || undefined }).catch(() => null);
  const app = new App(source, meta, report, answer?.open);
  if (answer) knowVerdict(app, answer);
  document.title = `${meta.name} · lull`;
  const saved = stored("lull:theme");
  app.isDark = saved ? saved === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
  useTheme(app.isDark);
  if (meta.is_job) app.tab = "ranks";
  else if (meta.reports.length === 2) app.tab = "compare"; // what one opens two for
  if (meta.n_events && meta.n_lost / meta.n_events > 0.001) app.tab = "health";
  app.firstTab = app.tab;
  const page = new Page(root, app, source);
  page.theme(app.isDark, false);
  page.useRoom();
  if (location.hash.length > 1) await url.decode(app, location.hash);
}

start().catch((e: Error) => {
  document.getElementById("app")!.replaceChildren(h("div", { class: "empty" }, h("b", null, "The page could not start"), h("div", null, e.message)));
});
