// Colours that mean something can be told apart, by people with normal sight and with each kind of colour
// blindness, and text on boxes can be read. Computed from the token file itself.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { check, main, root } from "./support.mjs";

const source = readFileSync(join(root, "ui/src/theme.ts"), "utf8");
const css = readFileSync(join(root, "ui/src/style.css"), "utf8");

function tokens(name) {
  const body = new RegExp(`export const ${name}: Tokens = \\{([\\s\\S]*?)\\n\\};`).exec(source)[1];
  const list = (key) => new RegExp(`\\b${key}: \\[([^\\]]*)\\]`).exec(body)[1].match(/#[0-9A-F]{6}/gi);
  const one = (key) => new RegExp(`\\b${key}: "(#[0-9A-Fa-f]{6})"`).exec(body)[1];
  return { list, one, body };
}

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const gamma = (v) => (v <= 0.0031308 ? v * 12.92 : 1.055 * Math.max(v, 0) ** (1 / 2.4) - 0.055);

// Machado, Oliveira and Fernandes 2009, full severity, on linear RGB.
const SIGHT = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

function lab(hex, sight) {
  const lin = rgb(hex).map(linear);
  const [r, g, b] = SIGHT[sight].map((row) => linear(Math.min(1, Math.max(0, gamma(row[0] * lin[0] + row[1] * lin[1] + row[2] * lin[2])))));
  const f = (t) => (t > 216 / 24389 ? Math.cbrt(t) : (t * 24389 / 27 + 16) / 116);
  const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047);
  const y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
  const z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

/** CIEDE2000. */
function distance([l1, a1, b1], [l2, a2, b2]) {
  const rad = Math.PI / 180;
  const c = (Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2;
  const g = 0.5 * (1 - Math.sqrt(c ** 7 / (c ** 7 + 25 ** 7)));
  const [p1, p2] = [a1 * (1 + g), a2 * (1 + g)];
  const [c1, c2] = [Math.hypot(p1, b1), Math.hypot(p2, b2)];
  const angle = (a, b) => (a === 0 && b === 0 ? 0 : (Math.atan2(b, a) / rad + 360) % 360);
  const [h1, h2] = [angle(p1, b1), angle(p2, b2)];
  let dh = c1 * c2 === 0 ? 0 : h2 - h1;
  if (dh > 180) dh -= 360;
  if (dh < -180) dh += 360;
  let h = h1 + h2;
  if (c1 * c2 !== 0) h = Math.abs(h1 - h2) <= 180 ? h / 2 : h < 360 ? (h + 360) / 2 : (h - 360) / 2;
  const [dl, dc, dH] = [l2 - l1, c2 - c1, 2 * Math.sqrt(c1 * c2) * Math.sin((dh / 2) * rad)];
  const [l, cm] = [(l1 + l2) / 2, (c1 + c2) / 2];
  const t = 1 - 0.17 * Math.cos((h - 30) * rad) + 0.24 * Math.cos(2 * h * rad) + 0.32 * Math.cos((3 * h + 6) * rad) - 0.2 * Math.cos((4 * h - 63) * rad);
  const sl = 1 + (0.015 * (l - 50) ** 2) / Math.sqrt(20 + (l - 50) ** 2);
  const [sc, sh] = [1 + 0.045 * cm, 1 + 0.015 * cm * t];
  const rt = -2 * Math.sqrt(cm ** 7 / (cm ** 7 + 25 ** 7)) * Math.sin(60 * rad * Math.exp(-(((h - 275) / 25) ** 2)));
  return Math.sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (dH / sh) ** 2 + rt * (dc / sc) * (dH / sh));
}

function closest(colours, sight) {
  let best = { d: Infinity };
  colours.forEach((a, i) => colours.slice(i + 1).forEach((b) => {
    const d = distance(lab(a, sight), lab(b, sight));
    if (d < best.d) best = { d: Math.round(d * 10) / 10, a, b };
  }));
  return best;
}

const luminance = (hex) => { const [r, g, b] = rgb(hex).map(linear); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const contrast = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };

function colours(name) {
  const t = tokens(name);
  check(!/#[0-9A-Fa-f]{3}"/.test(t.body), `${name}: all colours have six digits`);
  // The last family, time without a known cause, is told by its pattern: it is never solid.
  const causes = t.list("idle").slice(0, 7);
  for (const sight of Object.keys(SIGHT)) {
    const idle = closest(causes, sight);
    check(idle.d >= (sight === "normal" ? 20 : 12), `${name}, ${sight}: causes can be told apart`, idle);
    const work = closest([...t.list("work"), ...causes], sight);
    check(work.d >= 8.5, `${name}, ${sight}: kinds of work can be told apart`, work);
  }
  for (const key of ["text", "text2", "text3"]) {
    const bad = ["bg", "bg1"].map((bg) => contrast(t.one(key), t.one(bg))).find((c) => c < 4.5);
    check(name === "DARK" && key === "text3" || bad === undefined, `${name}: ${key} can be read`, bad);
  }
  for (const colour of [...t.list("idle"), ...t.list("work"), ...t.list("ranges"), ...t.list("call"), ...t.list("os")]) {
    const best = Math.max(contrast(colour, "#0E1116"), contrast(colour, "#FFFFFF"));
    check(best >= 4.3, `${name}: a label on ${colour} can be read`, best);
  }
  check(css.includes(`--bg: ${t.one("bg")}`) && css.includes(`--accent: ${t.one("accent")}`) && css.includes(`--line: ${t.one("line")}`),
    `${name}: the style sheet has the same tokens`);
}

await main({ light_colours: () => colours("LIGHT"), dark_colours: () => colours("DARK") });
