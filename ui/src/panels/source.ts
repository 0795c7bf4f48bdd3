// Source: the files of the program, with the samples of each line. What a line of code on the page leads to.

import type { App } from "../app";
import { h } from "../dom";
import * as format from "../format";
import { emptyState } from "../table";
import { type Context, type Panel, failure } from "./panel";

interface SourceAnswer {
  from: number;
  to: number;
  is_steady: boolean;
  files: [file: string, isPython: number, weight: number, total: number][];
  file?: string;
  why?: string;
  times?: [line: number, own: number, all: number][];
  lines?: [line: number, text: string][];
}

let chosen = { file: "", line: 0 };
let isWhole = false;

/** "/srv/app/train.py:83" in two. */
export function splitPlace(place: string): { file: string; line: number } | null {
  const match = /^(.*\/[^/]+\.\w+):(\d+)$/.exec(place);
  return match ? { file: match[1], line: Number(match[2]) } : null;
}

/** Show a line of code. */
export function openSource(app: App, file: string, line: number): void {
  chosen = { file, line };
  app.changed("listed");
  app.openTab("source");
}

/** A place in the code as a button that opens the source; as text if it is none of a file. */
export function placeView(app: App, place: string, text = place.replace(/^.*\/(?=[^/]+$)/, "")): HTMLElement {
  const at = splitPlace(place);
  if (!at) return h("span", { class: "small", title: format.clean(place, 400) }, format.clean(text, 120));
  return h("button", { class: "link small", title: `${format.clean(place, 400)}: show the source`, onclick: () => openSource(app, at.file, at.line) }, format.clean(text, 120));
}

/** Into an editor, where the page comes from the machine that has the file. */
export function editorLink(app: App, file: string | undefined, line: number): HTMLElement | null {
  const { editor } = app.meta;
  if (!editor || !file?.startsWith("/")) return null;
  const encoded = file.split("/").map(encodeURIComponent).join("/");
  return h("a", { href: editor.replace("{file}", () => encoded).replace("{line}", String(line || 1)), title: "Open in the editor" }, "edit");
}

async function ask(app: App): Promise<SourceAnswer> {
  if (app.source.isOffline) {
    const list = await app.source.ask<SourceAnswer>("source");
    const n = list.files.findIndex((f) => f[0] === chosen.file);
    return n < 0 ? list : app.source.ask<SourceAnswer>("source", { n }).catch(() => ({ ...list, file: chosen.file, why: "The file was exported without source; `lull export -t html --with-source FOLDER` embeds it." }));
  }
  const o = isWhole ? undefined : app.opening;
  const span = { whole: isWhole ? 1 : undefined, from: o ? Math.round(o.steady_from) : undefined, to: o ? Math.round(o.steady_to) : undefined, f: app.report || undefined };
  const answer = await app.source.ask<SourceAnswer>("source", { file: chosen.file || undefined, ...span }).catch(() => null);
  // A line that was found in another time: the whole run has it.
  if (!answer && chosen.file) return app.source.ask<SourceAnswer>("source", { file: chosen.file, whole: 1, f: app.report || undefined }).catch(() => app.source.ask<SourceAnswer>("source", span));
  return answer ?? app.source.ask<SourceAnswer>("source", span);
}

function fileList(app: App, answer: SourceAnswer): HTMLElement {
  return h("div", { class: "source-files", role: "group", "aria-label": "Files" }, answer.files.map(([file, isPython, weight, total]) => h("button", {
    class: file === answer.file ? "on" : "", title: format.clean(file, 400), onclick: () => openSource(app, file, 0),
  }, h("span", null, format.clean(file.replace(/^.*\//, ""), 60)), h("span", { class: "small" }, `${format.percent(weight / Math.max(1, total))} of ${isPython ? "Python" : "CPU"} samples`))));
}

function lineView(app: App, answer: SourceAnswer, number: number, text: string, time: [number, number, number] | undefined): HTMLElement {
  const file = answer.files.find((f) => f[0] === answer.file);
  const total = Math.max(1, file?.[3] ?? 1);
  const cost = (w: number): string => (file?.[1] ? `${format.count(w)} ${w === 1 ? "sample" : "samples"}` : format.duration(w));
  const share = (w: number): string => (w ? format.percent(w / total) : "");
  return h("tr", { class: number === chosen.line ? "on" : "", "data-line": number, title: time ? `innermost in ${cost(time[1])}, on the stack in ${cost(time[2])}` : undefined },
    h("td", { class: "num" }, time ? share(time[1]) : ""), h("td", { class: "source-bar" }, time ? h("i", { style: { width: `${(40 * time[1]) / total}px` } }) : ""), h("td", { class: "num small" }, time ? share(time[2]) : ""),
    h("td", { class: "num" }, number === chosen.line ? editorLink(app, answer.file, number) : null, ` ${number}`), h("td", { class: "code" }, format.clean(text.replace(/\t/g, "    "), 400)));
}

function codeView(app: App, answer: SourceAnswer): HTMLElement {
  const times = new Map((answer.times ?? []).map((t) => [t[0], t]));
  const lines = answer.lines ?? (answer.times ?? []).map((t): [number, string] => [t[0], ""]);
  const rows: HTMLElement[] = [];
  lines.forEach(([number, text], ix) => {
    if (ix && lines[ix - 1][0] !== number - 1) rows.push(h("tr", null, h("td", { colspan: 4 }), h("td", { class: "small" }, "⋯")));
    rows.push(lineView(app, answer, number, text, times.get(number)));
  });
  return h("div", { class: "source-code", tabindex: 0 }, h("div", { class: "source-head" }, h("b", { class: "mono" }, format.clean(answer.file ?? "", 300)), " ", editorLink(app, answer.file, chosen.line || 1),
    answer.why ? h("div", { class: "small" }, `${answer.why}${app.source.isOffline ? "" : "; `lull view --source FOLDER` says where it is."}`) : null),
  h("table", null, h("thead", null, h("tr", null, ["Share", "", "On stack", "Line", "Code"].map((t, ix) => h("th", { class: ix < 4 ? "num" : "text" }, t)))), h("tbody", null, rows)));
}

export const source: Panel = {
  id: "source",
  place: 115,
  title: "Source",
  follows: ["listed", "verdict"],
  render: async ({ app }: Context) => {
    try {
      let answer = await ask(app);
      if (!answer.file && answer.files.length) {
        chosen = { file: answer.files[0][0], line: 0 };
        answer = await ask(app);
      }
      if (!answer.files.length) return emptyState("No line of the program was sampled", "lull profile samples Python by default; native programs need debug information (-g, -lineinfo).");
      const code = codeView(app, answer);
      // To the line that was asked for, else to the one with most samples.
      const most = [...(answer.times ?? [])].sort((a, b) => b[1] - a[1])[0]?.[0];
      requestAnimationFrame(() => code.querySelector(`[data-line="${chosen.line || most}"]`)?.scrollIntoView({ block: "center" }));
      const what = isWhole || !(answer.is_steady || app.opening) ? "whole run" : "steady steps";
      return h("div", { class: "source" }, h("div", { class: "source-side" }, h("div", { class: "small" }, `Samples of the ${what}, ${format.duration(answer.to - answer.from)}`),
        app.source.isOffline || !app.opening ? null : h("label", null, h("input", { type: "checkbox", checked: isWhole, onchange: (e: Event) => { isWhole = (e.target as HTMLInputElement).checked; app.changed("listed"); } }), " whole run"), fileList(app, answer)), code);
    } catch (e) {
      return failure(e);
    }
  },
};
