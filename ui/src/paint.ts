// The painter: tiles in, pixels out. Nothing here knows the DOM or asks for anything.
//
// A lane is painted as one line of pixels, which is then copied down its height: the work of a frame is
// bounded by pixels, not by events.

import { type Rgb, mix, pixel, rgb } from "./theme";
import { type Tile, tileWidth } from "./tiles";

/** A box wide enough to be read: where it is and what it is. */
export interface Box {
  x0: number;
  x1: number;
  y: number;
  h: number;
  name: number;
  colour: string;
  start: number;
  end: number;
  ns: number; // its length; 0 if an end is not in view
  goesOn: number;
}

/** A tile and the part of time in which it is to be drawn. */
export interface Piece {
  tile: Tile;
  from: number;
  to: number;
}

export interface LaneStyle {
  colours: string[];
  mode: "box" | "stack" | "strip" | "tick";
}

const LABEL_PIXELS = 34;

export class Painter {
  readonly px: Uint32Array;
  nRecords = 0;
  private readonly line: Uint32Array;
  private readonly base: Uint32Array; // an empty line: background and grid
  private readonly cov: Float32Array;
  private readonly acc: Float32Array; // colour times coverage, three for each column
  private readonly stack: Float32Array; // eight for each column
  private bg: Rgb = [255, 255, 255];

  constructor(readonly width: number, readonly height: number, buffer: ArrayBufferLike) {
    this.px = new Uint32Array(buffer);
    this.line = new Uint32Array(width);
    this.base = new Uint32Array(width);
    this.cov = new Float32Array(width);
    this.acc = new Float32Array(width * 3);
    this.stack = new Float32Array(width * 8);
  }

  /** Begin a frame: an empty picture with grid lines at these columns. */
  clear(bg: string, grid: string, columns: number[]): void {
    this.bg = rgb(bg);
    const p = pixel(rgb(grid));
    this.base.fill(pixel(this.bg));
    for (const x of columns) if (x >= 0 && x < this.width) this.base[Math.round(x)] = p;
    for (let y = 0; y < this.height; y++) this.px.set(this.base, y * this.width);
    this.nRecords = 0;
  }

  /** Fill a rectangle, cut to the canvas. */
  rect(x: number, y: number, w: number, h: number, colour: string): void {
    const p = pixel(rgb(colour));
    const x0 = Math.max(0, Math.round(x));
    const x1 = Math.min(this.width, Math.round(x + w));
    const y1 = Math.min(this.height, Math.round(y + h));
    for (let yy = Math.max(0, Math.round(y)); yy < y1 && x1 > x0; yy++) {
      this.px.fill(p, yy * this.width + x0, yy * this.width + x1);
    }
  }

  /**
   * Paint one lane at [y, y + h), nothing above `top`. `from` is the time of the first pixel. Boxes
   * wide enough for a label are added to `boxes`.
   */
  lane(pieces: Piece[], from: number, nsPerPixel: number, y: number, h: number, top: number, style: LaneStyle,
       boxes: Box[]): void {
    if (style.mode === "stack") {
      this.stackLane(pieces, from, nsPerPixel, y, h, top, style, boxes);
      return;
    }
    this.line.set(this.base);
    this.cov.fill(0);
    this.acc.fill(0);
    this.boxes(pieces, from, nsPerPixel, y, h, style, boxes);
    this.thin();
    this.copyDown(y, h, top);
  }

  private boxes(pieces: Piece[], from: number, nsPerPixel: number, y: number, h: number, style: LaneStyle,
                out: Box[]): void {
    const colours = style.colours.map(rgb);
    let last: Box | null = null;
    for (const { tile, from: pf, to: pt } of pieces) {
      const bucket = 2 ** tile.level;
      const origin = tile.tile * tileWidth(tile.level);
      const lo = (pf - origin) / bucket;
      const hi = (pt - origin) / bucket;
      const scale = bucket / nsPerPixel;
      const shift = (origin - from) / nsPerPixel;
      for (let i = firstAfter(tile, lo); i < tile.n && tile.x0[i] < hi; i++) {
        const b0 = Math.max(tile.x0[i], lo);
        const b1 = Math.min(tile.x1[i], hi);
        const x0 = b0 * scale + shift;
        const x1 = b1 * scale + shift;
        if (x1 < 0 || x0 >= this.width) continue;
        this.nRecords++;
        const colour = tile.share && tile.count[i] > 1 ? this.mixed(tile, i, colours) : colours[tile.cls[i]];
        if (style.mode === "tick") {
          this.tick(x0, Math.min(1, 0.3 + tile.count[i] / 20), colour);
          continue;
        }
        const isEvent = tile.count[i] === 1;
        const begins = tile.x0[i] < lo || (tile.goesOn[i] & 1) !== 0;
        const ends = tile.x1[i] > hi || (tile.goesOn[i] & 2) !== 0;
        const isSame = isEvent && begins && last !== null && last.name === tile.name[i] && (last.goesOn & 2) !== 0;
        if (x1 - x0 < 2 && !isSame) {
          this.cover(x0, x1, tile.busy[i] / 255, colour);
          last = null;
          continue;
        }
        this.fill(x0, x1, inkOf(this.bg, colour, tile.busy[i] / 255), isEvent && !ends);
        if (!isEvent) {
          last = null;
          continue;
        }
        if (isSame && last) {
          last.x1 = x1;
          last.end = origin + tile.x1[i] * bucket;
          last.goesOn = (last.goesOn & 1) | (ends ? 2 : 0);
          last.ns = last.goesOn ? 0 : last.end - last.start;
        } else {
          last = {
            x0, x1, y, h, name: tile.name[i], colour: style.colours[tile.cls[i]],
            start: origin + tile.x0[i] * bucket, end: origin + tile.x1[i] * bucket,
            ns: begins || ends ? 0 : (tile.x1[i] - tile.x0[i]) * bucket,
            goesOn: (begins ? 1 : 0) | (ends ? 2 : 0),
          };
          out.push(last);
        }
      }
    }
  }

  private mixed(tile: Tile, i: number, colours: Rgb[]): Rgb {
    let r = 0, g = 0, b = 0, sum = 0;
    for (let c = 0; c < 8; c++) {
      const share = tile.share![i * 8 + c];
      if (!share) continue;
      r += colours[c][0] * share;
      g += colours[c][1] * share;
      b += colours[c][2] * share;
      sum += share;
    }
    return sum ? [r / sum, g / sum, b / sum] : colours[0];
  }

  private fill(x0: number, x1: number, p: number, hasGap: boolean): void {
    const a = Math.max(0, Math.round(x0));
    let b = Math.min(this.width, Math.round(x1));
    if (hasGap && x1 - x0 >= 4 && b < this.width) b--;
    this.line.fill(p, a, Math.max(a + 1, b));
  }

  /** What is thinner than two pixels adds to the columns it touches. */
  private cover(x0: number, x1: number, busy: number, colour: Rgb): void {
    for (let x = Math.floor(x0); x <= x1 && x < this.width; x++) {
      if (x < 0) continue;
      const part = Math.max(0.02, Math.min(x1, x + 1) - Math.max(x0, x)) * busy;
      this.cov[x] += part;
      this.acc[3 * x] += part * colour[0];
      this.acc[3 * x + 1] += part * colour[1];
      this.acc[3 * x + 2] += part * colour[2];
    }
  }

  private tick(x: number, strength: number, colour: Rgb): void {
    const at = Math.round(x);
    if (at < 0 || at >= this.width) return;
    this.cov[at] = Math.max(this.cov[at], strength);
    for (let c = 0; c < 3; c++) this.acc[3 * at + c] = this.cov[at] * colour[c];
  }

  private thin(): void {
    const { cov, acc, line, bg } = this;
    for (let x = 0; x < this.width; x++) {
      const c = cov[x];
      if (c <= 0) continue;
      const s = 0.22 + 0.78 * Math.sqrt(Math.min(1, c));
      const r = bg[0] + (acc[3 * x] / c - bg[0]) * s;
      const g = bg[1] + (acc[3 * x + 1] / c - bg[1]) * s;
      const b = bg[2] + (acc[3 * x + 2] / c - bg[2]) * s;
      line[x] = ((255 << 24) | (clamp(b) << 16) | (clamp(g) << 8) | clamp(r)) >>> 0;
    }
  }

  private copyDown(y: number, h: number, top: number): void {
    const y1 = Math.min(this.height, y + h);
    for (let yy = Math.max(top, y, 0); yy < y1; yy++) this.px.set(this.line, yy * this.width);
  }

  /** Stacked heights instead of mixed colours: the share of time of each class, from the bottom up. */
  private stackLane(pieces: Piece[], from: number, nsPerPixel: number, y: number, h: number, top: number,
                    style: LaneStyle, boxes: Box[]): void {
    const colours = style.colours.map((c) => pixel(rgb(c)));
    const light = style.colours.map((c) => pixel(mix(this.bg, rgb(c), 0.55)));
    this.stack.fill(0);
    for (const { tile, from: pf, to: pt } of pieces) {
      const bucket = 2 ** tile.level;
      const origin = tile.tile * tileWidth(tile.level);
      const lo = (pf - origin) / bucket;
      const hi = (pt - origin) / bucket;
      const scale = bucket / nsPerPixel;
      const shift = (origin - from) / nsPerPixel;
      for (let i = firstAfter(tile, lo); i < tile.n && tile.x0[i] < hi; i++) {
        const x0 = Math.max(tile.x0[i], lo) * scale + shift;
        const x1 = Math.min(tile.x1[i], hi) * scale + shift;
        if (x1 < 0 || x0 >= this.width) continue;
        this.nRecords++;
        this.addStack(tile, i, x0, x1);
        if (tile.count[i] === 1) this.addStackBox(tile, i, x0, x1, y, h, style, boxes);
      }
    }
    for (let x = 0; x < this.width; x++) this.stackColumn(x, y, h, top, colours, light);
  }

  private addStackBox(tile: Tile, i: number, x0: number, x1: number, y: number, h: number, style: LaneStyle,
                      boxes: Box[]): void {
    const last = boxes[boxes.length - 1];
    const start = (tile.tile * tileWidth(0) + tile.x0[i]) * 2 ** tile.level;
    const end = (tile.tile * tileWidth(0) + tile.x1[i]) * 2 ** tile.level;
    if ((tile.goesOn[i] & 1) !== 0 && last && last.y === y && (last.goesOn & 2) !== 0 && last.name === tile.name[i]) {
      last.x1 = x1;
      last.end = end;
      last.goesOn = (last.goesOn & 1) | (tile.goesOn[i] & 2);
      last.ns = last.goesOn ? 0 : last.end - last.start;
      return;
    }
    if (x1 - x0 < 8) return;
    boxes.push({
      x0, x1, y, h, name: tile.name[i], colour: style.colours[tile.cls[i]], start, end,
      ns: tile.goesOn[i] ? 0 : (tile.x1[i] - tile.x0[i]) * 2 ** tile.level, goesOn: tile.goesOn[i],
    });
  }

  private addStack(tile: Tile, i: number, x0: number, x1: number): void {
    const busy = tile.busy[i] / 255;
    for (let x = Math.max(0, Math.floor(x0)); x <= x1 && x < this.width; x++) {
      const part = Math.max(0, Math.min(x1, x + 1) - Math.max(x0, x)) * busy;
      if (tile.share && tile.count[i] > 1) {
        for (let c = 0; c < 8; c++) this.stack[8 * x + c] += (part * tile.share[8 * i + c]) / 255;
      } else {
        this.stack[8 * x + tile.cls[i]] += part;
      }
    }
  }

  private stackColumn(x: number, y: number, h: number, top: number, colours: number[], light: number[]): void {
    let bottom = y + h;
    for (let c = 0; c < 8; c++) {
      const share = this.stack[8 * x + c];
      if (share < 0.004) continue;
      const size = Math.max(1, Math.round(Math.min(1, share) * h));
      for (let yy = bottom - 1; yy >= bottom - size && yy >= y; yy--) {
        if (yy < top || yy >= this.height || yy < 0) continue;
        // Time without a known cause is never solid.
        this.px[yy * this.width + x] = c === 7 && (x + yy) % 6 < 3 ? light[c] : colours[c];
      }
      bottom -= size;
    }
  }
}

function clamp(v: number): number {
  return v < 0 ? 0 : v > 255 ? 255 : v | 0;
}

function inkOf(bg: Rgb, colour: Rgb, share: number): number {
  return pixel(mix(bg, colour, 0.22 + 0.78 * Math.sqrt(share)));
}

/** Index of the first record of a tile that ends after `bucket`. */
export function firstAfter(tile: Tile, bucket: number): number {
  let low = 0;
  let high = tile.n;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (tile.x1[mid] > bucket || tile.x0[mid] >= bucket) high = mid;
    else low = mid + 1;
  }
  return low;
}

export function isLabelled(box: Box): boolean {
  return box.x1 - box.x0 >= LABEL_PIXELS;
}
