// Steps: one bar for each step, stacked by what its time went to; a click goes there.

import type { App } from "../app";
import { h } from "../dom";
import * as format from "../format";
import { IDLE_FAMILIES, T } from "../theme";
import { emptyState } from "../table";
import { type Context, type Panel, failure } from "./panel";
import { type Verdict, verdictOf } from "./verdict";

export interface Steps {
  /** number, start, end, time with work on a device; then what the step is made of: what no cause claims, and what each family does */
  steps: number[][];
  has_causes: boolean;
  n: number;
  /** how lull why found them: "marked by the program"; empty if it did not look */
  found?: string;
}

const lengthOf = (s: number[]): number => s[2] - s[1];

/**
 * How many of the first steps `lull why` leaves out as warm-up. It tells how many it looked at; where several loops
 * run at once, it looked at one of them, and which of the others are warm-up is not known.
 */
function warmUp(answer: Steps, v: Verdict | null): number {
  const isOneLoop = new Set(answer.steps.map((s) => s[0])).size === answer.steps.length;
  const left = answer.n - (v?.n_steps ?? 0);
  return v?.n_steps && isOneLoop && left > 0 && left <= answer.n / 2 ? Math.min(left, answer.steps.length - 1) : 0;
}

export function stepsOf(app: App): Promise<Steps> {
  return app.source.ask<Steps>("steps", { f: app.report || undefined });
}

const nWarmOf = async (app: App, answer: Steps): Promise<number> => warmUp(answer, answer.has_causes ? await verdictOf(app).catch(() => null) : null);

/** The step of median length; warm-up is left out. */
export async function medianOf(app: App, answer: Steps): Promise<number[] | null> {
  const steady = answer.steps.slice(await nWarmOf(app, answer));
  return [...steady].sort((a, b) => lengthOf(a) - lengthOf(b))[Math.floor(steady.length / 2)] ?? null;
}

function numbers(answer: Steps, steady: number[][]): string {
  const sorted = steady.map(lengthOf).sort((a, b) => a - b);
  const left = answer.steps.length - steady.length;
  const mean = sorted.reduce((a, b) => a + b, 0) / sorted.length;
  return [`${format.count(answer.n)} ${answer.n === 1 ? "step" : "steps"}${left ? `, the first${left > 1 ? ` ${left}` : ""} left out as warm-up` : ""}`,
    `mean ${format.duration(mean)}`, `median ${format.duration(sorted[Math.floor(sorted.length / 2)])}`,
    `fastest ${format.duration(sorted[0])}`, `slowest ${format.duration(sorted[sorted.length - 1])}`,
    ...(answer.found ? [answer.found] : [])].join(" · ");
}

/** A bar; of warm-up, only how long it took: causes are not looked for there. */
function bar({ app, timeline }: Context, s: number[], longest: number, isWarmUp: boolean, busyName: string): HTMLElement {
  const length = lengthOf(s);
  const height = (ns: number): string => `${(100 * ns) / length}%`;
  const parts = isWarmUp ? [] : [h("i", { style: { height: height(s[4]), background: T.busy } })];
  for (let c = 0; c < 8 && !isWarmUp; c++) {
    if (s[5 + c] > 0) parts.push(h("i", { class: c === 7 ? "hatched" : "", style: { height: height(s[5 + c]), background: T.idle[c] } }));
  }
  const name = `step ${s[0]}${isWarmUp ? ", warm-up" : ""}`;
  return h("button", {
    class: `step-bar${isWarmUp ? " warm-up" : ""}${length > longest ? " cut" : ""}`, style: { height: `${Math.max(2, Math.min(100, (100 * length) / longest))}%` },
    title: `${name}: ${format.duration(length)}${isWarmUp ? "" : `, ${busyName} ${format.percent(s[4] / length)}`}`, "aria-label": `${name}, ${format.duration(length)}`,
    onclick: () => {
      app.step = { from: s[1], to: s[2] };
      app.frame(app.step);
      timeline.canvas.focus({ preventScroll: true });
    },
  }, parts);
}

export const steps: Panel = {
  id: "steps",
  place: 20,
  title: "Steps",
  follows: ["verdict"],
  render: async (ctx) => {
    const { app } = ctx;
    try {
      const answer = await stepsOf(app);
      if (!answer.steps.length) {
        return emptyState("No steps were recorded",
          "Name them: lull_step(i) in C, torch.profiler's ProfilerStep, or an NVTX range around each iteration of the loop.");
      }
      const nWarm = await nWarmOf(app, answer);
      const steady = answer.steps.slice(nWarm);
      // Warm-up can take a thousand times as long: then its bar is cut, and the others can still be read.
      const longest = Math.max(...steady.map(lengthOf));
      // Time that no cause claims: copies and collectives that run alone have causes of their own.
      const busyName = answer.has_causes ? "computing" : "device busy";
      const v = answer.has_causes ? await verdictOf(app).catch(() => null) : null;
      const causes = (family: number): string => (v?.findings ?? []).filter((f) => f.family === family).map((f) => `${f.id}: ${f.title}`).join("\n");
      const sums = new Array<number>(9).fill(0);
      for (const s of steady) for (let c = 0; c < 9; c++) sums[c] += s[4 + c];
      const all = steady.reduce((sum, s) => sum + lengthOf(s), 0);
      return h("div", { class: "panel steps" },
        h("div", { class: "panel-bar" },
          h("span", null, numbers(answer, steady)),
          h("div", { class: "legend" }, h("span", null, h("i", { class: "swatch", style: { background: T.busy } }), `${busyName} ${format.percent(sums[0] / all)}`),
            IDLE_FAMILIES.map((name, c) => (sums[c + 1] / all >= 0.0005 ? h("span", { title: causes(c) }, h("i", { class: "swatch", style: { background: T.idle[c] } }), `${c === 7 && !answer.has_causes ? "idle" : name} ${format.percent(sums[c + 1] / all)}`) : null)),
            nWarm ? h("span", null, h("i", { class: "swatch warm-up" }), "warm-up") : null)),
        h("div", { class: "step-axis" }, h("span", null, format.duration(longest)), h("span", null, "0")),
        h("div", { class: "step-bars", role: "group", "aria-label": "Steps" }, answer.steps.map((s, ix) => bar(ctx, s, longest, ix < nWarm, busyName))));
    } catch (e) {
      return failure(e);
    }
  },
};
