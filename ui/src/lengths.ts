// How long the events of a name or a row are: bars over a scale of equal ratios, as the server counts them.

import { h } from "./dom";
import * as format from "./format";

/** What `events` answers (src/page/answer_events.c). */
export interface Events {
  n: number;
  ns: number;
  is_cut: boolean;
  rows: [lane: number, start: number, end: number, name: number, cls: number][];
  bins: [from: number, to: number, n: number][];
}

/** `marked`: a length whose bar stands out. */
export function lengthsView(events: Events, marked?: number): HTMLElement | null {
  const bins = events.bins;
  if (bins.length < 2) return null;
  const most = Math.max(...bins.map((b) => b[2]));
  return h("div", { class: "lengths" },
    h("div", { class: "lengths-bars", role: "img", "aria-label": `${events.n} events, ${format.duration(bins[0][0])} to ${format.duration(bins[bins.length - 1][1])}` },
      bins.map(([from, to, n]) => h("i", {
        class: marked !== undefined && marked >= from && marked < to ? "on" : "", title: `${format.duration(from)} to ${format.duration(to)}: ${format.count(n)}`,
        // What is rare still shows.
        style: { height: n ? `${Math.max(6, (100 * n) / most)}%` : "0" },
      }))),
    h("div", { class: "lengths-axis" }, h("span", null, format.duration(bins[0][0])), h("span", null, format.duration(bins[bins.length - 1][1]))));
}
