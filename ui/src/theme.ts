// Colours: the only place that knows them. style.css has the same tokens for the DOM; a test computes
// the distances between them for normal sight and the three kinds of colour blindness.

export type Rgb = [number, number, number];

export const IDLE_FAMILIES = ["input", "copy", "sync", "launch", "host", "other ranks", "device", "unknown"];
export const WORK_CLASSES = [
  "matmul", "attention", "convolution", "elementwise, optimizer", "reduction", "collective", "copy", "other",
];

interface Tokens {
  bg: string; bg1: string; bg2: string; line: string; line2: string; busy: string;
  text: string; text2: string; text3: string; accent: string; accentBg: string; path: string;
  idle: string[]; work: string[]; ranges: string[];
  call: string[]; os: string[]; python: string; gil: string; sample: string; mark: string;
  running: string; waiting: string; runnable: string; curve: string;
}

export const LIGHT: Tokens = {
  bg: "#FFFFFF", bg1: "#F6F7F9", bg2: "#ECEFF3", line: "#DDE1E7", line2: "#EEF0F4", busy: "#CFD6DE",
  text: "#1A1E24", text2: "#535C68", text3: "#66707C", accent: "#0B5FCC", accentBg: "#E3EEFC", path: "#D6006C",
  idle: ["#E28400", "#2FB9FB", "#C30E1C", "#3D21B3", "#3C9B6C", "#A0578E", "#E5D569", "#9AA3AD"],
  work: ["#5A7DB8", "#A2C2E0", "#46736D", "#C9D3DA", "#94AD98", "#AC8FBC", "#C2AC72", "#9F9DA5"],
  ranges: ["#DBE3EC", "#CAD6E3", "#B7C7D9"],
  call: ["#C3CCD6", "#B4C0CE", "#C9B5BA", "#CCC3AC"], os: ["#CFC9D6", "#CCD2DA", "#DEDFE2", "#D2D5DA"],
  python: "#C6D8DA", gil: "#3C9B6C", sample: "#8FA0B3", mark: "#0B5FCC",
  running: "#8CC3A5", waiting: "#E3E6EA", runnable: "#3C9B6C", curve: "#5A7DB8",
};

export const DARK: Tokens = {
  bg: "#14171B", bg1: "#1A1E24", bg2: "#22272E", line: "#2D343D", line2: "#20252B", busy: "#3B444F",
  text: "#E7EAEE", text2: "#A9B2BD", text3: "#7F8A96", accent: "#6FB1FF", accentBg: "#1D3350", path: "#FF7DB8",
  idle: ["#F2A328", "#64D1F6", "#DC4336", "#5275FE", "#32AC77", "#C073AB", "#FEF387", "#5B6570"],
  work: ["#46639A", "#9AB5C8", "#2F8586", "#5F6268", "#6B8573", "#5D3E6C", "#8A7D54", "#464646"],
  ranges: ["#333C47", "#3F4B59", "#4C5A6B"],
  call: ["#4A5663", "#526377", "#6A4F55", "#5F5842"], os: ["#554F5C", "#4A5058", "#44484E", "#50545B"],
  python: "#3F5257", gil: "#32AC77", sample: "#64748A", mark: "#6FB1FF",
  running: "#3F7D5F", waiting: "#343A42", runnable: "#32AC77", curve: "#7FA3DD",
};

export let T: Tokens = LIGHT;

export function useTheme(isDark: boolean): void {
  T = isDark ? DARK : LIGHT;
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  inks.clear();
  palettes.clear();
  contrast.clear();
}

export function rgb(hex: string): Rgb {
  const n = parseInt(hex.slice(1), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

/** A pixel as a Uint32Array over ImageData has it. */
export function pixel([r, g, b]: Rgb): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

export function mix(a: Rgb, b: Rgb, share: number): Rgb {
  return [0, 1, 2].map((i) => Math.round(a[i] + (b[i] - a[i]) * share)) as Rgb;
}

const inks = new Map<string, Uint32Array>();

/**
 * What a share of 0 to 255 of a colour looks like on the background. The floor keeps a single short
 * call visible, the root keeps an eighth and a half apart.
 */
export function ink(colour: string): Uint32Array {
  let table = inks.get(colour);
  if (!table) {
    table = new Uint32Array(256);
    for (let i = 0; i < 256; i++) {
      table[i] = pixel(mix(rgb(T.bg), rgb(colour), 0.22 + 0.78 * Math.sqrt(i / 255)));
    }
    inks.set(colour, table);
  }
  return table;
}

const palettes = new Map<string, string[]>();

/** The colours of the classes of a kind of row; `line` is the depth of the lane. */
export function palette(kind: string, line: number): string[] {
  const key = kind + ":" + line;
  let colours = palettes.get(key);
  if (!colours) {
    colours = paletteOf(kind, line);
    while (colours.length < 8) colours.push(colours[colours.length - 1]);
    palettes.set(key, colours);
  }
  return colours;
}

function paletteOf(kind: string, line: number): string[] {
  switch (kind) {
    case "kernel": case "copy": case "memset": case "graph": return [...T.work];
    case "idle": return [...T.idle];
    case "device": case "busy": return [T.busy];
    case "collective": return [T.work[5]];
    case "range": case "projected": case "step": return [T.ranges[line % 3]];
    case "call": return [...T.call];
    case "os": return [...T.os];
    case "gil": return [T.gil];
    case "op": case "pycall": return [line % 2 ? hexMix(T.python, T.ranges[2], 0.35) : T.python];
    case "cpu": return [T.running, T.runnable];
    case "sample": case "pysample": return [T.sample];
    case "mark": return [T.mark];
    default: return [T.busy];
  }
}

function hexMix(a: string, b: string, share: number): string {
  return "#" + mix(rgb(a), rgb(b), share).map((v) => v.toString(16).padStart(2, "0")).join("");
}

export function luminance([r, g, b]: Rgb): number {
  const f = (v: number) => (v <= 10.31475 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
}

const contrast = new Map<string, string>();

/** Dark or white, whichever reads better on a box of this colour. */
export function inkOn(colour: string): string {
  let found = contrast.get(colour);
  if (!found) {
    const l = luminance(rgb(colour));
    found = (l + 0.05) / (luminance(rgb("#0E1116")) + 0.05) >= 1.05 / (l + 0.05) ? "#0E1116" : "#FFFFFF";
    contrast.set(colour, found);
  }
  return found;
}
