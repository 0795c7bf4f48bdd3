// A job: what lull why finds in a folder of rank reports (lull schema job).

import type { App } from "./app";
import * as format from "./format";

export interface Heat {
  ranks_a_row: number;
  steps_a_column: number;
  first_step: number;
  most_ns: number;
  rows: (number | null)[][];
}

export interface Straggler {
  rank: number;
  host: string | null;
  file: string;
  since_step: number | null;
  late_ns: number;
  share_of_steps: number;
  cause: string | null;
  excess_ns: number;
  evidence: string | null;
}

export interface Rank {
  rank: number;
  file: string;
  host: string | null;
  clock: { begin_ns: number; drift_ppm: number };
  cause: string | null;
  group: number;
  stage: number | null;
  steps: number;
  step_ns: number;
  window_ns: number;
  compute_ns: number;
  wait_ns: number;
  transfer_ns: number;
  bubble_ns: number;
  copy_ns: number;
  idle_ns: number;
  late_ns: number;
}

export const PARTS = ["compute", "wait", "transfer", "bubble", "copy", "idle"] as const;
export type Parts = Record<(typeof PARTS)[number], number>;

export interface Job {
  folder: string;
  world_size: number | null;
  first: string | null;
  cannot_tell: string | null;
  likely?: string | null; // then: the cause that is likely all the same
  step_ns: number; // median
  mean_step_ns: number; // what costs are a share of: they are means, too
  cost_ns: number;
  steps: number;
  first_step: number;
  shares: Parts;
  clocks: { how: string; why: string | null; error_ns: number; bound_ns: number };
  notes: string[];
  skipped: { file: string; why: string }[];
  stragglers: Straggler[];
  stages: { stage: number; ranks: number; compute: number; bubble_ns: number }[];
  groups: (Parts & { n: number; cause: string | null; is_late: boolean; ranks: number[] })[];
  late: Heat;
  waiting: Heat;
  ranks: Rank[];
}

export interface JobAnswer {
  state: "known" | "running" | "cannot" | "absent";
  detail?: string;
  job?: Job;
}

const ASK_AGAIN_MS = 400;
let answer: Promise<JobAnswer> | null = null;

function ask(app: App): Promise<JobAnswer> {
  return app.source.ask<JobAnswer>("ranks");
}

function follow(app: App): void {
  window.setTimeout(() => {
    void ask(app).then((a) => {
      if (a.state === "running") {
        follow(app);
        return;
      }
      answer = Promise.resolve(a);
      app.changed("verdict");
    }).catch(() => undefined);
  }, ASK_AGAIN_MS);
}

/** Asked once; while ranks are being compared it says so, and "verdict" changes when that is done. */
export function jobOf(app: App): Promise<JobAnswer> {
  if (!answer) {
    answer = ask(app);
    void answer.then((a) => { if (a.state === "running") follow(app); }).catch(() => undefined);
  }
  return answer;
}

/** "0-4, 6-15" */
export function rankList(ranks: number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < ranks.length;) {
    let k = i;
    while (k + 1 < ranks.length && ranks[k + 1] === ranks[k] + 1) k++;
    parts.push(i === k ? String(ranks[i]) : `${ranks[i]}–${ranks[k]}`);
    i = k + 1;
  }
  return parts.length > 8 ? `${parts.slice(0, 8).join(", ")} …` : parts.join(", ");
}

/** The answer in one sentence. */
export function sentence(job: Job): string {
  const s = job.stragglers[0];
  const cost = `${format.duration(job.cost_ns)} of each step of ${format.duration(job.mean_step_ns)}${job.mean_step_ns ? ` (${format.percent(job.cost_ns / job.mean_step_ns)})` : ""}`;
  if (job.first === "straggler" && s) return `Rank ${s.rank}${s.host ? ` (${s.host})` : ""} delays the job: the others wait for it ${cost}.`;
  if (job.first) return `${job.ranks.length} ranks, mostly ${job.first}: ${cost}.`;
  if (job.likely) return `Probably ${job.likely}; not sure: ${job.cannot_tell}.`;
  return job.cannot_tell || "Cannot tell what the ranks wait for.";
}

/** The moment of a rank's report, as its page counts it, at which the job's clock shows `ns`. */
export function atRank(rank: Rank, origin: number, ns: number): number {
  return (ns - rank.clock.begin_ns) / (1 + rank.clock.drift_ppm * 1e-6) - origin;
}

/** The job's clock at a moment of a rank's report. */
export function atJob(rank: Rank, origin: number, t: number): number {
  return rank.clock.begin_ns + (t + origin) * (1 + rank.clock.drift_ppm * 1e-6);
}
