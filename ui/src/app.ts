// What the page shows: one state. It is changed here, and all that draw a part of it are notified.

import { arrange } from "./arrange";
import type { Hits, Meta, Opening, Row, Selected, Span } from "./types";
import { Names } from "./names";
import type { Source } from "./source";
import { Tiles } from "./tiles";

export type Part = "view" | "rows" | "selection" | "range" | "search" | "drawer" | "theme" | "hover" | "data" | "verdict";

const MIN_SPAN = 20; // ns

export class App {
  readonly tiles: Tiles;
  readonly names: Names;
  readonly rowOfLane: number[] = [];
  readonly children: number[][] = [];
  view: Span;
  selection: Selected | null = null;
  range: Span | null = null; // measured by a drag
  step: Span | null = null;
  hits: Hits | null = null;
  hitIx = -1;
  query = "";
  filter = "";
  tab = "verdict";
  isDrawerOpen = true;
  isDark = false;
  isCompact = false;
  collapsed = new Set<string>();
  pinned: string[] = [];
  deep = new Set<string>(); // rows of which all depths are shown
  history: Span[] = [];
  future: Span[] = [];
  marks: number[] = [];
  private readonly listeners: Record<string, (() => void)[]> = {};

  readonly meta: Meta;

  constructor(readonly source: Source, told: Meta, readonly report = 0, public opening?: Opening) {
    const { meta, pinned, collapsed } = arrange(told, opening);
    this.meta = meta;
    this.pinned = pinned;
    this.collapsed = collapsed;
    this.tiles = new Tiles(source, report, meta.lanes);
    this.names = new Names(source, report);
    this.tiles.onChange = () => this.changed("data");
    this.names.onChange = () => this.changed("data");
    meta.rows.forEach((row, ix) => {
      for (let l = 0; l < row.n_lanes; l++) this.rowOfLane[row.lane + l] = ix;
      if (row.parent >= 0) (this.children[row.parent] ??= []).push(ix);
    });
    this.view = this.first();
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

  /** The analysis has ended after the page was opened: show what it is about, unless somebody has moved already. */
  openOn(opening: Opening): void {
    const { from, to } = this.first();
    const isUntouched = this.view.from === from && this.view.to === to && !this.history.length && !this.selection;
    this.opening = opening;
    if (isUntouched) this.show(this.first(), false);
  }

  /** Ask again for the tiles of these rows: what they show has changed. */
  forget(which: (row: Row) => boolean): void {
    const lanes = new Set<number>();
    for (const row of this.meta.rows) if (which(row)) for (let l = 0; l < row.n_lanes; l++) lanes.add(row.lane + l);
    this.tiles.forget(lanes);
    this.changed("data");
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

  zoom(factor: number, at?: number): void {
    const { from, to } = this.view;
    const centre = at ?? (from + to) / 2;
    this.show({ from: centre - (centre - from) * factor, to: centre + (to - centre) * factor }, false);
  }

  pan(share: number): void {
    const d = (this.view.to - this.view.from) * share;
    this.show({ from: this.view.from + d, to: this.view.to + d }, false);
  }

  /** Zoom to a span, with a margin around it. */
  frame(span: Span): void {
    const air = Math.max((span.to - span.from) * 0.1, 5);
    this.show({ from: span.from - air, to: span.to + air });
  }

  /** Bring a moment into view without changing the zoom. */
  reveal(span: Span): void {
    const length = this.view.to - this.view.from;
    if (span.to - span.from > length) this.frame(span);
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

  select(selection: Selected | null): void {
    this.selection = selection;
    if (selection && this.tab !== "selection" && this.isDrawerOpen) this.tab = "selection";
    this.changed("selection", "drawer");
  }

  /** Ask what is at a moment of a lane and select it. */
  async selectAt(lane: number, t: number, slack = 0): Promise<Selected | null> {
    const found = await this.source.ask<Selected>("event", {
      lane, t: Math.max(0, Math.round(t)), slack: Math.round(slack) || undefined, f: this.report || undefined,
    });
    this.range = null;
    this.select(found);
    this.changed("range");
    return found;
  }

  setRange(range: Span | null): void {
    this.range = range;
    this.changed("range");
  }

  toggle(key: string): void {
    if (!this.collapsed.delete(key)) this.collapsed.add(key);
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
    this.query = query;
    this.hitIx = -1;
    if (!query) {
      this.hits = null;
      this.changed("search");
      return;
    }
    const regex = /^\/(.+)\/$/.exec(query);
    this.hits = await this.source.ask<Hits>("search", {
      q: regex ? regex[1] : query, regex: regex ? 1 : undefined, exact: isExact ? 1 : undefined,
      f: this.report || undefined,
    });
    // Steps that the program marked are shown as the steps that the answer is about.
    const steps = this.meta.rows.find((r) => r.kind === "step" && !r.is_hidden && this.pinned.includes(r.key));
    for (const hit of this.hits.hits) {
      const row = this.meta.rows[this.rowOfLane[hit[0]]];
      if (steps && row?.is_hidden && row.kind === "step") hit[0] = steps.lane;
    }
    this.changed("search");
  }

  /** Go to the next or previous hit, first to the one nearest to the view. */
  async goToHit(direction: number): Promise<void> {
    const hits = this.hits?.hits ?? [];
    if (!hits.length) return;
    if (this.hitIx < 0) {
      const at = hits.findIndex((hit) => hit[1] >= this.view.from);
      this.hitIx = at < 0 ? 0 : at;
    } else {
      this.hitIx = (this.hitIx + direction + hits.length) % hits.length;
    }
    const [lane, start, end] = hits[this.hitIx];
    this.openTo(this.rowOfLane[lane]);
    if (end - start > (this.view.to - this.view.from) * 2 || end - start < (this.view.to - this.view.from) / 2000) {
      const air = Math.max((end - start) * 4, 2000);
      this.show({ from: start - air, to: end + air });
    } else {
      this.reveal({ from: start, to: end });
    }
    this.changed("search");
    await this.selectAt(lane, (start + end) / 2);
  }
}
