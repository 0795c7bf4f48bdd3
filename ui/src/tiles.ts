// Tiles: what rows are painted from. Asked for in one request a frame, kept, never blank: where a tile
// is missing, the next coarser one that is there is drawn.

import type { Piece } from "./paint";
import type { Source } from "./source";
import type { Span } from "./types";

export const TILE_BUCKETS = 512;
const GOES_ON = 0x80000000;
const CACHE_BYTES = 64 << 20;
const MAX_TILES = 4000; // of one request; the server takes twice as many

/** Records of one lane in one tile, as columns. */
export interface Tile {
  level: number;
  tile: number;
  n: number;
  x0: Float64Array; // in buckets from the start of the tile
  x1: Float64Array;
  name: Uint32Array;
  count: Uint16Array;
  busy: Uint8Array;
  cls: Uint8Array;
  goesOn: Uint8Array; // 1 from before, 2 after
  share: Uint8Array | null;
  used: number;
  isPinned: boolean;
}

function bytesOf(t: Tile): number {
  return 200 + t.n * 29 + (t.share ? t.share.length : 0);
}

/** Take an answer apart; the records are copied, so that one small tile does not hold a megabyte. */
export function decodeTiles(buffer: ArrayBuffer, hasShares: (lane: number) => boolean): { lane: number; tile: Tile }[] {
  const view = new DataView(buffer);
  const out: { lane: number; tile: Tile }[] = [];
  if (buffer.byteLength < 16 || view.getUint32(0, true) !== 0x314c544c) throw new Error("not a tile answer");
  const n = view.getUint32(4, true);
  const level = view.getUint8(8);
  for (let i = 0; i < n; i++) {
    const at = 16 + 16 * i;
    const lane = view.getUint32(at, true);
    const count = view.getUint32(at + 8, true);
    const offset = view.getUint32(at + 12, true);
    const u32 = new Uint32Array(buffer, offset, count * 4);
    const u8 = new Uint8Array(buffer, offset, count * 16);
    const t: Tile = {
      level, tile: view.getUint32(at + 4, true), n: count,
      x0: new Float64Array(count), x1: new Float64Array(count), name: new Uint32Array(count),
      count: new Uint16Array(count), busy: new Uint8Array(count), cls: new Uint8Array(count),
      goesOn: new Uint8Array(count), share: null, used: 0, isPinned: false,
    };
    for (let k = 0; k < count; k++) {
      const x0 = u32[4 * k];
      const x1 = u32[4 * k + 1];
      t.x0[k] = (x0 & 0x7fffffff) / 256;
      t.x1[k] = (x1 & 0x7fffffff) / 256;
      t.goesOn[k] = (x0 >= GOES_ON ? 1 : 0) | (x1 >= GOES_ON ? 2 : 0);
      t.name[k] = u32[4 * k + 2];
      t.count[k] = u8[16 * k + 12] | (u8[16 * k + 13] << 8);
      t.busy[k] = u8[16 * k + 14];
      t.cls[k] = u8[16 * k + 15];
    }
    if (hasShares(lane)) t.share = new Uint8Array(buffer, offset + count * 16, count * 8).slice();
    out.push({ lane, tile: t });
  }
  return out;
}

export function levelFor(nsPerPixel: number): number {
  return Math.max(4, Math.min(48, Math.ceil(Math.log2(Math.max(nsPerPixel, 1e-9)))));
}

export function tileWidth(level: number): number {
  return TILE_BUCKETS * 2 ** level;
}

/** "0-15,40" of sorted numbers. */
export function ranges(numbers: number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < numbers.length;) {
    let j = i;
    while (j + 1 < numbers.length && numbers[j + 1] === numbers[j] + 1) j++;
    parts.push(i === j ? String(numbers[i]) : `${numbers[i]}-${numbers[j]}`);
    i = j + 1;
  }
  return parts.join(",");
}

interface Wanted {
  level: number;
  first: number;
  last: number;
  lanes: number[];
}

export class Tiles {
  private readonly levels: Map<number, Tile>[] = [];
  private readonly pending = new Set<string>();
  private inFlight: { wanted: Wanted; abort: AbortController }[] = [];
  private size = 0;
  private clock = 0;
  /** Told when tiles have arrived. */
  onChange: () => void = () => undefined;

  constructor(private readonly source: Source, private readonly report: number,
              private readonly shares: number[]) {}

  private static key(lane: number, tile: number): number {
    return lane * 2 ** 32 + tile;
  }

  get(lane: number, level: number, tile: number): Tile | undefined {
    const found = this.levels[level]?.get(Tiles.key(lane, tile));
    if (found) found.used = ++this.clock;
    return found;
  }

  /** The tile, or the next coarser one that is there. */
  nearest(lane: number, level: number, tile: number): Tile | undefined {
    for (let up = 0; up <= 44 && level + up <= 48; up++) {
      const found = this.levels[level + up]?.get(Tiles.key(lane, Math.floor(tile / 2 ** up)));
      if (found) {
        found.used = ++this.clock;
        return found;
      }
    }
    return undefined;
  }

  /** What there is to draw a lane in a span with: the exact tiles, or coarser ones where those are missing. */
  pieces(lane: number, level: number, span: Span): Piece[] {
    const width = tileWidth(level);
    const out: Piece[] = [];
    const last = Math.floor(span.to / width);
    for (let tile = Math.max(0, Math.floor(span.from / width)); tile <= last; tile++) {
      const found = this.nearest(lane, level, tile);
      if (!found) continue;
      // Neighbours that come from one coarser tile are one piece: less work, and labels are not cut.
      const before = out[out.length - 1];
      if (before && before.tile === found) before.to = (tile + 1) * width;
      else out.push({ tile: found, from: tile * width, to: (tile + 1) * width });
    }
    return out;
  }

  get isBusy(): boolean {
    return this.inFlight.length > 0;
  }

  get nPending(): number {
    return this.inFlight.length;
  }

  /**
   * Ask for what is missing of these lanes in [from, to). Returns false if something is missing and
   * has not been asked for yet, because two requests are on their way.
   */
  want(lanes: number[], level: number, from: number, to: number, isPinned = false): boolean {
    const width = tileWidth(level);
    const first = Math.max(0, Math.floor(from / width));
    const last = Math.max(first, Math.ceil(to / width) - 1);
    const missing = lanes.filter((lane) => {
      for (let tile = first; tile <= last; tile++) {
        if (!this.levels[level]?.has(Tiles.key(lane, tile)) && !this.pending.has(`${level}:${lane}:${tile}`)) {
          return true;
        }
      }
      return false;
    });
    if (!missing.length) return true;
    if (this.inFlight.length >= 2) return false;
    const perLane = last - first + 1;
    const some = missing.slice(0, Math.max(1, Math.floor(MAX_TILES / perLane))).sort((a, b) => a - b);
    void this.fetch({ level, first, last, lanes: some }, isPinned);
    return some.length === missing.length;
  }

  /** Drop requests that no longer show anything of the view. */
  cancelOutside(level: number, from: number, to: number): void {
    for (const { wanted, abort } of this.inFlight) {
      const width = tileWidth(wanted.level);
      const isSeen = (wanted.last + 1) * width > from && wanted.first * width < to;
      if (!isSeen || Math.abs(wanted.level - level) > 4) abort.abort();
    }
  }

  private async fetch(wanted: Wanted, isPinned: boolean): Promise<void> {
    const abort = new AbortController();
    const entry = { wanted, abort };
    const keys: string[] = [];
    for (const lane of wanted.lanes) {
      for (let tile = wanted.first; tile <= wanted.last; tile++) keys.push(`${wanted.level}:${lane}:${tile}`);
    }
    keys.forEach((key) => this.pending.add(key));
    this.inFlight.push(entry);
    try {
      const buffer = await this.source.bytes(
        "tiles",
        { l: wanted.level, t: `${wanted.first}-${wanted.last}`, r: ranges(wanted.lanes), f: this.report || undefined },
        abort.signal,
      );
      for (const { lane, tile } of decodeTiles(buffer, (l) => this.shares[l] === 1)) {
        tile.isPinned = isPinned;
        this.put(lane, tile);
      }
    } catch {
      // Aborted, or the server is gone: keep the tiles that are there.
    } finally {
      keys.forEach((key) => this.pending.delete(key));
      this.inFlight = this.inFlight.filter((e) => e !== entry);
      this.evict();
      this.onChange();
    }
  }

  put(lane: number, tile: Tile): void {
    const level = (this.levels[tile.level] ??= new Map<number, Tile>());
    const key = Tiles.key(lane, tile.tile);
    const old = level.get(key);
    if (old) this.size -= bytesOf(old);
    tile.used = ++this.clock;
    level.set(key, tile);
    this.size += bytesOf(tile);
  }

  /** Drop the tiles of these lanes. */
  forget(lanes: Set<number>): void {
    for (const map of this.levels) {
      map?.forEach((tile, key) => {
        if (!lanes.has(Math.floor(key / 2 ** 32))) return;
        map.delete(key);
        this.size -= bytesOf(tile);
      });
    }
  }

  private evict(): void {
    if (this.size < CACHE_BYTES) return;
    const all: { level: number; key: number; tile: Tile }[] = [];
    this.levels.forEach((map, level) => map.forEach((tile, key) => all.push({ level, key, tile })));
    all.sort((a, b) => a.tile.used - b.tile.used);
    for (const { level, key, tile } of all) {
      if (this.size < CACHE_BYTES * 0.7) break;
      if (tile.isPinned) continue;
      this.levels[level].delete(key);
      this.size -= bytesOf(tile);
    }
  }

  get bytes(): number {
    return this.size;
  }
}
