// Flame graph of the measured range, or of all: samples of the CPU or of Python, by call path.

import { h } from "../dom";
import * as format from "../format";
import { emptyState } from "../table";
import { type Context, type Panel, failure } from "./panel";

interface Flame {
  total: number;
  unit: string;
  n_native: number;
  n_python: number;
  nodes: [number, string, number, number][];
}

interface Node {
  label: string;
  weight: number;
  kind: number;
  children: Node[];
}

const KINDS = ["", "native", "python", "kernel", "native"];

function tree(flame: Flame): Node {
  const nodes = flame.nodes.map(([, label, weight, kind]): Node => ({ label, weight, kind, children: [] }));
  flame.nodes.forEach(([parent], i) => {
    if (parent >= 0) nodes[parent].children.push(nodes[i]);
  });
  for (const node of nodes) node.children.sort((a, b) => b.weight - a.weight);
  return nodes[0];
}

/** Boxes from the root down; a click makes a box the root. */
function draw(root: Node, flame: Flame, box: HTMLElement, path: Node[]): void {
  const width = Math.max(200, box.clientWidth - 16);
  const parts: HTMLElement[] = [];
  let depth = 0;
  const total = Math.max(1, root.weight);
  const place = (node: Node, x: number, level: number): void => {
    const w = (node.weight / total) * width;
    if (w < 2 || level > 200) return;
    depth = Math.max(depth, level + 1);
    const share = format.percent(node.weight / Math.max(1, flame.total));
    const cost = flame.unit === "ns" ? format.duration(node.weight) : `${format.count(node.weight)} samples`;
    const [name] = node.label.split("  ");
    parts.push(h("button", {
      class: `flame ${KINDS[node.kind] ?? ""}`, title: `${format.clean(node.label, 400)}\n${cost}, ${share}`,
      style: { left: `${x}px`, top: `${level * 19}px`, width: `${Math.max(1, w - 1)}px`, padding: w < 30 ? "0" : "" },
      onclick: () => draw(node, flame, box, node === root ? path.slice(0, -1) : [...path, node]),
    }, w > 30 ? format.clean(name, 120) : ""));
    let at = x;
    for (const child of node.children) {
      place(child, at, level + 1);
      at += (child.weight / total) * width;
    }
  };
  place(root, 0, 0);
  const up = path.length ? h("button", {
    class: "link", onclick: () => draw(path.length > 1 ? path[path.length - 2] : tree(flame), flame, box, path.slice(0, -1)),
  }, "back out") : null;
  box.replaceChildren(h("div", { class: "flame-head" }, `${format.clean(root.label, 200)} · `,
    flame.unit === "ns" ? format.duration(root.weight) : `${format.count(root.weight)} samples`, " ", up),
  h("div", { class: "flame-box", style: { height: `${depth * 19 + 4}px` } }, parts));
}

export const flame: Panel = {
  id: "flame",
  place: 110,
  title: "Flame graph",
  follows: ["range"],
  render: (ctx: Context) => {
    const range = ctx.app.range;
    const body = h("div", { class: "panel-body flame-body" });
    let kind = "";
    const load = async (): Promise<void> => {
      try {
        const answer = await ctx.app.source.ask<Flame>("flame", {
          kind: kind || undefined, from: range ? Math.max(0, Math.round(range.from)) : undefined,
          to: range ? Math.round(range.to) : undefined, f: ctx.app.report || undefined,
        });
        if (!kind && !answer.n_native && answer.n_python) {
          kind = "python";
          await load();
          return;
        }
        bar.replaceChildren(
          h("div", { class: "choices" },
            choice("CPU samples", "", answer.n_native), choice("Python samples", "python", answer.n_python)),
          h("span", { class: "small" }, range ? `measured range, ${format.duration(range.to - range.from)}` : "whole run; measure a range to restrict it"));
        if (!answer.total) {
          body.replaceChildren(answer.n_native + answer.n_python
            ? emptyState("No samples here", "Nothing of this kind was sampled in this time.")
            : emptyState("No samples were recorded", "lull profile samples CPUs and Python by default; imported traces have no samples."));
        } else {
          draw(tree(answer), answer, body, []);
        }
      } catch (e) {
        body.replaceChildren(failure(e));
      }
    };
    const choice = (label: string, id: string, n: number): HTMLElement => h("button", {
      class: id === kind ? "on" : "", disabled: !n, onclick: () => { kind = id; void load(); },
    }, `${label} ${format.count(n)}`);
    const bar = h("div", { class: "panel-bar" });
    requestAnimationFrame(() => void load());
    return h("div", { class: "panel" }, bar, body);
  },
};
