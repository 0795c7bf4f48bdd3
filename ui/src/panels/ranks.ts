// Ranks: a job as a whole. Which rank was late and when, which rank delays the others and why, and the timelines of chosen ranks
// above each other on the job's clock.

import type { App } from "../app";
import { h } from "../dom";
import * as format from "../format";
import { type Heat, type Job, PARTS, type Parts, type Rank, atJob, atRank, jobOf, rankList } from "../job";
import { otherOf } from "../others";
import { type Side, Strips, rowsOf } from "../strips";
import { emptyState } from "../table";
import { T, mix, pixel, rgb } from "../theme";
import { type Context, type Panel, failure } from "./panel";

const MAX_CHOSEN = 8;
const WORDS: Record<(typeof PARTS)[number], string> = { compute: "computing", wait: "waiting for others", transfer: "transferring data", bubble: "pipeline bubbles", copy: "copies", idle: "idle for other reasons" };

function colourOf(part: (typeof PARTS)[number]): string {
  return { compute: T.busy, wait: T.idle[5], transfer: T.work[5], bubble: T.idle[6], copy: T.idle[1], idle: T.idle[0] }[part];
}

/** The choice is kept while other tabs are open. */
const choice: { ranks: number[]; step: number; kind: "late" | "waiting" } = { ranks: [], step: -1, kind: "late" };

function partsBar(parts: Parts): HTMLElement {
  return h("div", { class: "shares", title: PARTS.filter((p) => parts[p] > 0.002).map((p) => `${WORDS[p]} ${format.percent(parts[p])}`).join(", ") },
    PARTS.map((p) => (parts[p] > 0.002 ? h("i", { style: { width: `${parts[p] * 100}%`, background: colourOf(p) } }) : null)));
}

function legend(job: Job): HTMLElement {
  return h("div", { class: "legend" }, PARTS.filter((p) => job.shares[p] > 0.005).map((p) => h("span", null, h("i", { class: "swatch", style: { background: colourOf(p) } }), `${WORDS[p]} ${format.percent(job.shares[p])}`)));
}

/** Ranks by steps: the darker, the later; a click chooses the rank and the step. */
function heatMap(heat: Heat, job: Job, what: string, pick: (rankIx: number, step: number) => void): HTMLElement {
  const nRows = heat.rows.length;
  const nColumns = heat.rows[0]?.length ?? 0;
  if (!nRows || !nColumns || heat.most_ns <= 0) return h("div", { class: "heat-none small" }, `No rank was ${what === "late" ? "late" : "waiting"} in any step.`);
  const cell = Math.max(1, Math.min(16, Math.floor((window.innerHeight < 860 ? 96 : 150) / nRows)));
  const canvas = h("canvas", { class: "heat-canvas", role: "img", "aria-label": `${job.ranks.length} ranks by ${job.steps} steps`, style: { height: `${cell * nRows}px` } });
  canvas.width = nColumns;
  canvas.height = nRows;
  const image = new ImageData(nColumns, nRows);
  const px = new Uint32Array(image.data.buffer);
  const [low, high] = [rgb(T.bg2), rgb(T.idle[5])];
  heat.rows.forEach((row, y) => row.forEach((ns, x) => {
    px[y * nColumns + x] = ns === null ? pixel(rgb(T.bg)) : pixel(mix(low, high, Math.sqrt(Math.min(1, ns / heat.most_ns))));
  }));
  canvas.getContext("2d")!.putImageData(image, 0, 0);
  const tip = h("div", { class: "tip", hidden: true });
  // At its edge, and while something is dragged over it, the pointer may be outside.
  const cellAt = (offset: number, size: number, n: number): number => Math.max(0, Math.min(n - 1, Math.floor((offset / Math.max(1, size)) * n)));
  const at = (e: MouseEvent): { x: number; y: number } => ({
    x: cellAt(e.offsetX, canvas.clientWidth, nColumns),
    y: cellAt(e.offsetY, canvas.clientHeight, nRows),
  });
  const name = (y: number): string => {
    const ranks = job.ranks.slice(y * heat.ranks_a_row, (y + 1) * heat.ranks_a_row).map((r) => r.rank);
    return ranks.length > 1 ? `ranks ${rankList(ranks)}` : `rank ${ranks[0] ?? "?"}`;
  };
  const stepOf = (x: number): number => heat.first_step + x * heat.steps_a_column;
  canvas.addEventListener("pointermove", (e) => {
    const { x, y } = at(e);
    const ns = heat.rows[y][x];
    tip.hidden = false;
    tip.replaceChildren(h("b", null, `${name(y)}, step ${stepOf(x)}`), h("div", null, ns === null ? "not recorded" : `${format.duration(ns)} ${what === "late" ? "after the others" : "of waiting"}`));
    tip.style.left = `${Math.min(window.innerWidth - 260, e.clientX + 14)}px`;
    tip.style.top = `${e.clientY - 50}px`;
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("click", (e) => { const { x, y } = at(e); pick(y * heat.ranks_a_row, stepOf(x)); });
  const every = Math.max(1, Math.ceil(13 / cell));
  const labels = heat.rows.map((_, y) => (y % every === 0 ? h("span", { style: { top: `${y * cell + cell / 2}px` } }, String(job.ranks[y * heat.ranks_a_row]?.rank ?? "")) : null));
  return h("div", { class: "heat" }, h("div", { class: "heat-ranks" }, labels), h("div", { class: "heat-box" }, canvas,
    h("div", { class: "heat-steps" }, h("span", null, `step ${heat.first_step}`), h("span", null, `darkest: ${format.duration(heat.most_ns)}`), h("span", null, String(stepOf(nColumns - 1))))), tip);
}

function stragglerList(job: Job, choose: (rankIx: number, step: number) => void): HTMLElement {
  if (!job.stragglers.length) return h("div", { class: "small" }, "No rank delays the others.");
  return h("div", { class: "stragglers" }, job.stragglers.slice(0, 12).map((s) => h("button", {
    class: "straggler", title: "Show its timeline", onclick: () => choose(job.ranks.findIndex((r) => r.rank === s.rank), s.since_step ?? -1),
  }, h("div", null, h("b", null, `Rank ${s.rank}`), s.host ? ` on ${s.host}` : "", h("span", { class: "strong" }, `+${format.duration(s.late_ns)} a step`)),
  h("div", { class: "small" }, `${s.since_step === null ? "from the first step" : `since step ${s.since_step}`}, ${format.percent(s.share_of_steps)} of the steps${s.cause ? ` · ${s.cause}` : ""}`),
  s.evidence ? h("div", { class: "small" }, s.evidence) : null)));
}

function groupList(job: Job): HTMLElement {
  return h("div", { class: "rank-groups" }, job.groups.slice(0, 8).flatMap((g) => [
    h("span", null, `${g.n} ${g.n === 1 ? "rank" : "ranks"}`), h("div", { class: "bar-box" }, partsBar(g)), h("span", { class: "small" }, rankList(g.ranks))]));
}

interface Steps {
  steps: number[][];
}

/** The timelines of some ranks; zero is the start of the step on the first of them. */
async function timelines(ctx: Context, job: Job, ixs: number[], stepNumber: number): Promise<HTMLElement> {
  const apps = await Promise.all(ixs.map((ix) => otherOf(ctx.app, ix)));
  const { steps } = await ctx.app.source.ask<Steps>("steps", { f: ixs[0] || undefined });
  const lead = job.ranks[ixs[0]];
  const step = steps.find((s) => s[0] === stepNumber) ?? steps[Math.floor(steps.length / 2)] ?? [0, apps[0].meta.from, apps[0].meta.to];
  const zero = atJob(lead, apps[0].meta.origin ?? 0, step[1]);
  const sides: Side[] = apps.map((app, i) => {
    const rank = job.ranks[ixs[i]];
    return { app, title: `rank ${rank.rank}`, note: rank.host ?? "", anchor: atRank(rank, app.meta.origin ?? 0, zero), rows: rowsOf(app, true) };
  });
  const length = step[2] - step[1];
  const strips = new Strips(sides, { from: -length * 0.05, to: length * 1.25 }, (side, lane, t) => open(ctx, side.app, lane, t));
  return h("div", null, h("div", { class: "strips-bar" }, h("b", null, `step ${step[0]} of rank ${lead.rank}: ${format.duration(length)}`),
    h("span", { class: "small" }, job.clocks.how === "none" ? "clocks of the ranks could not be aligned" : job.clocks.how === "durations" ? "clocks are not aligned" : job.clocks.how === "same" ? "one clock" : `clocks agree to ${format.duration(job.clocks.error_ns)}`),
    h("span", { class: "space" }), h("span", { class: "small hint" }, "Ctrl wheel zooms, drag pans, click opens the rank"),
    h("button", { onclick: () => strips.zoom(0.6), "aria-label": "Zoom in" }, "+"), h("button", { onclick: () => strips.zoom(1 / 0.6), "aria-label": "Zoom out" }, "−"), h("button", { onclick: () => strips.reset() }, "Step")), strips.el);
}

/** Go there on this page, or on the page of that rank. */
function open(ctx: Context, app: App, lane: number, t: number): void {
  if (app === ctx.app) {
    app.openTo(app.rowOfLane[lane]);
    app.reveal({ from: t, to: t });
    ctx.timeline.showRow(app.rowOfLane[lane]);
    void app.selectAt(lane, t);
    return;
  }
  const half = (ctx.app.view.to - ctx.app.view.from) / 2;
  location.hash = `f=${app.report}&v=${Math.round(Math.max(0, t - half))}+${Math.round(2 * half)}&p=ranks`;
  location.reload();
}

/** The worst rank, and a typical one. */
function firstChoice(job: Job): number[] {
  const ixOf = (rank: number): number => job.ranks.findIndex((r) => r.rank === rank);
  const typical = [...job.groups].sort((a, b) => b.n - a.n)[0]?.ranks.slice(0, 2) ?? [];
  const wanted = [...job.stragglers.slice(0, 2).map((s) => s.rank), ...typical].map(ixOf).filter((ix) => ix >= 0);
  return [...new Set(wanted.length ? wanted : job.ranks.map((_, i) => i))].slice(0, 3);
}

function chosenBar(job: Job, redraw: () => void): HTMLElement {
  const more = h("select", {
    "aria-label": "Add a rank", onchange: () => {
      const ix = Number(more.value);
      if (ix >= 0) choice.ranks = [...choice.ranks.filter((x) => x !== ix), ix].slice(-MAX_CHOSEN);
      redraw();
    },
  }, h("option", { value: -1 }, "add a rank"), job.ranks.map((r: Rank, ix) => (choice.ranks.includes(ix) ? null : h("option", { value: ix }, `rank ${r.rank}${r.host ? ` · ${r.host}` : ""}`))));
  return h("div", { class: "strips-bar chosen" }, h("h4", null, "Timelines"), choice.ranks.map((ix) => h("button", {
    class: "chip", title: "Remove this rank", onclick: () => {
      if (choice.ranks.length > 1) choice.ranks = choice.ranks.filter((x) => x !== ix);
      redraw();
    },
  }, `rank ${job.ranks[ix].rank} ×`)), more);
}

function known(ctx: Context, job: Job): HTMLElement {
  const below = h("div");
  const heatBox = h("div");
  const redraw = (): void => {
    const made = timelines(ctx, job, choice.ranks, choice.step).catch(failure);
    void made.then((el) => below.replaceChildren(chosenBar(job, redraw), el));
  };
  const choose = (ix: number, step: number): void => {
    if (ix < 0) return;
    // The chosen rank comes first.
    choice.ranks = [ix, ...choice.ranks.filter((x) => x !== ix)].slice(0, MAX_CHOSEN);
    if (step >= 0) choice.step = step;
    redraw();
  };
  const kinds = h("div", { class: "choices" });
  const drawHeat = (): void => {
    heatBox.replaceChildren(heatMap(job[choice.kind], job, choice.kind, choose));
    kinds.replaceChildren(...(["late", "waiting"] as const).map((k) => h("button", { class: k === choice.kind ? "on" : "", onclick: () => { choice.kind = k; drawHeat(); } }, k)));
  };
  if (!choice.ranks.length) choice.ranks = firstChoice(job);
  if (choice.step < 0) choice.step = job.stragglers[0]?.since_step ?? Math.floor(job.first_step + job.steps / 2);
  drawHeat();
  redraw();
  const notes = [...job.notes, ...job.skipped.map((s) => `${s.file}: ${s.why}`)];
  return h("div", { class: "panel ranks" },
    h("div", { class: "rank-shares" }, h("b", null, `${job.ranks.length} ranks, ${job.steps} steps of ${format.duration(job.mean_step_ns)} on average`), h("span", { class: "small" }, `median ${format.duration(job.step_ns)}`), h("div", { class: "bar-small" }, partsBar(job.shares)), legend(job)),
    notes.length ? h("div", { class: "small rank-notes" }, notes.slice(0, 4).map((n) => h("div", null, n))) : null,
    h("div", { class: "rank-grid" },
      h("section", null, h("div", { class: "heat-head" }, h("h4", null, "Ranks by step"), kinds), heatBox),
      h("section", null, h("h4", null, "Ranks that delay the others"), stragglerList(job, choose), h("h4", null, "Ranks with the same behaviour"), groupList(job))),
    below);
}

export const ranks: Panel = {
  id: "ranks",
  place: 140,
  title: "Ranks",
  isTall: true,
  isAbsent: (app) => !app.meta.is_job,
  follows: ["verdict"],
  render: async (ctx) => {
    if (!ctx.app.meta.is_job) {
      return emptyState("This report is one rank", "Give the folder with the reports of all ranks: lull view FOLDER shows which rank is late, since when, and why.");
    }
    try {
      const answer = await jobOf(ctx.app);
      if (answer.state === "known" && answer.job) return known(ctx, answer.job);
      if (answer.state === "running") return emptyState(`Comparing ${ctx.app.meta.reports.length} ranks`, "Each report is analysed once. The rest of the page works in the meantime.");
      return emptyState("The ranks cannot be compared", answer.detail ?? "");
    } catch (e) {
      return failure(e);
    }
  },
};
