// A screenshot as a PNG of at most 256 colours: a third of the bytes, and no difference that one sees.

import { crc32, deflateSync, inflateSync } from "node:zlib";

const HEAD = 8; // bytes before the first chunk

function chunks(png) {
  const all = [];
  for (let at = HEAD; at < png.length; at += 12 + png.readUInt32BE(at)) all.push([png.toString("latin1", at + 4, at + 8), png.subarray(at + 8, at + 8 + png.readUInt32BE(at))]);
  return all;
}

/** The pixels of a PNG of 8 bits a channel, three or four channels, as RGB. */
function decode(png) {
  const all = chunks(png);
  const head = all.find(([type]) => type === "IHDR")[1];
  const [width, height, depth, kind] = [head.readUInt32BE(0), head.readUInt32BE(4), head[8], head[9]];
  if (depth !== 8 || (kind !== 2 && kind !== 6)) throw new Error(`a PNG of another kind: ${depth} bits, ${kind}`);
  const n = kind === 6 ? 4 : 3;
  const from = inflateSync(Buffer.concat(all.filter(([type]) => type === "IDAT").map(([, bytes]) => bytes)));
  const line = width * n;
  const rgb = Buffer.alloc(width * height * 3);
  let above = Buffer.alloc(line);
  for (let y = 0; y < height; y++) {
    const filter = from[y * (line + 1)];
    const row = Buffer.from(from.subarray(y * (line + 1) + 1, (y + 1) * (line + 1)));
    for (let x = 0; x < line; x++) {
      const [left, up, corner] = [x >= n ? row[x - n] : 0, above[x], x >= n ? above[x - n] : 0];
      row[x] += [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
    }
    for (let x = 0; x < width; x++) row.copy(rgb, 3 * (y * width + x), n * x, n * x + 3);
    above = row;
  }
  return { width, height, rgb };
}

function paeth(a, b, c) {
  const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

const FAMILIES = 176; // of similar colours that are there with one each: rare ones, too

/** One colour of each family, those that most pixels have besides, and for each colour the one of them that is nearest. */
function choose(rgb) {
  const counts = new Map();
  for (let i = 0; i < rgb.length; i += 3) {
    const colour = rgb.readUIntBE(i, 3);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const parts = (c) => [c >> 16, (c >> 8) & 255, c & 255];
  const sorted = [...counts].sort((a, b) => b[1] - a[1]).map(([colour]) => colour);
  const families = new Map();
  for (const colour of sorted) {
    const family = parts(colour).map((v) => v >> 4).join();
    families.set(family, { first: families.get(family)?.first ?? colour, n: (families.get(family)?.n ?? 0) + counts.get(colour) });
  }
  const firsts = [...families.values()].sort((a, b) => b.n - a.n).slice(0, FAMILIES).map((f) => f.first);
  const palette = [...new Set([...firsts, ...sorted])].slice(0, 256);
  const far = (a, b) => parts(a).reduce((sum, v, i) => sum + (v - parts(b)[i]) ** 2, 0);
  const index = new Map([...counts.keys()].map((colour) => [colour, palette.reduce((best, p, i) => (far(p, colour) < far(palette[best], colour) ? i : best), 0)]));
  return { palette, index };
}

function chunk(type, bytes) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), bytes]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(bytes.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc32(body), body.length + 4);
  return out;
}

export function smaller(png) {
  const { width, height, rgb } = decode(png);
  const { palette, index } = choose(rgb);
  const head = Buffer.from(chunks(png)[0][1]);
  [head[8], head[9]] = [8, 3];
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) lines[y * (width + 1) + 1 + x] = index.get(rgb.readUIntBE(3 * (y * width + x), 3));
  const colours = Buffer.from(palette.flatMap((c) => [c >> 16, (c >> 8) & 255, c & 255]));
  return Buffer.concat([png.subarray(0, HEAD), chunk("IHDR", head), chunk("PLTE", colours), chunk("IDAT", deflateSync(lines, { level: 9, memLevel: 9 })), chunk("IEND", Buffer.alloc(0))]);
}
