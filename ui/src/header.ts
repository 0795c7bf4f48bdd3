// The two lines on top: which recording this is, and the verdict.

import type { App } from "./app";
import { h, s } from "./dom";
import * as format from "./format";
import { jobOf, sentence } from "./job";
import { type Finding, type Verdict, elsewhere, progress, sharesBar, verdictOf } from "./panels/verdict";
import { IDLE_FAMILIES, T } from "./theme";

export interface HeaderActions {
  theme: () => void;
  help: () => void;
  share: () => void;
}

export class Header {
  readonly el: HTMLElement;
  readonly search: HTMLInputElement;
  private readonly count = h("span", { class: "hits" });
  private readonly line = h("div", { class: "verdict-line" });
  private readonly themeButton: HTMLButtonElement;

  constructor(private readonly app: App, actions: HeaderActions) {
    const { meta } = app;
    this.search = h("input", { class: "search", placeholder: "Search names, or /regex/", "aria-label": "Search", value: app.query });
    this.search.addEventListener("keydown", (e) => this.key(e));
    this.themeButton = h("button", { onclick: actions.theme }, "Dark");
    const facts = [devices(app), stepCount(app), format.duration(meta.to - meta.from), `${format.count(meta.n_events)} events`];
    this.el = h("header", null,
      h("div", { class: "top" }, logo(), h("h1", { class: "file", title: meta.name }, meta.name),
        meta.is_simulated ? h("span", { class: "tag" }, "simulated device") : null, meta.is_imported ? h("span", { class: "tag" }, "imported") : null,
        meta.is_sealed ? null : h("span", { class: "tag" }, "cut short"), meta.notice ? h("span", { class: "tag", title: meta.notice }, meta.notice) : null,
        h("span", { class: "facts" }, facts.filter(Boolean).join(" · ")),
        meta.reports.length > 1 ? this.reports() : null,
        h("div", { class: "search-box" }, this.search, this.count, h("kbd", null, "/")),
        h("button", { class: "share", onclick: actions.share }, "Share view"), this.themeButton,
        h("button", { onclick: actions.help, "aria-label": "Keys", title: "Keys" }, "?")),
      this.line);
    app.on("search", () => this.showCount());
    app.on("theme", () => { this.themeButton.textContent = app.isDark ? "Light" : "Dark"; void this.drawLine(); });
    app.on("verdict", () => void this.drawLine());
    this.showCount();
    void this.drawLine();
  }

  private reports(): HTMLElement {
    const select = h("select", { "aria-label": "Report", onchange: () => { location.hash = `f=${select.value}`; location.reload(); } },
      this.app.meta.reports.map((name, ix) => h("option", { value: ix, selected: ix === this.app.report }, name)));
    return select;
  }

  private key(e: KeyboardEvent): void {
    if (e.key === "Escape") {
      this.search.value = "";
      void this.app.search("");
      this.search.blur();
    }
    if (e.key !== "Enter") return;
    const query = this.search.value.trim();
    if (query !== this.app.query || !this.app.hits) {
      this.count.textContent = "…";
      void this.app.search(query).then(() => this.app.goToHit(1)).catch((error: Error) => {
        this.count.textContent = error.message;
      });
    } else {
      void this.app.goToHit(e.shiftKey ? -1 : 1);
    }
  }

  private showCount(): void {
    const { hits, hitIx } = this.app;
    this.search.value = this.app.query || this.search.value;
    if (!hits) this.count.textContent = "";
    else if (!hits.total) this.count.textContent = "no hits";
    else this.count.textContent = hitIx >= 0 ? `${format.count(hitIx + 1)} of ${format.count(hits.total)}` : `${format.count(hits.total)} hits`;
  }

  /** The sentence, where its time goes, and what a fix would bring. */
  private async drawLine(): Promise<void> {
    const { app } = this;
    try {
      if (app.meta.is_job) {
        const answer = await jobOf(app);
        const text = answer.job ? sentence(answer.job) : answer.state === "running" ? `Comparing ${app.meta.reports.length} ranks` : answer.detail ?? "";
        this.line.classList.toggle("unsure", !answer.job?.first);
        this.line.replaceChildren(h("button", { class: "sentence", title: text, onclick: () => app.openTab("ranks") }, h("span", null, text)));
        return;
      }
      const v = await verdictOf(app);
      const legend = legendOf(v);
      this.line.classList.toggle("unsure", v.state !== "known");
      // Counters alone have no timeline: the panel about them is the page.
      if (v.state === "profiled" && !document.documentElement.classList.contains("only-counters")) {
        document.documentElement.classList.add("only-counters");
        if (app.tab === "verdict") app.openTab("kernel");
      }
      this.line.replaceChildren(
        h("button", { class: "sentence", title: v.sentence, onclick: () => app.openTab(v.state === "profiled" ? "kernel" : "verdict") }, h("span", null, format.prose(v.sentence))),
        v.state === "running" ? progress(v.done ?? 0) : "",
        v.families.some((x) => x > 0) ? h("div", { class: "bar-small" }, sharesBar(v, Math.max(0, 1 - v.families.reduce((a, b) => a + b, 0)))) : "",
        h("div", { class: "legend" }, legend.length ? h("span", null, "of each step:") : null, legend.map((p) => h("span", { title: p.title }, h("i", { class: `swatch${p.family === 7 ? " hatched" : ""}`, style: { background: T.idle[p.family] } }), `${p.name} ${format.percent(p.share)}`))),
        gain(v) ? h("button", { class: "gain", onclick: () => app.openTab("verdict") }, gain(v)) : "");
    } catch {
      this.line.classList.add("unsure");
      this.line.replaceChildren(h("div", { class: "sentence" }, "Cannot tell what the device waits for."));
    }
  }
}

/** Causes by their names, as the panel below has them; then what is left, by its colour. */
function legendOf(v: Verdict): { name: string; title: string; share: number; family: number }[] {
  // What the device computes is no part of the idle time.
  const causes = v.findings.filter((f) => f.share <= v.families[f.family] + 0.01).map((f) => ({ name: f.id, title: f.title, share: f.share, family: f.family }));
  const rest = v.families.map((share, family) => {
    const left = share - causes.filter((c) => c.family === family).reduce((sum, c) => sum + c.share, 0);
    return { name: causes.some((c) => c.family === family) ? `other ${IDLE_FAMILIES[family]}` : IDLE_FAMILIES[family], title: "", share: left, family };
  });
  return [...causes, ...rest].filter((p) => p.share > 0.005).sort((a, b) => b.share - a.share).slice(0, 5);
}

/** What a fix would bring; of both causes, where the sentence names two. */
function gain(v: Verdict): string {
  const other = elsewhere(v);
  const first = v.findings[v.first];
  const ratio = (f: Finding): string => `${f.prediction!.ratio.toFixed(2)}×${f.is_ceiling ? " at best" : ""}`;
  const worth = [...new Set(other ? [other.first, other.most] : [first])].filter((f) => f?.prediction && f.prediction.ratio > 1.005);
  if (!worth.length) return "";
  return other ? `fix: ${worth.map((f) => `${ratio(f)} by ${f.id}`).join(", ")}` : `fix first cause: ${ratio(first)}`;
}

/** As many as the row of steps shows. */
function stepCount(app: App): string {
  const n = app.meta.rows.find((r) => r.kind === "step" && app.pinned.includes(r.key))?.n ?? app.meta.n_steps;
  return n ? `${format.count(n)} ${n === 1 ? "step" : "steps"}` : "";
}

function devices(app: App): string {
  const names = new Map<string, Set<string>>();
  for (const d of app.meta.devices) {
    const name = d.name.replace(/^NVIDIA /, "") || "GPU";
    if (!names.has(name)) names.set(name, new Set());
    names.get(name)!.add(d.uuid || String(d.id));
  }
  return [...names].map(([name, ids]) => (ids.size > 1 ? `${ids.size} × ${name}` : name)).join(", ");
}

function logo(): Element {
  return h("span", { class: "logo" }, s("svg", { width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true" },
    s("rect", { x: 0, y: 2, width: 6, height: 8, fill: "currentColor" }), s("rect", { x: 9, y: 5, width: 8, height: 3, fill: "#E28400" }),
    s("rect", { x: 20, y: 2, width: 6, height: 8, fill: "currentColor" })), "lull");
}
