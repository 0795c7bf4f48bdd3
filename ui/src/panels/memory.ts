// Memory: the curves of devices and processes, with their peaks.

import { h } from "../dom";
import * as format from "../format";
import { emptyState } from "../table";
import { decodeCurve } from "../timeline";
import type { Context, Panel } from "./panel";

async function card(ctx: Context, ix: number): Promise<HTMLElement> {
  const { app } = ctx;
  const row = app.meta.rows[ix];
  const curve = decodeCurve(await app.source.bytes("curve", { c: row.curve, f: app.report || undefined }));
  let peak = 0;
  let at = 0;
  for (let i = 0; i < curve.max.length; i++) {
    if (curve.max[i] > peak) {
      peak = curve.max[i];
      at = curve.at[i];
    }
  }
  const owner = app.meta.rows[row.parent]?.title ?? "";
  return h("div", { class: "card" },
    h("b", null, `${owner} · ${row.title}`),
    h("div", { class: "pairs" },
      h("span", null, "peak"), h("span", null, format.value(peak, row.unit ?? "")),
      h("span", null, "at"), h("span", null, format.moment(at - app.meta.from, 1e5)),
      h("span", null, "at the end"), h("span", null, format.value(curve.last[curve.last.length - 1] ?? 0, row.unit ?? "")),
      h("span", null, "points"), h("span", null, format.count(curve.at.length))),
    h("button", {
      onclick: () => {
        app.openTo(ix);
        const length = app.view.to - app.view.from;
        app.show({ from: at - length / 2, to: at + length / 2 });
        ctx.timeline.showRow(ix);
      },
    }, "Go to the peak"));
}

export const memory: Panel = {
  id: "memory",
  title: "Memory",
  render: async (ctx) => {
    const rows = ctx.app.meta.rows.map((r, ix) => ({ r, ix })).filter(({ r }) => r.curve >= 0 && r.unit === "B");
    if (!rows.length) {
      return emptyState("No memory was recorded",
        "Memory of devices comes with CUDA tracing, memory of processes with every recording made by lull profile.");
    }
    const cards = await Promise.all(rows.slice(0, 40).map(({ ix }) => card(ctx, ix)));
    return h("div", { class: "cards" }, cards);
  },
};
