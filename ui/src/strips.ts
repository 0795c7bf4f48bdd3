// Several recordings above each other on one axis of time: those that are compared, or the ranks of a job. Each has a
// few rows of its own, zero is where its anchor is, and all move and zoom together.

import type { App } from "./app";
import { h } from "./dom";
import * as format from "./format";
import { FONT, Labels } from "./labels";
import { type Box, Painter, firstAfter } from "./paint";
import { T } from "./theme";
import { levelFor, tileWidth } from "./tiles";
import { styleOf, tickStep } from "./timeline";
import type { Row, Span } from "./types";

const RULER = 22;
const GAP = 2;
const MIN_SPAN = 100; // ns
const TITLES = 236; // pixels: as wide as those of the rows above, so that time is at the same place
const SHORT: Record<string, string> = { idle: "idle by cause", kernel: "kernels", step: "steps", range: "ranges", call: "CUDA calls" };

export interface Side {
  app: App;
  title: string;
  note?: string;
  anchor: number; // what zero is, in ns of its own recording
  rows: Row[];
}

interface Line {
  side: Side;
  lane: number;
  y: number;
  h: number;
}

/** Of a recording, the rows that tell most: its steps, a device's idle time and work, what its launching thread did. */
export function rowsOf(app: App, isShort = false): Row[] {
  const { rows } = app.meta;
  const most = (list: Row[], key: "busy" | "n"): Row | undefined => [...list].sort((a, b) => b[key] - a[key])[0];
  const device = rows.find((r) => r.kind === "device" && r.key === app.opening?.device) ?? most(rows.filter((r) => r.kind === "device"), "busy");
  const below = (r: Row): boolean => !device || rows[r.parent] === device;
  const idle = rows.find((r) => r.kind === "idle" && below(r));
  const kernels = most(rows.filter((r) => r.kind === "kernel" && below(r)), "busy");
  const nccl = rows.find((r) => r.kind === "kernel" && below(r) && r !== kernels && r.title.startsWith("NCCL"));
  if (isShort) return [idle, kernels, nccl].filter((r): r is Row => r !== undefined);
  // By role, so that the launching thread of one is above that of the other.
  const launcher = app.opening ? app.rowByKey(app.opening.threads[0] ?? "") : rows.findIndex((r) => r.is_launcher);
  const ofLauncher = (kind: string): Row | undefined => rows.find((r) => r.kind === kind && launcher >= 0 && r.parent === launcher) ?? most(rows.filter((r) => r.kind === kind), "n");
  const calls = ofLauncher("call");
  const ranges = ofLauncher("range");
  return [most(rows.filter((r) => r.kind === "step"), "n"), idle, kernels, ranges, calls].filter((r): r is Row => r !== undefined);
}

function heightOf(kind: string): number {
  return kind === "idle" ? 24 : kind === "kernel" || kind === "step" ? 16 : 13;
}

export class Strips {
  readonly el: HTMLElement;
  view: Span; // since the anchors
  nRecords = 0;
  private readonly canvas = h("canvas", { class: "strips-canvas", tabindex: 0, role: "application", "aria-label": "Timelines above each other" });
  private readonly ctx: CanvasRenderingContext2D;
  private readonly labels: Labels;
  private readonly tip = h("div", { class: "tip", hidden: true });
  private readonly lines: Line[] = [];
  private readonly height: number;
  private painter: Painter | null = null;
  private image: ImageData | null = null;
  private isDirty = true;
  private wasShown = false;
  private readonly offs: (() => void)[] = [];

  constructor(private readonly sides: Side[], private readonly first: Span, private readonly onPick?: (side: Side, lane: number, t: number) => void) {
    this.view = { ...first };
    this.ctx = this.canvas.getContext("2d", { alpha: false })!;
    this.labels = new Labels(this.ctx);
    const titles: HTMLElement[] = [h("div", { class: "strips-title", style: { top: "0px", height: `${RULER}px` } })];
    let y = RULER;
    for (const side of sides) {
      const top = y;
      y += GAP;
      for (const row of side.rows) {
        const height = heightOf(row.kind);
        const rowTop = y;
        const nLines = Math.min(row.n_lanes, row.kind === "range" ? 2 : 1);
        for (let i = 0; i < nLines; i++, y += height + 1) this.lines.push({ side, lane: row.lane + i, y, h: height });
        titles.push(h("div", { class: "strips-row", style: { top: `${rowTop}px`, height: `${y - rowTop}px` } }, row.title.startsWith("NCCL") ? "NCCL" : SHORT[row.kind] ?? row.title));
        y += GAP;
      }
      titles.push(h("div", { class: "strips-title", title: `${side.title}${side.note ? ` · ${side.note}` : ""}`, style: { top: `${top}px`, height: `${y - top}px` } },
        h("b", null, side.title), side.note ? h("span", { class: "small" }, side.note) : null));
      y += GAP;
      this.offs.push(side.app.on("data", () => this.touch()));
    }
    this.height = y;
    this.el = h("div", { class: "strips", style: { height: `${y}px` } }, h("div", { class: "strips-titles", style: { width: `${TITLES}px` } }, titles), h("div", { class: "strips-box" }, this.canvas), this.tip);
    this.listen();
    new ResizeObserver(() => this.touch()).observe(this.canvas);
    const loop = (): void => {
      // A closed panel drops its tiles.
      if (this.el.isConnected) this.wasShown = true;
      else if (this.wasShown) {
        this.offs.forEach((off) => off());
        return;
      }
      requestAnimationFrame(loop);
      if (this.isDirty && this.el.isConnected) this.draw();
    };
    requestAnimationFrame(loop);
  }

  touch(): void {
    this.isDirty = true;
  }

  show(span: Span): void {
    const length = Math.max(MIN_SPAN, span.to - span.from);
    const centre = (span.from + span.to) / 2;
    this.view = { from: centre - length / 2, to: centre + length / 2 };
    this.touch();
  }

  zoom(factor: number, at = (this.view.from + this.view.to) / 2): void {
    this.show({ from: at - (at - this.view.from) * factor, to: at + (this.view.to - at) * factor });
  }

  pan(share: number): void {
    const d = (this.view.to - this.view.from) * share;
    this.show({ from: this.view.from + d, to: this.view.to + d });
  }

  reset(): void {
    this.show(this.first);
  }

  private get nsPerPixel(): number {
    return (this.view.to - this.view.from) / Math.max(1, this.canvas.clientWidth);
  }

  private timeAt(x: number): number {
    return this.view.from + x * this.nsPerPixel;
  }

  private draw(): void {
    const ratio = window.devicePixelRatio || 1;
    const w = Math.round(this.canvas.clientWidth * ratio);
    const height = Math.round(this.height * ratio);
    if (!w) return;
    this.isDirty = false;
    if (!this.image || this.canvas.width !== w || this.canvas.height !== height) {
      this.canvas.width = w;
      this.canvas.height = height;
      this.image = new ImageData(w, height);
      this.painter = new Painter(w, height, this.image.data.buffer);
    }
    const painter = this.painter!;
    const nsPerPixel = this.nsPerPixel / ratio;
    const level = levelFor(nsPerPixel);
    const step = tickStep(this.nsPerPixel);
    const ticks: number[] = [];
    for (let k = Math.ceil(this.view.from / step); k * step <= this.view.to && ticks.length < 500; k++) ticks.push(k * step);
    painter.clear(T.bg, T.line2, ticks.map((t) => (t - this.view.from) / nsPerPixel));
    const boxes = new Map<App, Box[]>();
    for (const side of this.sides) {
      const mine: Box[] = [];
      const span = { from: side.anchor + this.view.from, to: side.anchor + this.view.to };
      const lines = this.lines.filter((l) => l.side === side);
      for (const l of lines) painter.lane(side.app.tiles.pieces(l.lane, level, span), span.from, nsPerPixel, Math.round(l.y * ratio), Math.round(l.h * ratio), 0, styleOf(side.app, l.lane), mine);
      side.app.tiles.want(lines.map((l) => l.lane), level, Math.max(0, span.from), span.to);
      boxes.set(side.app, [...(boxes.get(side.app) ?? []), ...mine]);
    }
    this.nRecords = painter.nRecords;
    this.el.dataset.records = String(this.nRecords);
    this.ctx.putImageData(this.image, 0, 0);
    this.ctx.save();
    this.ctx.scale(ratio, ratio);
    this.ctx.textBaseline = "middle";
    for (const [app, mine] of boxes) this.labels.draw(mine, app.names, ratio, this.canvas.clientWidth);
    this.drawRuler(ticks, step);
    this.ctx.restore();
  }

  private drawRuler(ticks: number[], step: number): void {
    const { ctx } = this;
    const width = this.canvas.clientWidth;
    ctx.fillStyle = T.bg1;
    ctx.fillRect(0, 0, width, RULER);
    ctx.font = FONT;
    ctx.textAlign = "left";
    for (const t of ticks) {
      const x = (t - this.view.from) / this.nsPerPixel;
      ctx.fillStyle = t === 0 ? T.accent : T.line;
      ctx.fillRect(Math.round(x), RULER - 6, 1, t === 0 ? this.height : 6);
      ctx.fillStyle = T.text2;
      const text = t === 0 ? "0" : format.tick(Math.abs(t), step);
      if (x + 8 + this.labels.width(text) < width) ctx.fillText(t < 0 ? `−${text}` : text, x + 4, RULER / 2);
    }
    ctx.fillStyle = T.line;
    ctx.fillRect(0, RULER - 1, width, 1);
    let last: Side | null = null;
    for (const l of this.lines) {
      if (last && l.side !== last) ctx.fillRect(0, l.y - GAP - 1, width, 1);
      last = l.side;
    }
  }

  // ---- pointer ----

  private lineAt(y: number): Line | undefined {
    return this.lines.find((l) => y >= l.y - 1 && y < l.y + l.h + 1);
  }

  private hover(e: PointerEvent): void {
    const line = this.lineAt(e.offsetY);
    const found = line ? this.record(line, e.offsetX) : null;
    this.tip.hidden = !found;
    if (!line || !found) return;
    const name = found.count > 1 ? `${format.count(found.count)} events, longest: ${format.short(line.side.app.names.get(found.name) ?? "…")}` : format.short(line.side.app.names.get(found.name) ?? "…");
    this.tip.replaceChildren(h("b", null, name), h("div", null, `${format.duration(found.end - found.start)} · ${line.side.title}`));
    this.tip.style.left = `${Math.min(window.innerWidth - 300, e.clientX + 14)}px`;
    this.tip.style.top = `${e.clientY - 46}px`;
  }

  /** What is drawn at a place of a line. */
  private record(line: Line, x: number): { start: number; end: number; name: number; count: number } | null {
    const t = line.side.anchor + this.timeAt(x);
    const level = levelFor(this.nsPerPixel);
    const tile = line.side.app.tiles.nearest(line.lane, level, Math.floor(t / tileWidth(level)));
    if (!tile) return null;
    const bucket = 2 ** tile.level;
    const origin = tile.tile * tileWidth(tile.level);
    const i = firstAfter(tile, (t - origin) / bucket);
    if (i >= tile.n || origin + tile.x0[i] * bucket > t + 2 * this.nsPerPixel) return null;
    return { start: origin + tile.x0[i] * bucket, end: origin + tile.x1[i] * bucket, name: tile.name[i], count: tile.count[i] };
  }

  private listen(): void {
    const { canvas } = this;
    canvas.addEventListener("pointermove", (e) => { if (!e.buttons) this.hover(e); });
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("wheel", (e) => {
      if (e.ctrlKey || e.metaKey) this.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * 0.004))), this.timeAt(e.offsetX));
      else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan((e.deltaX || e.deltaY) / Math.max(1, canvas.clientWidth));
      else return; // scrolls the panel
      e.preventDefault();
    }, { passive: false });
    canvas.addEventListener("pointerdown", (e) => this.drag(e));
    canvas.addEventListener("keydown", (e) => {
      const keys: Record<string, () => void> = { w: () => this.zoom(0.7), s: () => this.zoom(1.4), a: () => this.pan(-0.15), d: () => this.pan(0.15), ArrowLeft: () => this.pan(-0.15), ArrowRight: () => this.pan(0.15), "0": () => this.reset() };
      if (!keys[e.key] || e.ctrlKey || e.metaKey) return;
      keys[e.key]();
      e.stopPropagation();
      e.preventDefault();
    });
  }

  private drag(e: PointerEvent): void {
    const { canvas } = this;
    const start = { ...this.view };
    let isDrag = false;
    canvas.setPointerCapture(e.pointerId);
    const move = (m: PointerEvent): void => {
      if (Math.abs(m.offsetX - e.offsetX) < 3 && !isDrag) return;
      isDrag = true;
      const d = (e.offsetX - m.offsetX) * this.nsPerPixel;
      this.show({ from: start.from + d, to: start.to + d });
    };
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("pointerup", (u) => {
      canvas.removeEventListener("pointermove", move);
      const line = this.lineAt(u.offsetY);
      if (!isDrag && line) this.onPick?.(line.side, line.lane, line.side.anchor + this.timeAt(u.offsetX));
    }, { once: true });
  }
}
