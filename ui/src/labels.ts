// Names on boxes: the longest beginning that fits, measured once for each text.

import * as format from "./format";
import type { Names } from "./names";
import { type Box, isLabelled } from "./paint";
import { inkOn } from "./theme";

export const FONT = "11px Inter, system-ui, sans-serif";
const MAX_LABELS = 600;
const LEAST_LETTERS = 4; // of a name that is cut; less says nothing

export class Labels {
  private readonly widths = new Map<string, number>();

  constructor(private readonly ctx: CanvasRenderingContext2D) {}

  width(text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size > 20000) this.widths.clear();
      width = this.ctx.measureText(text).width;
      this.widths.set(text, width);
    }
    return width;
  }

  /** The longest beginning that fits, with an ellipsis. */
  fit(text: string, room: number): string {
    if (this.width(text) <= room) return text;
    let low = 0;
    let high = text.length;
    while (low < high) {
      const mid = (low + high + 1) >> 1;
      if (this.width(text.slice(0, mid) + "…") <= room) low = mid;
      else high = mid - 1;
    }
    return low >= LEAST_LETTERS ? text.slice(0, low) + "…" : "";
  }

  /** Write on boxes, the widest first if there are many; gives how many. The canvas is `right` pixels wide. */
  draw(all: Box[], names: Names, ratio: number, right: number): number {
    const { ctx } = this;
    let boxes = all.filter((b) => isLabelled(b) && b.h >= 10 * ratio);
    if (boxes.length > MAX_LABELS) {
      boxes = boxes.sort((a, b) => b.x1 - b.x0 - (a.x1 - a.x0)).slice(0, MAX_LABELS);
    }
    ctx.font = FONT;
    ctx.textAlign = "left";
    for (const box of boxes) {
      const name = names.get(box.name);
      if (name === undefined) continue;
      const x0 = Math.max(0, box.x0 / ratio);
      const room = Math.min(right, box.x1 / ratio) - x0 - 9;
      if (room < 16) continue;
      const text = this.text(name, box, room, ratio);
      if (!text) continue;
      ctx.fillStyle = inkOn(box.colour);
      ctx.fillText(text, x0 + 5, (box.y + box.h / 2) / ratio + 0.5);
    }
    return boxes.length;
  }

  /** Numbers first: what is cut off then is the less important half. */
  private text(name: string, box: Box, room: number, ratio: number): string {
    const text = format.short(name);
    // Of a step the number matters.
    if (/^step \d+$/.test(text) && this.width(text) > room) return this.width(text.slice(5)) <= room ? text.slice(5) : "";
    if (box.ns && box.h >= 16 * ratio && room > 90) {
      const both = box.h >= 24 * ratio ? `${format.duration(box.ns)}  ${text}` : `${text}  ${format.duration(box.ns)}`;
      return this.fit(both, room);
    }
    return this.fit(text, room);
  }
}
