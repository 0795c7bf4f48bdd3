// The rows: titles in the DOM, everything else on one canvas that is painted once a frame, and only when
// something changed.

import type { App } from "./app";
import { deviceUse, stepsWaiting } from "./devices";
import { h } from "./dom";
import * as format from "./format";
import { FONT, Labels } from "./labels";
import { type Layout, type Line, type Placed, layOut } from "./layout";
import { type Box, Painter, firstAfter } from "./paint";
import { roving, stopAt } from "./roving";
import { T, inkOn, palette } from "./theme";
import { levelFor, tileWidth } from "./tiles";
import type { Span } from "./types";

const LARGE = 700; // pixels for rows: more than most screens have
export const RULER = 26;
const TITLE = "[data-key]";

type Span2 = { start: number; end: number };

export interface Curve {
  at: Float64Array;
  min: Float32Array;
  max: Float32Array;
  last: Float32Array;
}

export interface Hit {
  placed: Placed;
  line: Line | null;
}

export interface Found {
  lane: number;
  start: number;
  end: number;
  name: number;
  count: number;
  busy: number;
  cls: number;
  isExact: boolean; // one event, both edges known
}

export class Timeline {
  readonly el: HTMLElement;
  readonly canvas = h("canvas", { class: "rows", tabindex: 0, role: "application" });
  layout: Layout;
  scrollY = 0;
  pointer: { x: number; y: number } | null = null;
  isFull = false; // all that is in view has been drawn from its own tiles
  isDirty = true; // something changed since it was drawn
  frameTimes: number[] = [];
  nRecords = 0;
  nLabels = 0;
  /** Told of a right click on the title of a row. */
  onMenu: (p: Placed, x: number, y: number) => void = () => undefined;
  private readonly ctx: CanvasRenderingContext2D;
  private readonly titles = h("div", { class: "titles-scroll", role: "tree", "aria-label": "Rows" });
  private readonly clip = h("div", { class: "titles-clip" }, this.titles);
  private readonly pinnedTitles = h("div", { class: "titles-pinned", role: "tree", "aria-label": "Pinned rows" });
  private readonly thumb = h("div", { class: "thumb" });
  private readonly rowCount = h("span", { class: "row-count", "aria-live": "polite" }, "Rows");
  private image: ImageData | null = null;
  private painter: Painter | null = null;
  private areTitlesDirty = true;
  private isRestoring = false; // the focus, of titles that were made anew
  private ratio = 1;
  private readonly curves = new Map<number, Curve | null>();
  private readonly labels: Labels;

  constructor(private readonly app: App) {
    this.ctx = this.canvas.getContext("2d", { alpha: false })!;
    this.labels = new Labels(this.ctx);
    this.layout = layOut(app);
    const filter = h("input", {
      class: "filter", placeholder: "filter rows", "aria-label": "Filter rows",
      oninput: () => {
        app.filter = filter.value.trim();
        app.changed("rows");
      },
      onkeydown: (e: KeyboardEvent) => {
        if (e.key !== "Escape") return;
        e.stopPropagation();
        app.filter = filter.value = "";
        app.changed("rows");
        this.canvas.focus({ preventScroll: true });
      },
    });
    this.el = h("main", { class: "timeline" },
      h("div", { class: "titles" }, h("div", { class: "corner" }, this.rowCount, filter),
        this.pinnedTitles, this.clip),
      h("div", { class: "canvas-box" }, this.canvas, h("div", { class: "bar" }, this.thumb)));
    app.on("view", () => this.touch());
    app.on("data", () => this.touch());
    app.on("selection", () => this.touch());
    app.on("range", () => this.touch());
    app.on("search", () => this.touch());
    app.on("hover", () => this.touch());
    app.on("theme", () => this.touch());
    app.on("arranged", () => this.useRoom());
    app.on("rows", () => {
      if (document.activeElement !== filter) filter.value = app.filter;
      this.relayout();
    });
    for (const box of [this.pinnedTitles, this.titles]) roving(box, TITLE, ["ArrowUp", "ArrowDown"], (el, key) => this.titleKey(el, key));
    this.titles.addEventListener("focusin", (e) => this.followFocus(e));
    // What the browser finds on the page, or a reader of the screen goes to, it scrolls into view: the rows follow.
    this.clip.addEventListener("scroll", () => {
      const by = this.clip.scrollTop;
      this.clip.scrollTop = 0;
      if (by) this.scrollTo(this.scrollY + by);
    });
    new ResizeObserver(() => this.touch()).observe(this.canvas);
    this.dragThumb();
    const loop = (): void => {
      requestAnimationFrame(loop);
      if (this.isDirty) this.draw();
    };
    requestAnimationFrame(loop);
  }

  touch(): void {
    this.isDirty = true;
  }

  /** On large screens, open what is closed at first as long as there is room; idle threads never. */
  useRoom(): void {
    const { app } = this;
    const room = this.height - this.top;
    if (room < LARGE) return;
    // Processes, threads and metrics; then what is inside of these.
    for (const level of [0, 1]) {
      for (const { row } of layOut(app).rows.filter((p) => p.isGroup && !p.isOpen && p.level === level && p.row.kind !== "fold")) {
        app.collapsed.delete(row.key);
        if (layOut(app).height > room) app.collapsed.add(row.key);
        else app.roomy.add(row.key);
      }
    }
    this.relayout();
  }

  relayout(): void {
    this.layout = layOut(this.app);
    this.rowCount.textContent = this.app.filter ? `${this.layout.nLeft} of ${this.layout.nRows}` : "Rows";
    this.areTitlesDirty = true;
    this.scrollTo(this.scrollY);
    this.touch();
  }

  get width(): number {
    return this.canvas.clientWidth;
  }

  get height(): number {
    return this.canvas.clientHeight;
  }

  get nsPerPixel(): number {
    return (this.app.view.to - this.app.view.from) / Math.max(1, this.width);
  }

  timeAt(x: number): number {
    return this.app.view.from + x * this.nsPerPixel;
  }

  xOf(t: number): number {
    return (t - this.app.view.from) / this.nsPerPixel;
  }

  private get top(): number {
    return RULER + this.layout.pinnedHeight;
  }

  scrollTo(y: number): void {
    const max = Math.max(0, this.layout.height - (this.height - this.top));
    this.scrollY = Math.max(0, Math.min(max, y));
    this.areTitlesDirty = true;
    this.touch();
  }

  /** Scroll until the row is in view. */
  showRow(ix: number): void {
    const placed = this.layout.rows.find((p) => p.ix === ix);
    if (!placed) return;
    const room = this.height - this.top;
    if (placed.y < this.scrollY) this.scrollTo(placed.y);
    else if (placed.y + placed.h > this.scrollY + room) this.scrollTo(placed.y + placed.h - room);
  }

  /** Rows in view with their place on the canvas. */
  private *visible(): Generator<{ placed: Placed; y: number }> {
    for (const placed of this.layout.pinned) yield { placed, y: RULER + placed.y };
    for (const placed of this.layout.rows) {
      const y = this.top + placed.y - this.scrollY;
      if (y + placed.h > this.top && y < this.height) yield { placed, y };
    }
  }

  /** What is at a place of the canvas. */
  at(y: number): Hit | null {
    for (const { placed, y: top } of this.visible()) {
      if (y < top || y >= top + placed.h || (!placed.isPinned && y < this.top)) continue;
      const line = placed.lines.find((l) => y >= top + l.y - 1 && y < top + l.y + l.h + 1) ??
        (placed.lines.length === 1 ? placed.lines[0] : null);
      return { placed, line };
    }
    return null;
  }

  /** Place of a lane on the canvas, if it is in view. */
  placeOf(lane: number): { y: number; h: number; top: number } | null {
    for (const { placed, y } of this.visible()) {
      const line = placed.lines.find((l) => l.lane === lane);
      if (line) return { y: y + line.y, h: line.h, top: placed.isPinned ? RULER : this.top };
    }
    return null;
  }

  /** The record of a lane at a time, as it is drawn. */
  record(lane: number, t: number, slack = 0): Found | null {
    const level = levelFor(this.nsPerPixel / this.ratio);
    const tile = this.app.tiles.nearest(lane, level, Math.floor(t / tileWidth(level)));
    if (!tile) return null;
    const bucket = 2 ** tile.level;
    const origin = tile.tile * tileWidth(tile.level);
    let best: Found | null = null;
    for (let i = firstAfter(tile, (t - slack - origin) / bucket); i < tile.n; i++) {
      const start = origin + tile.x0[i] * bucket;
      const end = origin + tile.x1[i] * bucket;
      if (start > t + slack) break;
      if (end < t - slack) continue;
      const isInside = start <= t && end >= t;
      const found = {
        lane, start, end, name: tile.name[i], count: tile.count[i], busy: tile.busy[i] / 255, cls: tile.cls[i],
        isExact: tile.count[i] === 1 && !tile.goesOn[i],
      };
      if (isInside) return found;
      best ??= found;
    }
    return best;
  }

  /** The edge of something near a place, within six pixels: what a drag snaps to. */
  snap(x: number, lane: number | null): number {
    const t = this.timeAt(x);
    if (lane === null) return t;
    const reach = 6 * this.nsPerPixel;
    let best = t;
    let distance = reach;
    for (const probe of [t, t - reach, t + reach]) {
      const found = this.record(lane, probe, reach);
      for (const edge of found ? [found.start, found.end] : []) {
        if (Math.abs(edge - t) < distance) {
          distance = Math.abs(edge - t);
          best = edge;
        }
      }
    }
    return best;
  }

  // ---- drawing ----

  private resize(): boolean {
    const ratio = window.devicePixelRatio || 1;
    const w = Math.round(this.width * ratio);
    const hh = Math.round(this.height * ratio);
    if (!w || !hh) return false;
    if (!this.image || this.canvas.width !== w || this.canvas.height !== hh || this.ratio !== ratio) {
      this.canvas.width = w;
      this.canvas.height = hh;
      this.ratio = ratio;
      this.image = new ImageData(w, hh);
      this.painter = new Painter(w, hh, this.image.data.buffer);
      this.scrollTo(this.scrollY);
    }
    return true;
  }

  private draw(): void {
    const began = performance.now();
    this.isDirty = false;
    if (!this.resize()) return;
    const { app, ctx, ratio } = this;
    const painter = this.painter!;
    const nsPerPixel = this.nsPerPixel / ratio;
    const level = levelFor(nsPerPixel);
    const step = tickStep(this.nsPerPixel);
    const boxes: Box[] = [];
    const lanes: number[] = [];
    painter.clear(T.bg, T.line2, this.ticks(step).map((t) => this.xOf(t) * ratio));
    const rows = [...this.visible()];
    let nPinned = 0;
    for (const { placed, y } of rows) {
      const top = (placed.isPinned ? RULER : this.top) * ratio;
      if (placed.isGroup) this.band(y, placed.h, top / ratio);
      for (const line of placed.lines) {
        lanes.push(line.lane);
        painter.lane(app.tiles.pieces(line.lane, level, app.view), app.view.from, nsPerPixel,
          Math.round((y + line.y) * ratio), Math.round(line.h * ratio), top, styleOf(app, line.lane, placed.isGroup), boxes);
      }
      if (placed.isPinned) nPinned = boxes.length;
    }
    this.nRecords = painter.nRecords;
    painter.rect(0, 0, painter.width, RULER * ratio, T.bg1);
    ctx.putImageData(this.image!, 0, 0);
    ctx.save();
    ctx.scale(ratio, ratio);
    this.drawOver(rows, boxes, nPinned, step);
    ctx.restore();
    this.drawTitles();
    this.fetch(lanes, level);
    if (this.frameTimes.length < 100000) this.frameTimes.push(performance.now() - began);
  }

  private band(y: number, height: number, top: number): void {
    const at = Math.max(y, top);
    this.painter!.rect(0, at * this.ratio, this.painter!.width, (y + height - at) * this.ratio, T.bg1);
  }

  /** First the tiles that the view lacks; then, when idle, those it may need next. */
  private fetch(lanes: number[], level: number): void {
    const { app } = this;
    const { from, to } = app.view;
    const length = to - from;
    app.tiles.cancelOutside(level, from - length, to + length);
    const isAsked = app.tiles.want(lanes, level, Math.max(0, from), to);
    if (isAsked && !app.tiles.isBusy) {
      if (!this.isFull) {
        this.isFull = true;
        performance.mark("lull:full");
      }
      app.tiles.want(lanes, level, Math.max(0, from - length / 2), to + length / 2);
    } else if (!isAsked) {
      this.isFull = false;
    }
  }

  private drawOver(rows: { placed: Placed; y: number }[], boxes: Box[], nPinned: number, step: number): void {
    const { ctx } = this;
    ctx.textBaseline = "middle";
    for (const { placed, y } of rows) {
      if (placed.row.curve >= 0) this.drawCurve(placed, y);
      if (!placed.isPinned && !placed.isGroup) continue;
      const at = Math.max(y + placed.h, this.top);
      if (placed.isGroup || placed === this.layout.pinned[this.layout.pinned.length - 1]) {
        ctx.fillStyle = T.line;
        ctx.fillRect(0, at - 1, this.width, 1);
      }
    }
    this.nLabels = this.labels.draw(boxes.slice(0, nPinned), this.app.names, this.ratio, this.width);
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, this.top, this.width, this.height);
    ctx.clip();
    this.nLabels += this.labels.draw(boxes.slice(nPinned), this.app.names, this.ratio, this.width);
    ctx.restore();
    this.drawHits();
    this.drawSelection();
    this.drawRange();
    this.drawPath();
    this.drawArrows();
    this.drawRuler(step);
    this.drawPointer();
  }

  private drawCurve(placed: Placed, y: number): void {
    const curve = this.curveOf(placed.row.curve);
    if (!curve || !curve.at.length) return;
    const { ctx, app } = this;
    const top = Math.max(y + 3, placed.isPinned ? RULER : this.top);
    const bottom = y + placed.h - 3;
    const height = bottom - (y + 3);
    const max = placed.row.top ?? placed.row.max ?? 0;
    if (max <= 0 || bottom <= top) return;
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, top, this.width, bottom - top + 1);
    ctx.clip();
    ctx.beginPath();
    let first = upper(curve.at, app.view.from) - 1;
    first = Math.max(0, first);
    const yOf = (v: number): number => bottom - (v / max) * height;
    let x = this.xOf(curve.at[first]);
    ctx.moveTo(x, yOf(curve.last[first]));
    for (let i = first + 1; i < curve.at.length; i++) {
      x = this.xOf(curve.at[i]);
      ctx.lineTo(x, yOf(curve.last[i - 1]));
      ctx.lineTo(x, yOf(curve.max[i]));
      ctx.lineTo(x, yOf(curve.last[i]));
      if (x > this.width) break;
    }
    ctx.lineTo(Math.max(x, 0), yOf(curve.last[curve.at.length - 1]));
    ctx.strokeStyle = T.curve;
    ctx.lineWidth = 1;
    ctx.stroke();
    ctx.lineTo(x, bottom);
    ctx.lineTo(this.xOf(curve.at[first]), bottom);
    ctx.globalAlpha = 0.18;
    ctx.fillStyle = T.curve;
    ctx.fill();
    ctx.restore();
  }

  private curveOf(ix: number): Curve | null {
    const known = this.curves.get(ix);
    if (known !== undefined) return known;
    this.curves.set(ix, null);
    void this.app.source.bytes("curve", { c: ix, f: this.app.report || undefined }).then((buffer) => {
      this.curves.set(ix, decodeCurve(buffer));
      this.touch();
    }).catch(() => undefined);
    return null;
  }

  /** The value of a curve at a time. */
  curveAt(ix: number, t: number): number | null {
    const curve = this.curves.get(ix);
    if (!curve) return null;
    const i = upper(curve.at, t) - 1;
    return i >= 0 ? curve.last[i] : null;
  }

  private drawHits(): void {
    const { ctx, app } = this;
    if (!app.hits) return;
    ctx.fillStyle = T.accent;
    for (const [lane, start, end] of app.hits.hits) {
      if (end < app.view.from || start > app.view.to) continue;
      const at = this.placeOf(lane);
      if (!at) continue;
      const x = this.xOf(start);
      ctx.fillRect(x, at.y + at.h - 2, Math.max(3, (end - start) / this.nsPerPixel), 2);
    }
  }

  private drawSelection(): void {
    const { ctx, app } = this;
    const s = app.selection;
    if (!s) return;
    const x0 = this.xOf(s.start);
    const x1 = this.xOf(s.end);
    const isGap = s.type === "gap" || app.meta.rows[app.rowOfLane[s.lane]]?.kind === "idle";
    if (isGap && x1 - x0 > 3) {
      ctx.globalAlpha = app.isDark ? 0.1 : 0.07;
      ctx.fillStyle = T.accent;
      ctx.fillRect(x0, RULER, x1 - x0, this.height - RULER);
      ctx.globalAlpha = 1;
      ctx.fillRect(x0, RULER, 1, this.height - RULER);
      ctx.fillRect(x1, RULER, 1, this.height - RULER);
    }
    const at = this.placeOf(s.lane);
    if (!at) return;
    ctx.strokeStyle = T.accent;
    ctx.lineWidth = 2;
    const left = Math.max(-4, x0);
    const right = Math.min(this.width + 4, x1);
    if (right >= left) ctx.strokeRect(left, at.y, Math.max(2, right - left), at.h);
  }

  private drawRange(): void {
    const { ctx, app } = this;
    const range = app.range;
    if (!range) return;
    const x0 = this.xOf(range.from);
    const x1 = this.xOf(range.to);
    ctx.globalAlpha = app.isDark ? 0.1 : 0.07;
    ctx.fillStyle = T.accent;
    ctx.fillRect(x0, RULER, x1 - x0, this.height);
    // The rows that the drag went over stand out.
    for (const { placed, y } of this.visible()) if (app.area.includes(placed.row.key)) ctx.fillRect(x0, y, x1 - x0, placed.h);
    ctx.globalAlpha = 1;
    ctx.fillRect(x0, RULER, 1, this.height);
    ctx.fillRect(x1, RULER, 1, this.height);
  }

  /** Keys of the rows with events between two heights of the canvas; of groups that are open, what is in them. */
  rowsBetween(y0: number, y1: number): string[] {
    const [top, bottom] = [Math.min(y0, y1), Math.max(y0, y1)];
    const keys = [...this.visible()].filter(({ placed, y }) => y < bottom && y + placed.h > top && placed.lines.length > 0 && placed.row.curve < 0 && !(placed.isGroup && placed.isOpen));
    return [...new Set(keys.map(({ placed }) => placed.row.key))].slice(0, 64);
  }

  /** From cause to effect: from a call to its work; from the end of work, or of another thread's action, to the end of the wait for it. */
  /** The critical path: a band below what is on it, and lines where it changes rows. */
  private drawPath(): void {
    const { ctx, app } = this;
    let last: { x: number; y: number } | null = null;
    ctx.fillStyle = T.path;
    for (const [kind, lane, start, end] of app.path?.pieces ?? []) {
      const at = this.placeOf(lane);
      const [x0, x1] = [this.xOf(start), this.xOf(end)];
      if (!at || x1 < 0 || x0 > this.width) {
        last = null;
        continue;
      }
      const y = at.y + at.h - 1;
      ctx.globalAlpha = kind === "work" || kind === "thread" ? 1 : 0.5; // what only waits is pale
      ctx.fillRect(x0, y - 1, Math.max(1, x1 - x0), 3);
      ctx.globalAlpha = 1;
      if (last && Math.abs(last.y - y) > 2) ctx.fillRect(x0 - 0.5, Math.min(y, last.y), 1.5, Math.abs(y - last.y));
      last = { x: x1, y };
    }
  }

  private drawArrows(): void {
    const { ctx, app } = this;
    const s = app.selection;
    if (!s?.links?.length) return;
    ctx.strokeStyle = T.text;
    ctx.fillStyle = T.text;
    ctx.lineWidth = 1.5;
    const next = s.links.find((l) => l.rel === "next");
    for (const link of s.links) {
      // The work that ended an idle time was launched by its own call, not by the idle time.
      const other = link.rel === "call" && next ? next : s;
      const from = this.placeOf(other.lane);
      const to = this.placeOf(link.lane);
      if (!from || !to) continue;
      const mid = (e: Span2): number => this.xOf((e.start + e.end) / 2);
      const ends = (e: Span2): number => this.xOf(e.end);
      const starts = (e: Span2): number => this.xOf(e.start);
      const [a, b] = {
        call: [{ ...to, x: mid(link) }, { ...from, x: starts(other) }],
        work: [{ ...from, x: mid(s) }, { ...to, x: starts(link) }],
        awaited: [{ ...to, x: ends(link) }, { ...from, x: ends(s) }],
        producer: [{ ...to, x: ends(link) }, { ...from, x: ends(s) }],
        waiter: [{ ...from, x: ends(s) }, { ...to, x: ends(link) }],
        next: [{ ...from, x: ends(s) }, { ...to, x: starts(link) }],
      }[link.rel];
      if ((a.x < 0 && b.x < 0) || (a.x > this.width && b.x > this.width)) continue;
      const ay = a.y + a.h / 2;
      const by = b.y + b.h / 2;
      this.drawArrow(a.x, ay, b.x, by);
    }
  }

  /** Down or up, then over, with a head; straight where both are at one place. */
  private drawArrow(ax: number, ay: number, bx: number, by: number): void {
    const { ctx } = this;
    const isStraight = Math.abs(bx - ax) < 8;
    const side = bx >= ax ? 1 : -1;
    const fall = by >= ay ? 1 : -1;
    const bend = Math.min(12, Math.abs(bx - ax) / 2, Math.abs(by - ay));
    ctx.beginPath();
    ctx.arc(ax, ay, 2.5, 0, 7);
    ctx.fill();
    ctx.beginPath();
    ctx.moveTo(ax, ay);
    if (isStraight) {
      ctx.lineTo(bx, by - 5 * fall);
    } else {
      ctx.lineTo(ax, by - bend * fall);
      ctx.quadraticCurveTo(ax, by, ax + bend * side, by);
      ctx.lineTo(bx - 5 * side, by);
    }
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(bx, by);
    if (isStraight) {
      ctx.lineTo(bx - 3.5, by - 7 * fall);
      ctx.lineTo(bx + 3.5, by - 7 * fall);
    } else {
      ctx.lineTo(bx - 7 * side, by - 3.5);
      ctx.lineTo(bx - 7 * side, by + 3.5);
    }
    ctx.fill();
  }

  private ticks(step: number): number[] {
    const { from, to } = this.app.view;
    const out: number[] = [];
    const base = this.app.meta.from;
    for (let k = Math.ceil((from - base) / step); k * step + base <= to && out.length < 500; k++) out.push(k * step + base);
    return out;
  }

  private drawRuler(step: number): void {
    const { ctx, app } = this;
    ctx.font = FONT;
    ctx.fillStyle = T.bg1;
    ctx.fillRect(0, 0, this.width, RULER);
    ctx.fillStyle = T.line;
    ctx.fillRect(0, RULER - 1, this.width, 1);
    ctx.textAlign = "left";
    const span = app.range ?? (app.selection?.type === "gap" || this.isIdleSelected() ? { from: app.selection!.start, to: app.selection!.end } : null);
    const taken = span ? this.lengthBox(span) : { x: 0, w: -100 };
    for (const t of this.ticks(step)) {
      const x = this.xOf(t);
      ctx.fillStyle = T.line;
      ctx.fillRect(Math.round(x), RULER - 6, 1, 6);
      ctx.fillStyle = T.text2;
      const text = format.tick(t - app.meta.from, step);
      const right = x + 8 + this.labels.width(text);
      if (right < this.width && (right < taken.x || x > taken.x + taken.w)) ctx.fillText(text, x + 4, RULER / 2);
    }
    for (const t of app.marks) {
      ctx.fillStyle = T.accent;
      ctx.fillRect(this.xOf(t), 0, 1, this.height);
      ctx.fillRect(this.xOf(t) - 3, 0, 7, 5);
    }
    if (span) this.drawLength(span);
  }

  private isIdleSelected(): boolean {
    const s = this.app.selection;
    return !!s && s.type === "event" && this.app.meta.rows[this.app.rowOfLane[s.lane]]?.kind === "idle";
  }

  /** Where the length of a range is written on the ruler. */
  private lengthBox(span: Span): { x: number; w: number } {
    this.ctx.font = `600 ${FONT}`;
    const w = this.ctx.measureText(format.duration(span.to - span.from)).width + 16;
    this.ctx.font = FONT;
    const x0 = Math.max(0, this.xOf(span.from));
    const x1 = Math.min(this.width, this.xOf(span.to));
    if (x1 < 0 || x0 > this.width) return { x: 0, w: -100 };
    return { x: Math.max(0, Math.min(this.width - w, (x0 + x1) / 2 - w / 2)), w };
  }

  /** The length of a range as a bar and a number on the ruler. */
  private drawLength(span: Span): void {
    const { ctx } = this;
    const x0 = Math.max(0, this.xOf(span.from));
    const x1 = Math.min(this.width, this.xOf(span.to));
    if (x1 < 0 || x0 > this.width) return;
    ctx.fillStyle = T.accent;
    ctx.fillRect(x0, RULER - 3, Math.max(1, x1 - x0), 2);
    const text = format.duration(span.to - span.from);
    ctx.font = `600 ${FONT}`;
    const { x, w } = this.lengthBox(span);
    ctx.font = `600 ${FONT}`;
    ctx.fillStyle = T.accent;
    ctx.beginPath();
    pill(ctx, x, 3, w, 17);
    ctx.fill();
    ctx.fillStyle = inkOn(T.accent);
    ctx.textAlign = "center";
    ctx.fillText(text, x + w / 2, 12);
    ctx.textAlign = "left";
  }

  private drawPointer(): void {
    if (!this.pointer) return;
    const { ctx } = this;
    ctx.strokeStyle = T.text3;
    ctx.globalAlpha = 0.6;
    ctx.lineWidth = 1;
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    ctx.moveTo(Math.round(this.pointer.x) + 0.5, RULER);
    ctx.lineTo(Math.round(this.pointer.x) + 0.5, this.height);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.globalAlpha = 1;
  }

  // ---- titles ----

  private drawTitles(): void {
    if (!this.areTitlesDirty) return;
    this.areTitlesDirty = false;
    this.titles.style.transform = `translateY(${-this.scrollY}px)`;
    const room = Math.max(this.height, 1);
    this.thumb.style.height = `${Math.max(24, (room / Math.max(this.layout.height, room)) * room)}px`;
    this.thumb.style.top = `${(this.scrollY / Math.max(this.layout.height, 1)) * room}px`;
    this.thumb.hidden = this.layout.height <= this.height - this.top;
    const focused = document.activeElement?.closest<HTMLElement>(TITLE);
    const hadFocus = focused && (this.titles.contains(focused) ? this.titles : this.pinnedTitles.contains(focused) ? this.pinnedTitles : null);
    this.pinnedTitles.replaceChildren(...this.layout.pinned.map((p) => this.title(p)));
    this.pinnedTitles.style.height = `${this.layout.pinnedHeight}px`;
    const from = this.scrollY - room;
    const to = this.scrollY + 2 * room;
    const shown = this.layout.rows.filter((p) => p.y + p.h > from && p.y < to);
    this.titles.replaceChildren(...shown.map((p) => this.title(p)));
    this.titles.style.height = `${this.layout.height}px`;
    for (const box of [this.pinnedTitles, this.titles]) stopAt(box, TITLE, box.querySelector<HTMLElement>(TITLE));
    // The titles are new elements: the focus goes to the one of the same row.
    this.isRestoring = true;
    if (hadFocus) [...hadFocus.querySelectorAll<HTMLElement>(TITLE)].find((t) => t.dataset.key === focused.dataset.key)?.focus({ preventScroll: true });
    this.isRestoring = false;
  }

  /** Keys on the title of a row: Enter and the arrows open and close it. */
  private titleKey(el: HTMLElement, key: string): boolean {
    const isOpen = el.getAttribute("aria-expanded");
    if (key === "Enter" || key === " ") el.click();
    else if ((key === "ArrowRight" && isOpen === "false") || (key === "ArrowLeft" && isOpen === "true")) this.app.toggle(el.dataset.key!);
    else return key === "ArrowRight" || key === "ArrowLeft";
    return true;
  }

  /**
   * The arrow keys go to the next title; rows that are not on the screen scroll into it. Not by the mouse: other titles
   * would take the place of the pressed one before it is released, and there would be no click.
   */
  private followFocus(e: FocusEvent): void {
    const el = e.target as HTMLElement;
    const key = el.closest<HTMLElement>(TITLE)?.dataset.key;
    if (key && !this.isRestoring && el.matches(":focus-visible")) this.showRow(this.app.rowByKey(key));
  }

  private title(p: Placed): HTMLElement {
    const { app } = this;
    const row = p.row;
    const pinName = app.pinned.includes(row.key) ? "Unpin" : "Pin to the top";
    return h("div", {
      class: `title${row.kind === "idle" || row.kind === "curve" ? " stacked" : ""}${p.isGroup ? " group" : ""}${p.isPinned ? " pinned" : ""}`,
      style: { top: `${p.y}px`, height: `${p.h}px`, paddingLeft: `${10 + p.level * 13}px` },
      role: "treeitem", "aria-expanded": p.isGroup ? String(p.isOpen) : undefined, "data-key": row.key,
      title: row.title + aboutNumber(app, p), tabindex: -1,
      oncontextmenu: (e: MouseEvent) => {
        e.preventDefault();
        this.onMenu(p, e.clientX, e.clientY);
      },
      onclick: () => {
        if (p.isGroup) app.toggle(row.key);
        else if (p.nHidden || app.deep.has(row.key)) this.toggleDepth(row.key);
      },
    },
      p.isGroup ? h("span", { class: `arrow${p.isOpen ? " open" : ""}` }) : null,
      p.isPinned ? h("span", { class: "dot" }) : null,
      h("span", { class: "name" }, row.title),
      p.nHidden ? h("span", { class: "more" }, `+${p.nHidden}`) : null,
      h("span", { class: "number" }, numberOf(app, p)),
      h("button", {
        class: "pin", title: pinName, "aria-label": `${pinName}: ${row.title}`,
        onclick: (e: Event) => {
          e.stopPropagation();
          app.pin(row.key);
        },
      }, app.pinned.includes(row.key) ? "●" : "○"));
  }

  toggleDepth(key: string): void {
    if (!this.app.deep.delete(key)) this.app.deep.add(key);
    this.app.changed("rows");
  }

  private dragThumb(): void {
    this.thumb.addEventListener("pointerdown", (e) => {
      const start = e.clientY;
      const at = this.scrollY;
      this.thumb.setPointerCapture(e.pointerId);
      const move = (m: PointerEvent): void => {
        this.scrollTo(at + ((m.clientY - start) / Math.max(1, this.height)) * this.layout.height);
      };
      this.thumb.addEventListener("pointermove", move);
      this.thumb.addEventListener("pointerup", () => this.thumb.removeEventListener("pointermove", move), { once: true });
    });
  }
}

export function styleOf(app: App, lane: number, isGroup = false): { colours: string[]; mode: "box" | "stack" | "strip" | "tick" } {
  const owner = app.meta.rows[app.rowOfLane[lane]];
  const kind = owner?.kind ?? "busy";
  const depth = lane - (owner?.lane ?? 0);
  if (kind === "idle") return { colours: palette("idle", 0), mode: "stack" };
  if (kind === "sample" || kind === "pysample" || kind === "mark") return { colours: palette(kind, 0), mode: "tick" };
  return { colours: palette(kind, isGroup ? 0 : depth), mode: "box" };
}

/** The one number of a row that matters. */
function numberOf(app: App, p: Placed): string {
  const row = p.row;
  const length = Math.max(1, app.meta.run ?? app.meta.to - app.meta.from);
  switch (row.kind) {
    case "device": {
      const use = deviceUse(app, p.ix);
      return use ? `busy ${format.percent(use.busy)} of run` : "";
    }
    case "idle": {
      const use = deviceUse(app, row.parent);
      // The sentence on top is about steps; the run with its start-up would seem to contradict it.
      const ofStep = stepsWaiting(app, row.parent);
      if (ofStep !== undefined) return `not computing ${format.percent(ofStep)} of each step`;
      return use ? `not computing ${format.percent(1 - use.computing)} of run` : "";
    }
    case "process": {
      const below = (app.children[p.ix] ?? []).flatMap((c) => (app.meta.rows[c].kind === "fold" ? app.children[c] ?? [] : [c]));
      const n = below.filter((c) => app.meta.rows[c].kind === "thread").length;
      return n === 1 ? "1 thread" : `${n} threads`;
    }
    // Of a recording that was cut, the first period began earlier.
    case "cpu": return `${format.percent(Math.min(1, row.busy / length))} of run`;
    case "curve": {
      const [max, top] = [row.max ?? 0, row.top ?? 0];
      return `≤ ${format.value(max, row.unit ?? "")}${top > max * 1.001 ? ` of ${format.value(top, row.unit ?? "")}` : ""}`;
    }
    case "thread": return row.is_launcher ? "launches" : "";
    case "metrics": return String((app.children[p.ix] ?? []).length);
    case "fold": return "";
    default: return format.count(row.n);
  }
}

/** What the number is a share of. */
function aboutNumber(app: App, p: Placed): string {
  const use = p.row.kind === "device" ? deviceUse(app, p.ix) : p.row.kind === "idle" ? deviceUse(app, p.row.parent) : undefined;
  if (!use) return "";
  return `\nFrom its first work to its last, ${format.duration(use.span_ns)}: computing ${format.percent(use.computing)}, copies and collectives alone ${format.percent(use.busy - use.computing)}, idle ${format.percent(1 - use.busy)}.`;
}

function pill(ctx: CanvasRenderingContext2D, x: number, y: number, w: number, height: number): void {
  const r = height / 2;
  ctx.arc(x + r, y + r, r, Math.PI / 2, Math.PI * 1.5);
  ctx.arc(x + w - r, y + r, r, -Math.PI / 2, Math.PI / 2);
  ctx.closePath();
}

/** A round distance of at least 90 pixels. */
export function tickStep(nsPerPixel: number): number {
  const least = nsPerPixel * 90;
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5, 10]) if (power * factor >= least) return Math.max(1, power * factor);
  return power * 10;
}

/** Index of the first value above `v` in sorted values. */
function upper(values: Float64Array, v: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (values[mid] > v) high = mid;
    else low = mid + 1;
  }
  return low;
}

export function decodeCurve(buffer: ArrayBuffer): Curve {
  const n = Math.floor(buffer.byteLength / 24);
  const view = new DataView(buffer);
  const curve = { at: new Float64Array(n), min: new Float32Array(n), max: new Float32Array(n), last: new Float32Array(n) };
  for (let i = 0; i < n; i++) {
    curve.at[i] = view.getFloat64(24 * i, true);
    curve.min[i] = view.getFloat32(24 * i + 8, true);
    curve.max[i] = view.getFloat32(24 * i + 12, true);
    curve.last[i] = view.getFloat32(24 * i + 16, true);
  }
  return curve;
}
