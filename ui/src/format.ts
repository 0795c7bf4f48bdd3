// Numbers as people read them.

const UNITS: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

/** Three or four digits: 24.7 ms, 1.23 s, 850 ns. */
export function duration(ns: number): string {
  const sign = ns < 0 ? "−" : "";
  const v = Math.abs(ns);
  if (v >= 120e9) {
    const minutes = Math.floor(v / 60e9);
    return `${sign}${minutes} min ${Math.round((v - minutes * 60e9) / 1e9)} s`;
  }
  for (const [size, unit] of UNITS) {
    // What would be rounded to 1000 is one of the next unit.
    if (v >= size * 0.9995 || size === 1) return `${sign}${digits(v / size)} ${unit}`;
  }
  return "0 ns";
}

function digits(v: number): string {
  if (v === 0) return "0";
  if (v >= 100 || Number.isInteger(v)) return String(Math.round(v));
  return v >= 10 ? v.toFixed(1) : v.toFixed(2);
}

/** A moment, all digits that matter at this zoom: 1.404 572 s. */
export function moment(ns: number, perPixel: number): string {
  const decimals = Math.max(0, Math.min(9, 9 - Math.floor(Math.log10(Math.max(perPixel, 1)))));
  const text = (ns / 1e9).toFixed(Math.min(decimals, 9));
  const [whole, rest] = text.split(".");
  if (!rest) return `${whole} s`;
  return `${whole}.${rest.replace(/(\d{3})(?=\d)/g, "$1\u2009")} s`;
}

/** Labels of a ruler whose ticks are `step` apart. */
export function tick(ns: number, step: number): string {
  for (const [size, unit] of UNITS) {
    // The unit of the moment, as long as that needs no more than six decimals: 11.432 490 s, not 11 432 490 µs.
    if (step >= size || (ns >= size && step >= size / 1e6) || size === 1) {
      const decimals = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
      return `${group((ns / size).toFixed(decimals))} ${unit}`;
    }
  }
  return "";
}

/** Digits in groups of three. */
export function group(text: string): string {
  const [whole, rest] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, "\u2009");
  return rest ? `${grouped}.${rest.replace(/(\d{3})(?=\d)/g, "$1\u2009")}` : grouped;
}

/** 24.6 M, 6.1 k. */
export function count(n: number): string {
  if (n < 10000) return group(String(n));
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]] as [number, string][]) {
    if (n >= size) return `${digits(n / size)} ${unit}`;
  }
  return String(n);
}

export function bytes(n: number): string {
  const v = Math.abs(n);
  for (const [size, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]] as [
    number,
    string,
  ][]) {
    if (v >= size) return `${digits(n / size)} ${unit}`;
  }
  return `${digits(n)} B`;
}

export function percent(share: number): string {
  const v = share * 100;
  // What is nearly all is not all of it; as lull_format_share() has it.
  if (v >= 99.5 && v < 100) return `${Math.min(v, 99.9).toFixed(1)} %`;
  return `${v >= 10 || v === 0 ? Math.round(v) : v.toFixed(1)} %`;
}

export function value(v: number, unit: string): string {
  if (unit === "B") return bytes(v);
  if (unit === "B/s") return `${bytes(v)}/s`;
  if (unit === "ns") return duration(v);
  return `${Math.abs(v) >= 1000 ? count(Math.round(v)) : digits(v)} ${unit}`.trim();
}

/** A sentence of `lull why`, whose micro is an u. */
export const prose = (text: string): string => text.replace(/(\d) us\b/g, "$1 µs");

/** Names come from programs: control and direction characters would garble a line. */
export function clean(text: string, max = 512): string {
  const cut = text.length > max ? text.slice(0, max) + "…" : text;
  return cut.replace(/[\u0000-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, " ");
}

/** Short names of kernels, which the server makes. */
const shorts = new Map<string, string>();

export function learn(name: string, short: string): void {
  shorts.set(name, short);
}

/** The short name of a kernel, if it is known and another. */
export function shortOf(name: string): string | undefined {
  return shorts.get(name);
}

/** What matters of a name: of kernels what the server says, of others without types and arguments. */
export function short(name: string): string {
  const known = shorts.get(name);
  if (known !== undefined) return known;
  let text = clean(name, 400).replace(/^void /, "").replaceAll("(anonymous namespace)::", "");
  const angle = text.indexOf("<");
  const paren = text.indexOf("(");
  let end = text.length;
  if (angle > 0) end = Math.min(end, angle);
  if (paren > 0) end = Math.min(end, paren);
  text = text.slice(0, end);
  const colons = text.lastIndexOf("::");
  if (colons > 0 && !text.startsWith("aten::") && (angle > 0 || paren > 0)) text = text.slice(colons + 2);
  return text || clean(name, 80);
}
