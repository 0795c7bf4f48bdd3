// The pointer on the rows: scroll, zoom, pan, measure, select, hover.

import type { App } from "./app";
import { h } from "./dom";
import * as format from "./format";
import { isCause } from "./panels/verdict";
import { IDLE_FAMILIES, WORK_CLASSES } from "./theme";
import { RULER, type Timeline } from "./timeline";

const DRAG = 4; // pixels before a press is a drag

export class Input {
  readonly tip = h("div", { class: "tip", hidden: true });
  private isSpace = false;

  constructor(private readonly app: App, private readonly timeline: Timeline, private readonly status: (text: string) => void) {
    const canvas = timeline.canvas;
    canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    canvas.addEventListener("pointerdown", (e) => this.down(e));
    canvas.addEventListener("pointermove", (e) => this.hover(e));
    canvas.addEventListener("pointerleave", () => this.leave());
    canvas.addEventListener("dblclick", () => this.double());
    window.addEventListener("keydown", (e) => { if (e.code === "Space") this.isSpace = true; });
    window.addEventListener("keyup", (e) => { if (e.code === "Space") this.isSpace = false; });
    // What it says may only come now: the name of what is under the pointer.
    app.on("data", () => { if (!this.tip.hidden && timeline.pointer) this.tell(timeline.pointer.x, timeline.pointer.y); });
    for (const part of ["view", "selection", "drawer"] as const) app.on(part, () => { this.tip.hidden = true; });
  }

  private wheel(e: WheelEvent): void {
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? 400 : 1;
    const dx = e.deltaX * unit;
    const dy = e.deltaY * unit;
    if (e.ctrlKey || e.metaKey) {
      this.app.zoom(Math.exp(Math.max(-1, Math.min(1, dy * 0.006))), this.timeline.timeAt(e.offsetX));
    } else if (e.shiftKey) {
      this.app.pan((dy || dx) / Math.max(1, this.timeline.width));
    } else {
      if (Math.abs(dx) > Math.abs(dy)) this.app.pan(dx / Math.max(1, this.timeline.width));
      else this.timeline.scrollTo(this.timeline.scrollY + dy);
    }
  }

  private down(e: PointerEvent): void {
    const { app, timeline } = this;
    const canvas = timeline.canvas;
    const begin = { x: e.offsetX, y: e.offsetY };
    const isPan = e.button === 1 || this.isSpace || e.pointerType === "touch";
    const isZoom = begin.y < RULER;
    const lane = timeline.at(begin.y)?.line?.lane ?? null;
    const from = isZoom || e.altKey ? timeline.timeAt(begin.x) : timeline.snap(begin.x, lane);
    const view = { ...app.view };
    const scroll = timeline.scrollY;
    let isDrag = false;
    if (e.button > 1) return;
    canvas.setPointerCapture(e.pointerId);
    const move = (m: PointerEvent): void => {
      if (!isDrag && Math.hypot(m.offsetX - begin.x, m.offsetY - begin.y) < DRAG) return;
      if (!isDrag && isPan) app.startDrag();
      isDrag = true;
      if (isPan) {
        const d = (m.offsetX - begin.x) * ((view.to - view.from) / Math.max(1, timeline.width));
        timeline.scrollTo(scroll - (m.offsetY - begin.y));
        app.show({ from: view.from - d, to: view.to - d }, false);
        return;
      }
      const under = timeline.at(m.offsetY)?.line?.lane ?? lane;
      const t = isZoom || m.altKey ? timeline.timeAt(m.offsetX) : timeline.snap(m.offsetX, under);
      app.setRange({ from: Math.min(from, t), to: Math.max(from, t) }, isZoom ? [] : timeline.rowsBetween(begin.y, m.offsetY));
      this.status(`measured ${format.duration(Math.abs(t - from))}`);
    };
    const up = (m: PointerEvent): void => {
      canvas.removeEventListener("pointermove", move);
      canvas.removeEventListener("pointerup", up);
      canvas.removeEventListener("pointercancel", up);
      if (!isDrag) void this.click(m);
      else if (isZoom && app.range) {
        const range = app.range;
        app.setRange(null);
        app.show(range);
      } else if (!isPan && app.range) {
        app.select({ type: "range", lane: -1, row: "", start: app.range.from, end: app.range.to });
      }
    };
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
  }

  private async click(e: PointerEvent): Promise<void> {
    const { app, timeline } = this;
    timeline.canvas.focus({ preventScroll: true });
    const hit = timeline.at(e.offsetY);
    if (hit?.placed.isGroup && hit.placed.isOpen) {
      app.toggle(hit.placed.row.key);
      return;
    }
    if (!hit?.line) {
      app.setRange(null);
      app.select(null);
      return;
    }
    const t = timeline.timeAt(e.offsetX);
    const slack = timeline.nsPerPixel * 2;
    const seen = timeline.record(hit.line.lane, t, slack);
    const before = app.selection;
    // Inside a fold many events are too thin to hit: take the nearest one.
    const found = await app.selectAt(hit.line.lane, t, seen ? Math.max(slack, seen.count > 1 ? seen.end - seen.start : 0) : 0);
    if (e.shiftKey && before && found) {
      app.setRange({ from: Math.min(before.start, found.start), to: Math.max(before.end, found.end) });
      const gap = found.start >= before.end ? found.start - before.end : before.start - found.end;
      this.status(`${format.duration(Math.max(0, gap))} between the two`);
    }
  }

  private double(): void {
    const s = this.app.selection;
    if (s && s.type !== "range") this.app.frame({ from: s.start, to: s.end });
  }

  private leave(): void {
    this.tip.hidden = true;
    this.timeline.pointer = null;
    this.app.changed("hover");
  }

  private hover(e: PointerEvent): void {
    const { timeline } = this;
    timeline.pointer = { x: e.offsetX, y: e.offsetY };
    this.app.changed("hover");
    if (e.buttons) {
      this.tip.hidden = true;
      return;
    }
    this.tell(e.offsetX, e.offsetY);
  }

  /** What is at this place of the canvas, beside it. */
  private tell(atX: number, atY: number): void {
    const { timeline } = this;
    const hit = timeline.at(atY);
    const lines = hit ? this.describe(hit.placed.row.curve, hit.line?.lane ?? -1, timeline.timeAt(atX)) : null;
    if (!lines) {
      this.tip.hidden = true;
      return;
    }
    this.tip.replaceChildren(h("b", null, lines[0]), ...lines.slice(1).map((l) => h("div", null, l)));
    this.tip.hidden = false;
    const box = timeline.canvas.getBoundingClientRect();
    const w = this.tip.offsetWidth;
    const height = this.tip.offsetHeight;
    const x = box.left + atX + 14;
    const y = box.top + atY + 16;
    this.tip.style.left = `${x + w > window.innerWidth - 8 ? x - w - 28 : x}px`;
    this.tip.style.top = `${y + height > window.innerHeight - 8 ? y - height - 32 : y}px`;
  }

  private describe(curve: number, lane: number, t: number): string[] | null {
    const { app, timeline } = this;
    if (curve >= 0) {
      const v = timeline.curveAt(curve, t);
      const row = app.meta.rows.find((r) => r.curve === curve);
      return v === null || !row ? null : [`${row.title} ${format.value(v, row.unit ?? "")}`];
    }
    const found = lane >= 0 ? timeline.record(lane, t, timeline.nsPerPixel * 1.5) : null;
    if (!found) return null;
    const kind = app.meta.rows[app.rowOfLane[lane]]?.kind ?? "";
    const full = app.names.get(found.name) ?? "…";
    const name = format.shortOf(full) ?? format.clean(full, 160);
    const length = format.duration(found.end - found.start);
    if (found.count > 1) {
      const share = kind === "idle" ? "idle" : "busy";
      return [`${format.count(found.count)} events in ${length}`, `${format.percent(found.busy)} of it ${share}`, `longest: ${name}`];
    }
    if (found.start === found.end) return [name, `at ${format.moment(found.start - app.meta.from, timeline.nsPerPixel)}`];
    const lines = [found.isExact ? `${length}  ${name}` : name];
    if (format.shortOf(full)) lines.push(format.clean(full, 120));
    if (kind === "kernel") lines.push(WORK_CLASSES[found.cls]);
    if (kind === "idle" && isCause(app.names.get(found.name))) lines.push(`cause: ${found.cls === 7 ? full : IDLE_FAMILIES[found.cls]}`);
    return lines;
  }
}
