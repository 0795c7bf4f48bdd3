// The whole run in one strip: busy and idle shares, the window of the view, where hits are.

import type { App } from "./app";
import { h } from "./dom";
import * as format from "./format";
import { T } from "./theme";

export class Minimap {
  readonly el: HTMLElement;
  private readonly canvas = h("canvas", { role: "img", "aria-label": "Whole run: busy and idle shares" });
  private readonly text = h("div", { class: "small" });
  private isDirty = true;

  constructor(private readonly app: App) {
    this.el = h("section", { class: "minimap", "aria-label": "Whole run" },
      h("div", { class: "minimap-title" }, h("div", null, "Whole run"), this.text), h("div", { class: "minimap-box" }, this.canvas));
    const touch = (): void => { this.isDirty = true; };
    for (const part of ["view", "search", "theme", "selection", "range", "verdict"] as const) app.on(part, touch);
    new ResizeObserver(touch).observe(this.canvas);
    this.canvas.addEventListener("pointerdown", (e) => this.down(e));
    this.canvas.addEventListener("wheel", (e) => {
      e.preventDefault();
      app.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * 0.004))), this.timeAt(e.offsetX));
    }, { passive: false });
    const loop = (): void => {
      requestAnimationFrame(loop);
      if (this.isDirty) this.draw();
    };
    requestAnimationFrame(loop);
  }

  private timeAt(x: number): number {
    const { meta } = this.app;
    return meta.from + (x / Math.max(1, this.canvas.clientWidth)) * (meta.to - meta.from);
  }

  private xOf(t: number): number {
    const { meta } = this.app;
    return ((t - meta.from) / Math.max(1, meta.to - meta.from)) * this.canvas.clientWidth;
  }

  private down(e: PointerEvent): void {
    const { app } = this;
    const t0 = this.timeAt(e.offsetX);
    const view = { ...app.view };
    const x0 = this.xOf(view.from);
    const x1 = this.xOf(view.to);
    const isWhole = view.to - view.from > (app.meta.to - app.meta.from) * 0.98;
    const onLeft = !isWhole && Math.abs(e.offsetX - x0) < 5;
    const onRight = !isWhole && Math.abs(e.offsetX - x1) < 5;
    const inside = !isWhole && e.offsetX > x0 && e.offsetX < x1;
    let isDrag = false;
    this.canvas.setPointerCapture(e.pointerId);
    const move = (m: PointerEvent): void => {
      const t = this.timeAt(m.offsetX);
      if (Math.abs(m.offsetX - e.offsetX) < 3 && !isDrag) return;
      if (!isDrag && (onLeft || onRight || inside)) app.startDrag();
      isDrag = true;
      if (onLeft) app.show({ from: Math.min(t, view.to - 100), to: view.to }, false);
      else if (onRight) app.show({ from: view.from, to: Math.max(t, view.from + 100) }, false);
      else if (inside) app.show({ from: view.from + t - t0, to: view.to + t - t0 }, false);
      else app.setRange({ from: Math.min(t0, t), to: Math.max(t0, t) });
    };
    const up = (): void => {
      this.canvas.removeEventListener("pointermove", move);
      if (!isDrag) {
        const half = (view.to - view.from) / 2;
        app.show({ from: t0 - half, to: t0 + half });
      } else if (!onLeft && !onRight && !inside && app.range) {
        const range = app.range;
        app.setRange(null);
        app.show(range);
      }
    };
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", up, { once: true });
  }

  private draw(): void {
    this.isDirty = false;
    const { app, canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    const w = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (!w || !height) return;
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(height * ratio);
    const ctx = canvas.getContext("2d")!;
    ctx.scale(ratio, ratio);
    ctx.fillStyle = T.bg;
    ctx.fillRect(0, 0, w, height);
    this.drawShares(ctx, w, height);
    if (app.hits) {
      ctx.fillStyle = T.accent;
      app.hits.buckets.forEach((n, i) => {
        if (n) ctx.fillRect((i / app.hits!.buckets.length) * w, height - 5, 3, 5);
      });
    }
    const x0 = Math.max(0, this.xOf(app.view.from));
    const x1 = Math.min(w, this.xOf(app.view.to));
    ctx.fillStyle = T.accent;
    ctx.globalAlpha = 0.12;
    ctx.fillRect(x0, 0, x1 - x0, height);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = T.accent;
    ctx.lineWidth = 2;
    ctx.strokeRect(x0 + 1, 1, Math.max(2, x1 - x0 - 2), height - 2);
    if (x1 - x0 < w * 0.98) {
      ctx.fillRect(x0 - 1, height / 2 - 7, 4, 14);
      ctx.fillRect(x1 - 3, height / 2 - 7, 4, 14);
    }
    const length = app.meta.to - app.meta.from;
    this.text.textContent = `${format.duration(length)} · view ${format.duration(Math.min(length, app.view.to - app.view.from))}`;
  }

  private drawShares(ctx: CanvasRenderingContext2D, w: number, height: number): void {
    const { minimap } = this.app.meta;
    const n = minimap.n;
    if (!minimap.busy.length) return;
    for (let i = 0; i < n; i++) {
      const x = (i / n) * w;
      const width = w / n + 0.6;
      let y = height;
      // Copies that run alone count as busy and also have a cause: drawing both would hide one.
      let waiting = 0;
      for (let c = 0; c < 8; c++) waiting += minimap.idle[i * 8 + c];
      const size = Math.min(minimap.busy[i], Math.max(0, 1 - waiting)) * height;
      ctx.fillStyle = T.busy;
      ctx.fillRect(x, y - size, width, size);
      y -= size;
      for (let c = 0; c < 8; c++) {
        const part = minimap.idle[i * 8 + c] * height;
        if (part <= 0) continue;
        ctx.globalAlpha = c === 7 ? 0.4 : 1;
        ctx.fillStyle = T.idle[c];
        ctx.fillRect(x, y - part, width, part);
        y -= part;
      }
      ctx.globalAlpha = 1;
    }
  }
}
