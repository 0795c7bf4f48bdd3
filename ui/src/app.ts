// What the page shows: one state. It is changed here, and all that draw a part of it are notified.

import { arrange } from "./arrange";
import type { Hits, Meta, Opening, Path, Row, Selected, Span } from "./types";
import { Names } from "./names";
import type { Source } from "./source";
import { Tiles } from "./tiles";

export type Part = "view" | "rows" | "selection" | "range" | "search" | "drawer" | "theme" | "hover" | "data" | "verdict" | "listed" | "arranged";

const MIN_SPAN = 20; // ns
const SAME_MOVE_MS = 700;
const HITS_BACK = 1999; // a page has 2000

export class App {
  readonly tiles: Tiles;
  readonly names: Names;
  readonly rowOfLane: number[] = [];
  readonly children: number[][] = [];
  view: Span;
  selection: Selected | null = null;
  range: Span | null = null; // measured by a drag
  area: string[] = []; // keys of the rows that the drag went over
  step: Span | null = null;
  path: Path | null = null; // critical, of the selected step
  hits: Hits | null = null;
  hitIx = -1;
  query = "";
  filter = "";
  tab = "verdict";
  firstTab = "verdict"; // what the address need not tell
  isDrawerOpen = true;
  isDark = false;
  isCompact = false;
  collapsed = new Set<string>();
  pinned: string[] = [];
  roomy = new Set<string>(); // groups that are open because the screen is large: no choice of somebody
  deep = new Set<string>(); // rows of which all depths are shown
  history: Span[] = [];
  future: Span[] = [];
  marks: number[] = [];
  private movedAt = -Infinity;
  private isExact = false;
  private readonly listeners: Record<string, (() => void)[]> = {};

  readonly meta: Meta;
  atFirst: { pinned: string[]; collapsed: Set<string> } = { pinned: [], collapsed: new Set() }; // what the address need not tell

  constructor(readonly source: Source, told: Meta, readonly report = 0, public opening?: Opening) {
    this.meta = { ...told };
    this.tiles = new Tiles(source, report, told.lanes);
    this.names = new Names(source, report);
    this.tiles.onChange = () => this.changed("data");
    this.names.onChange = () => this.changed("data");
    this.arrange(told);
    this.view = this.first();
  }

  /** Put the rows in the order of what the page opens on. */
  private arrange(told: Meta): void {
    const { meta, pinned, collapsed } = arrange(told, this.opening);
    this.meta.rows = meta.rows;
    this.pinned = pinned;
    this.collapsed = collapsed;
    this.roomy.clear();
    this.atFirst = { pinned: [...pinned], collapsed: new Set(collapsed) };
    this.rowOfLane.length = this.children.length = 0;
    meta.rows.forEach((row, ix) => {
      for (let l = 0; l < row.n_lanes; l++) this.rowOfLane[row.lane + l] = ix;
      if (row.parent >= 0) (this.children[row.parent] ??= []).push(ix);
    });
  }

  /** Call `fn` when this part changes; returns a function that ends that. */
  on(part: Part, fn: () => void): () => void {
    (this.listeners[part] ??= []).push(fn);
    return () => { this.listeners[part] = this.listeners[part].filter((x) => x !== fn); };
  }

  changed(...parts: Part[]): void {
    for (const part of parts) for (const fn of this.listeners[part] ?? []) fn();
  }

  /** All of the recording, with a small margin. */
  whole(): Span {
    const length = Math.max(this.meta.to - this.meta.from, MIN_SPAN);
    return { from: this.meta.from - length * 0.005, to: this.meta.to + length * 0.005 };
  }

  /** Where the page opens: a few steady steps, or all of it. */
  first(): Span {
    const o = this.opening;
    if (!o || o.to <= o.from) return this.whole();
    const air = (o.to - o.from) * 0.03;
    return { from: Math.max(o.from - air, this.whole().from), to: Math.min(o.to + air, this.whole().to) };
  }

  /**
   * The analysis has ended after the page was opened: show what it is about. What somebody has changed stays: the
   * order of the rows, the view.
   */
  openOn(told: Meta, opening: Opening | undefined): void {
    const { from, to } = this.first();
    const isViewNew = this.view.from === from && this.view.to === to && !this.history.length && !this.selection;
    const { pinned, collapsed } = this.atFirst;
    const areRowsNew = this.pinned.join() === pinned.join() && [...this.collapsed, ...this.roomy].sort().join() === [...collapsed].sort().join();
    this.opening = opening ?? this.opening;
    if (areRowsNew) this.arrange(told);
    this.changed("rows");
    if (areRowsNew) this.changed("arranged");
    if (isViewNew) this.show(this.first(), false);
  }

  /** Ask again for the tiles of these rows: what they show has changed. */
  forget(which: (row: Row) => boolean): void {
    const lanes = new Set<number>();
    for (const row of this.meta.rows) if (which(row)) for (let l = 0; l < row.n_lanes; l++) lanes.add(row.lane + l);
    this.tiles.forget(lanes);
    this.changed("data");
  }

  /** A moment in ns as the commands and SQL say it; the page counts from the first event. */
  inFile(t: number): number {
    return Math.max(0, Math.round(t + (this.meta.origin ?? 0)));
  }

  isGroup(ix: number): boolean {
    return (this.children[ix]?.length ?? 0) > 0;
  }

  rowByKey(key: string): number {
    return this.meta.rows.findIndex((r) => r.key === key);
  }

  /** Show this time; `keep` puts where we were on the list that Backspace goes back through. */
  show(span: Span, keep = true): void {
    const whole = this.whole();
    let length = Math.min(Math.max(span.to - span.from, MIN_SPAN), whole.to - whole.from);
    let from = span.from;
    if (span.to - span.from < MIN_SPAN) from = (span.from + span.to) / 2 - length / 2;
    // The length first, then the place: else the view creeps at the ends.
    from = Math.min(Math.max(from, whole.from), whole.to - length);
    length = Math.round(length * 1000) / 1000;
    if (keep) {
      this.history.push(this.view);
      if (this.history.length > 200) this.history.shift();
      this.future = [];
    }
    this.view = { from, to: from + length };
    this.changed("view");
  }

  back(): void {
    const span = this.history.pop();
    if (!span) return;
    this.future.push(this.view);
    this.show(span, false);
  }

  forth(): void {
    const span = this.future.pop();
    if (!span) return;
    this.history.push(this.view);
    this.show(span, false);
  }

  /** Turns of a wheel and keys that repeat are one move: Backspace takes all of them back. */
  private remember(): void {
    const now = performance.now();
    if (now - this.movedAt > SAME_MOVE_MS) {
      this.history.push(this.view);
      this.future = [];
    }
    this.movedAt = now;
  }

  zoom(factor: number, at?: number): void {
    const { from, to } = this.view;
    const centre = at ?? (from + to) / 2;
    this.remember();
    this.show({ from: centre - (centre - from) * factor, to: centre + (to - centre) * factor }, false);
  }

  pan(share: number): void {
    const d = (this.view.to - this.view.from) * share;
    this.remember();
    this.show({ from: this.view.from + d, to: this.view.to + d }, false);
  }

  /** A drag moves the view: what was shown before it. */
  startDrag(): void {
    this.movedAt = -Infinity;
    this.remember();
  }

  /** Zoom to a span, with a margin around it. */
  frame(span: Span): void {
    const air = Math.max((span.to - span.from) * 0.1, 5);
    this.show({ from: span.from - air, to: span.to + air });
  }

  /** Bring a moment into view without changing the zoom, unless it is too long for it and that matters. */
  reveal(span: Span, keepZoom = false): void {
    const length = this.view.to - this.view.from;
    if (span.to - span.from > length && !keepZoom) this.frame(span);
    else if (span.to - span.from > length) {
      if (span.from < this.view.from || span.from > this.view.to) this.show({ from: span.from - length * 0.1, to: span.from + length * 0.9 });
    }
    else if (span.from < this.view.from || span.to > this.view.to) {
      const centre = (span.from + span.to) / 2;
      this.show({ from: centre - length / 2, to: centre + length / 2 });
    }
  }

  /** Open all groups above a row. */
  openTo(ix: number): void {
    let isChanged = false;
    for (let p = this.meta.rows[ix]?.parent ?? -1; p >= 0; p = this.meta.rows[p].parent) {
      isChanged = this.collapsed.delete(this.meta.rows[p].key) || isChanged;
    }
    if (isChanged) this.changed("rows");
  }

  select(selection: Selected | null, keepTab = false): void {
    this.selection = selection;
    this.path = null;
    if (selection && !keepTab && this.tab !== "selection" && this.isDrawerOpen) this.tab = "selection";
    this.changed("selection", "drawer");
  }

  /** Ask what is at a moment of a lane and select it. */
  async selectAt(lane: number, t: number, slack = 0, keepTab = false): Promise<Selected | null> {
    const found = await this.source.ask<Selected>("event", {
      lane, t: Math.max(0, Math.round(t)), slack: Math.round(slack) || undefined, f: this.report || undefined,
    });
    return this.take(found, keepTab);
  }

  /** Select what the server told of; a panel that stays keeps the range that it may show. */
  take(found: Selected, keepTab = false): Selected {
    if (!keepTab) {
      this.range = null;
      this.area = [];
    }
    this.select(found, keepTab);
    this.changed("range");
    return found;
  }

  setRange(range: Span | null, area: string[] = []): void {
    this.range = range;
    this.area = range ? area : [];
    this.changed("range");
  }

  toggle(key: string): void {
    if (!this.collapsed.delete(key)) this.collapsed.add(key);
    this.roomy.delete(key);
    this.changed("rows");
  }

  pin(key: string): void {
    this.pinned = this.pinned.includes(key) ? this.pinned.filter((k) => k !== key) : [...this.pinned, key];
    this.changed("rows");
  }

  openTab(id: string): void {
    this.tab = id;
    this.isDrawerOpen = true;
    this.changed("drawer");
  }

  async search(query: string, isExact = false): Promise<void> {
    // As much of a long name as the server takes: 2048 bytes, and characters of other scripts have up to three.
    this.query = isExact ? query.slice(0, /^[ -~]*$/.test(query) ? 2000 : 680) : query;
    this.hitIx = -1;
    if (!query) {
      this.query = "";
      this.hits = null;
      this.changed("search");
      return;
    }
    this.isExact = isExact;
    this.hits = await this.askHits({ at: Math.max(0, Math.round(this.searchFrom())) });
    this.changed("search");
  }

  /** Where to look first: in what is shown, but not in start-up if that is only shown because all of the run is. */
  private searchFrom(): number {
    const steady = this.opening?.steady_from ?? 0;
    return this.view.to < steady ? this.view.from : Math.max(this.view.from, steady);
  }

  private async askHits(which: { at?: number; from?: number }): Promise<Hits> {
    const regex = /^\/(.+)\/$/.exec(this.query);
    const hits = await this.source.ask<Hits>("search", {
      q: regex ? regex[1] : this.query, regex: regex ? 1 : undefined, exact: this.isExact ? 1 : undefined, ...which,
      f: this.report || undefined,
    });
    // Steps that the program marked are shown as the steps that the answer is about.
    const steps = this.meta.rows.find((r) => r.kind === "step" && !r.is_hidden && this.pinned.includes(r.key));
    for (const hit of hits.hits) {
      const row = this.meta.rows[this.rowOfLane[hit[0]]];
      if (steps && row?.is_hidden && row.kind === "step") hit[0] = steps.lane;
    }
    return hits;
  }

  /** The event of this name that starts at a moment; null if there is none. */
  async findAt(name: string, start: number): Promise<Hits["hits"][0] | null> {
    const hits = await this.source.ask<Hits>("search", { q: name.slice(0, 680), exact: 1, at: Math.max(0, Math.round(start)), f: this.report || undefined }).catch(() => null);
    return hits?.hits.find((hit) => hit[1] === start) ?? null;
  }

  /** Go to the next or previous hit, first to the one in the view or after it. The zoom stays. */
  async goToHit(direction: number, keepTab = false): Promise<void> {
    if (!this.hits?.n) return;
    this.hitIx = this.hitIx < 0 ? this.hits.here : (this.hitIx + direction + this.hits.n) % this.hits.n;
    let at = this.hitIx - this.hits.first;
    if (at < 0 || at >= this.hits.hits.length) {
      const wanted = this.hitIx;
      // The page that begins with it, or ends with it when going back.
      const from = direction > 0 ? wanted : Math.max(0, wanted - HITS_BACK);
      this.hits = await this.askHits({ from });
      at = wanted - this.hits.first;
    }
    const hit = this.hits.hits[at];
    if (!hit) return;
    const [lane, start, end] = hit;
    this.openTo(this.rowOfLane[lane]);
    this.reveal({ from: start, to: end }, true);
    this.changed("search");
    await this.selectAt(lane, (start + end) / 2, 0, keepTab);
  }
}
