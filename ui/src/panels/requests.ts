// Requests of a server: how long they take, when, and a slow one beside a typical one; a click shows it on the timeline.

import { h, s } from "../dom";
import * as format from "../format";
import { T } from "../theme";
import { emptyState } from "../table";
import { type Context, type Panel, failure } from "./panel";

interface Requests {
  n: number;
  p50: number;
  p99: number;
  /** index of a typical one */
  usual: number;
  /** word, and what it means */
  parts: [string, string][];
  /** the fastest and the slowest of all, and how many are in each bin between them */
  lengths: { least: number; most: number; counts: number[] };
  causes: { part: string; because: string; fix: string; n: number; example: number }[];
  /** id, start, end, first token, then the time of each part */
  requests: number[][];
}

const W = 460;
const H = 130;
/** A request is slow if it takes more than this many medians, as in `lull requests`. */
const SLOW = 1.5;
const FIRST_PART = 4;

const latency = (r: number[]): number => r[2] - r[1];

/** A colour for each part: those of idle time by what they are, those of work for the rest. */
function colorOf(part: string): string {
  const idle = ["cpu", "alloc", "gc", "launch", "host", "queue", "others", "wait"].indexOf(part);
  const work = ["gpu", "", "load", "", "compile", "lock", "copy"].indexOf(part);
  return idle >= 0 ? T.idle[idle] : T.work[Math.max(0, work)];
}

/** The fastest, the one in the middle of the scale, and the slowest. */
function latencies(answer: Requests): [number, number, number] {
  const { least, most } = answer.lengths;
  return [least, Math.sqrt(least * most), most];
}

/** From the first request to the last. */
function arrivals(answer: Requests): number {
  const starts = answer.requests.map((r) => r[1]);
  return Math.max(...starts) - Math.min(...starts);
}

/** What the ends of a chart, and its middle, stand for. */
const axis = (from: number, middle: number, to: number): HTMLElement => h("div", { class: "request-axis" }, [from, middle || (from + to) / 2, to].map((ns) => h("span", null, format.duration(ns))));

function histogram(answer: Requests, pick: (r: number[]) => void): SVGElement {
  // Widths grow, so that a median and a tail of a hundred medians are both to be seen. Counts are those of all requests:
  // of those that are drawn as dots, the slowest are too many.
  const { least, most, counts } = answer.lengths;
  const n = counts.length;
  const ratio = Math.max(1.01, most / least);
  const bound = (i: number): number => least * ratio ** (i / n);
  const slowest = new Map<number, number[]>();
  for (const r of answer.requests) {
    const i = Math.min(n - 1, Math.floor((n * Math.log(Math.max(1, latency(r) / least))) / Math.log(ratio)));
    if (latency(r) >= latency(slowest.get(i) ?? r)) slowest.set(i, r);
  }
  const tallest = Math.max(...counts);
  const bars = counts.map((count, i) => (count ? s("rect", {
    class: bound(i) > SLOW * answer.p50 ? "slow" : "", x: (W * i) / n, width: W / n - 1, y: H - (H * count) / tallest, height: (H * count) / tallest,
    onclick: () => { const r = slowest.get(i); if (r) pick(r); },
  }, s("title", null, `${format.duration(bound(i))} to ${format.duration(bound(i + 1))}: ${format.count(count)}`)) : null));
  return s("svg", { viewBox: `0 0 ${W} ${H}`, class: "request-chart histogram", role: "img", "aria-label": "How many requests take how long" }, bars);
}

function scatter(answer: Requests, pick: (r: number[]) => void): SVGElement {
  const first = Math.min(...answer.requests.map((r) => r[1]));
  const span = Math.max(1, ...answer.requests.map((r) => r[1] - first));
  const most = Math.max(...answer.requests.map(latency));
  const dots = answer.requests.map((r) => s("circle", {
    class: latency(r) > SLOW * answer.p50 ? "slow" : "", cx: 3 + ((W - 6) * (r[1] - first)) / span, cy: H - 3 - ((H - 6) * latency(r)) / most, r: 2.5,
    onclick: () => pick(r),
  }, s("title", null, `request ${r[0]}: ${format.duration(latency(r))}`)));
  return s("svg", { viewBox: `0 0 ${W} ${H}`, class: "request-chart scatter", role: "img", "aria-label": "Latency of requests over time" }, dots);
}

/** What the time of a request went to, as a bar whose length is its latency. */
function bar(answer: Requests, name: string, r: number[], longest: number, show: (r: number[]) => void): HTMLElement {
  const parts = answer.parts.map(([word, meaning], i) => ({ word, meaning, ns: r[FIRST_PART + i] })).filter((p) => p.ns > 0);
  const most = [...parts].sort((a, b) => b.ns - a.ns).slice(0, 4);
  return h("div", { class: "request-row" },
    h("button", { onclick: () => show(r), title: "Show it on the timeline" }, `${name} ${r[0]}`),
    h("span", { class: "request-bar" }, h("span", { class: "request-parts", style: { width: `${(100 * latency(r)) / longest}%` } },
      parts.map((p) => h("i", { style: { width: `${(100 * p.ns) / latency(r)}%`, background: colorOf(p.word) }, title: `${p.word} (${p.meaning}): ${format.duration(p.ns)}` })))),
    h("span", { class: "request-text" }, `${format.duration(latency(r))}: ${most.map((p) => `${p.word} ${format.duration(p.ns)}`).join(", ")}`));
}

function causes(answer: Requests, pick: (r: number[]) => void): HTMLElement {
  if (!answer.causes.length) return h("p", { class: "small" }, "No cause of slow requests passes the test.");
  return h("ul", { class: "request-causes" }, answer.causes.map((c) => h("li", null,
    h("button", { onclick: () => pick(answer.requests[c.example]) }, `${c.part}: ${format.count(c.n)} slow`),
    h("span", null, ` ${c.because}. Fix: ${c.fix}.`))));
}

function view(ctx: Context, answer: Requests): HTMLElement {
  const { app, timeline } = ctx;
  const beside = h("div", { class: "request-beside" });
  const show = (r: number[]): void => {
    app.step = { from: r[1], to: r[2] };
    app.frame(app.step);
    timeline.canvas.focus({ preventScroll: true });
  };
  const slowest = answer.requests.reduce((a, b) => (latency(b) > latency(a) ? b : a));
  const put = (r: number[]): void => {
    const usual = answer.requests[answer.usual];
    const longest = Math.max(latency(r), latency(usual));
    beside.replaceChildren(bar(answer, r === slowest ? "slowest: request" : "request", r, longest, show), bar(answer, "typical: request", usual, longest, show));
  };
  const pick = (r: number[]): void => {
    put(r);
    show(r);
  };
  put(slowest);
  const shown = answer.requests.length < answer.n ? `, ${format.count(answer.requests.length)} of them drawn` : "";
  return h("div", { class: "panel requests" },
    h("div", { class: "panel-bar" }, h("span", null, `${format.count(answer.n)} requests${shown} · p50 ${format.duration(answer.p50)} · p99 ${format.duration(answer.p99)}`),
      h("div", { class: "legend" }, answer.parts.filter((_, i) => answer.requests.some((r) => r[FIRST_PART + i] > 0.01 * latency(r))).map(([word]) =>
        h("span", null, h("i", { class: "swatch", style: { background: colorOf(word) } }), word)))),
    h("div", { class: "request-charts" },
      h("figure", null, h("figcaption", null, "how many take how long; bars cover more to the right"), histogram(answer, pick), axis(...latencies(answer))),
      h("figure", null, h("figcaption", null, `latency by arrival, up to ${format.duration(latencies(answer)[2])}; a click shows it on the timeline`), scatter(answer, pick), axis(0, 0, arrivals(answer)))),
    beside, causes(answer, pick));
}

export const requests: Panel = {
  id: "requests",
  place: 25,
  title: "Requests",
  isAbsent: (app) => !app.meta.has_requests,
  render: async (ctx) => {
    if (!ctx.app.meta.has_requests) {
      return emptyState("No requests were recorded",
        "Requests of Python's web servers are found as they are; others are named with lull.request() in Python or lull_request() in C.");
    }
    try {
      return view(ctx, await ctx.app.source.ask<Requests>("requests", { f: ctx.app.report || undefined }));
    } catch (e) {
      return failure(e);
    }
  },
};
