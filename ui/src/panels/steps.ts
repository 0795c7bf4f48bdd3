// Steps: one bar for each step, stacked by what its time went to; a click goes there.

import type { App } from "../app";
import { h } from "../dom";
import * as format from "../format";
import { IDLE_FAMILIES, T } from "../theme";
import { emptyState } from "../table";
import { type Context, type Panel, failure } from "./panel";
import { type Verdict, familyName, verdictOf } from "./verdict";

export interface Steps {
  /** the first ones: number, start, end, time with work on a device; then what the step is made of: what no cause claims, and what each family does */
  steps: number[][];
  has_causes: boolean;
  n: number;
  n_warm_up: number;
  /** of all steps but those of warm-up; `parts_ns` as in `steps` */
  steady?: { n: number; mean_ns: number; median_ns: number; min_ns: number; max_ns: number; sum_ns: number; parts_ns: number[] };
  /** one of median length */
  median?: number[];
  /** how lull why found them: "marked by the program"; empty if it did not look */
  found?: string;
}

const lengthOf = (s: number[]): number => s[2] - s[1];

export function stepsOf(app: App, which: { from?: number; to?: number; number?: number } = {}): Promise<Steps> {
  return app.source.ask<Steps>("steps", { ...which, f: app.report || undefined });
}

function numbers(answer: Steps, v: Verdict | null): string {
  const { n_warm_up: left, steady } = answer;
  // What the program marks begins on the host; lull why follows the same steps on the device.
  const [mean, onDevice] = [steady?.mean_ns, v?.n_steps ? v.step_ns : undefined].map((ns) => (ns ? format.duration(ns) : ""));
  const isOther = v?.n_steps === steady?.n && onDevice && onDevice !== mean;
  return [`${format.count(answer.n)} ${answer.n === 1 ? "step" : "steps"}${left ? `, the first${left > 1 ? ` ${left}` : ""} left out as warm-up` : ""}`,
    ...(steady ? [`mean ${mean}${isOther ? ` between marks, ${onDevice} on the device` : ""}`, `median ${format.duration(steady.median_ns)}`,
      `fastest ${format.duration(steady.min_ns)}`, `slowest ${format.duration(steady.max_ns)}`] : []),
    ...(answer.n > answer.steps.length ? [`only the first ${format.count(answer.steps.length)} are drawn`] : []),
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
      const nWarm = answer.n_warm_up;
      const steady = answer.steps.length > nWarm ? answer.steps.slice(nWarm) : answer.steps;
      // Warm-up can take a thousand times as long: then its bar is cut, and the others can still be read.
      const longest = Math.max(...steady.map(lengthOf));
      // Time that no cause claims: copies and collectives that run alone have causes of their own.
      const busyName = answer.has_causes ? "computing" : "device busy";
      const v = answer.has_causes ? await verdictOf(app).catch(() => null) : null;
      const causes = (family: number): string => (v?.findings ?? []).filter((f) => f.family === family).map((f) => `${f.id}: ${f.title}`).join("\n");
      const sums = answer.steady?.parts_ns ?? [];
      const all = answer.steady?.sum_ns ?? 1;
      return h("div", { class: "panel steps" },
        h("div", { class: "panel-bar" },
          h("span", null, numbers(answer, v)),
          h("div", { class: "legend" }, h("span", null, h("i", { class: "swatch", style: { background: T.busy } }), `${busyName} ${format.percent(sums[0] / all)}`),
            IDLE_FAMILIES.map((_, c) => (sums[c + 1] / all >= 0.0005 ? h("span", { title: causes(c) }, h("i", { class: "swatch", style: { background: T.idle[c] } }), `${c === 7 && !answer.has_causes ? "idle" : familyName(v, c)} ${format.percent(sums[c + 1] / all)}`) : null)),
            nWarm ? h("span", null, h("i", { class: "swatch warm-up" }), "warm-up") : null)),
        h("div", { class: "step-axis" }, h("span", null, format.duration(longest)), h("span", null, "0")),
        h("div", { class: "step-bars", role: "group", "aria-label": "Steps" }, answer.steps.map((s, ix) => bar(ctx, s, longest, ix < nWarm, busyName))));
    } catch (e) {
      return failure(e);
    }
  },
};
