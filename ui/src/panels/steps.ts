// Steps: one bar for each step, stacked by what its time went to; a click goes there.

import { h } from "../dom";
import * as format from "../format";
import { IDLE_FAMILIES, T } from "../theme";
import { emptyState } from "../table";
import { type Panel, failure } from "./panel";

interface Steps {
  /** number, start, end, busy, then idle by family */
  steps: number[][];
  has_causes: boolean;
  n: number;
}

export const steps: Panel = {
  id: "steps",
  title: "Steps",
  follows: ["verdict"],
  render: async ({ app, timeline }) => {
    try {
      const answer = await app.source.ask<Steps>("steps", { f: app.report || undefined });
      if (!answer.steps.length) {
        return emptyState("No steps were recorded",
          "Name them: lull_step(i) in C, torch.profiler's ProfilerStep, or an NVTX range for each turn of the loop.");
      }
      const longest = Math.max(...answer.steps.map((s) => s[2] - s[1]));
      const sorted = answer.steps.map((s) => s[2] - s[1]).sort((a, b) => a - b);
      const median = sorted[Math.floor(sorted.length / 2)];
      const bars = h("div", { class: "step-bars", role: "list" }, answer.steps.map((s) => {
        const length = s[2] - s[1];
        const parts = [h("i", { style: { height: `${(100 * s[3]) / length}%`, background: T.busy } })];
        for (let c = 0; c < 8; c++) {
          if (s[4 + c] > 0) parts.push(h("i", { class: c === 7 ? "hatched" : "", style: { height: `${(100 * s[4 + c]) / length}%`, background: T.idle[c] } }));
        }
        return h("button", {
          class: "step-bar", role: "listitem", style: { height: `${Math.max(2, (100 * length) / longest)}%` },
          title: `step ${s[0]}: ${format.duration(length)}, busy ${format.percent(s[3] / length)}`, "aria-label": `step ${s[0]}, ${format.duration(length)}`,
          onclick: () => {
            app.step = { from: s[1], to: s[2] };
            app.frame(app.step);
            timeline.canvas.focus({ preventScroll: true });
          },
        }, parts);
      }));
      const sums = new Array<number>(9).fill(0);
      for (const s of answer.steps) for (let c = 0; c < 9; c++) sums[c] += s[3 + c];
      const all = answer.steps.reduce((sum, s) => sum + s[2] - s[1], 0);
      return h("div", { class: "panel steps" },
        h("div", { class: "panel-bar" },
          h("span", null, `${format.count(answer.n)} steps · median ${format.duration(median)} · fastest ${format.duration(sorted[0])} · slowest ${format.duration(longest)}`),
          h("div", { class: "legend" }, h("span", null, h("i", { class: "swatch", style: { background: T.busy } }), `device busy ${format.percent(sums[0] / all)}`),
            IDLE_FAMILIES.map((name, c) => (sums[c + 1] / all >= 0.0005 ? h("span", null, h("i", { class: "swatch", style: { background: T.idle[c] } }), `${c === 7 && !answer.has_causes ? "idle" : name} ${format.percent(sums[c + 1] / all)}`) : null)))),
        h("div", { class: "step-axis" }, h("span", null, format.duration(longest)), h("span", null, "0")), bars);
    } catch (e) {
      return failure(e);
    }
  },
};
