// The order of rows, for any run: the device that the answer is about and what it does, the threads that launch its work,
// what else worked; then all that was idle, folded into a count, and metrics, in one closed group.

import type { Meta, Opening, Row } from "./types";

export interface Arranged {
  meta: Meta;
  pinned: string[];
  collapsed: Set<string>;
}

interface Node {
  row: Row;
  parent: Node | null;
  children: Node[];
}

/** Less CPU than this share of the run, and nothing else, and a thread was idle. */
const IDLE_SHARE = 0.01;
const MAX_LAUNCHERS = 4;

/** Rows below a device, in order; those of other kinds come last. */
const DEVICE_ORDER = ["idle", "kernel", "copy", "collective", "graph", "projected", "memset"];
const ACTIVE = new Set(["range", "op", "pycall", "call", "collective", "gil", "pysample"]);

function treeOf(rows: Row[]): Node[] {
  const nodes = rows.map((row): Node => ({ row: { ...row }, parent: null, children: [] }));
  nodes.forEach((node) => {
    node.parent = node.row.parent >= 0 ? nodes[node.row.parent] : null;
    node.parent?.children.push(node);
  });
  return nodes;
}

function group(key: string, kind: string, title: string, children: Node[], parent: Node | null): Node {
  const node: Node = { row: { key, kind, title, parent: -1, lane: 0, n_lanes: 0, n: 0, busy: 0, curve: -1 }, parent, children: [] };
  for (const child of children) adopt(node, child);
  parent?.children.push(node);
  return node;
}

function adopt(parent: Node | null, child: Node): void {
  if (child.parent) child.parent.children = child.parent.children.filter((c) => c !== child);
  child.parent = parent;
  parent?.children.push(child);
}

function isIdle(thread: Node, run: number, opening: Opening | undefined): boolean {
  if (opening?.active) return !opening.active.includes(thread.row.key);
  const cpu = thread.children.find((c) => c.row.kind === "cpu");
  if (thread.children.some((c) => ACTIVE.has(c.row.kind) && c.row.n > 0)) return false;
  return !!cpu && cpu.row.busy < IDLE_SHARE * run;
}

/** What launches: as the analysis says, else those with the most CUDA calls. */
function launchersOf(nodes: Node[], opening: Opening | undefined): Node[] {
  const threads = nodes.filter((n) => n.row.kind === "thread");
  const named = (opening?.threads ?? []).map((key) => threads.find((t) => t.row.key === key)).filter((t): t is Node => !!t);
  const calls = (t: Node): number => t.children.filter((c) => c.row.kind === "call").reduce((sum, c) => sum + c.row.n, 0);
  const found = named.length ? named : threads.filter((t) => calls(t) > 0).sort((a, b) => calls(b) - calls(a)).slice(0, 1);
  const most = found.length ? calls(found[0]) : 0;
  return found.filter((t, ix) => !ix || calls(t) >= most * 0.05).slice(0, MAX_LAUNCHERS);
}

function sortDevice(device: Node): void {
  const place = (n: Node): number => {
    const kind = n.row.kind === "kernel" && n.row.title.startsWith("NCCL") ? "collective" : n.row.kind;
    const at = DEVICE_ORDER.indexOf(kind);
    return at < 0 ? DEVICE_ORDER.length : at;
  };
  // The stream that does the work first.
  device.children.sort((a, b) => place(a) - place(b) || (a.row.kind === "kernel" ? b.row.busy - a.row.busy : 0));
}

/** Curves leave their device or process; what was zero all the time says nothing. */
function metricsOf(nodes: Node[]): Node | null {
  const curves = nodes.filter((n) => n.row.kind === "curve" && (n.row.max ?? 0) > 0);
  const nDevices = nodes.filter((n) => n.row.kind === "device").length;
  for (const n of nodes.filter((x) => x.row.kind === "curve")) {
    const owner = n.parent?.row;
    if (owner && (owner.kind !== "device" || nDevices > 1)) n.row.title = `${owner.kind === "device" ? owner.title.split(" ").slice(0, 2).join(" ") : owner.title} ${n.row.title.replace(/^Memory$/, "memory")}`;
    n.row.title = n.row.title.replace(/_/g, " ");
    adopt(null, n);
  }
  return curves.length ? group("metrics", "metrics", "Metrics", curves, null) : null;
}

/** Threads that did nothing become one closed group; those that worked come first. */
function foldIdle(process: Node, run: number, opening: Opening | undefined): void {
  const idle = process.children.filter((t) => t.row.kind === "thread" && isIdle(t, run, opening));
  if (!idle.length) return;
  const fold = group(`${process.row.key}/idle-threads`, "fold", `${idle.length} idle ${idle.length === 1 ? "thread" : "threads"}`, idle, process);
  if (process.children.length > 1) return;
  // Nothing else is left of the process.
  process.row.title = `${process.row.title}: ${fold.row.title}`;
  process.row.kind = "fold";
  for (const t of [...fold.children]) adopt(process, t);
  adopt(null, fold);
}

/** Steps: those that the answer is about; what the program marked itself goes to its thread. */
function stepsOf(nodes: Node[]): { steps: Node | null; rest: Node[] } {
  const all = nodes.filter((n) => n.row.kind === "step" && n.row.n > 0);
  const rounds = all.find((n) => n.row.key === "rounds");
  const steps = rounds ?? all.sort((a, b) => b.row.n - a.row.n)[0] ?? null;
  const rest: Node[] = [];
  for (const n of nodes.filter((x) => x.row.kind === "step" && x !== steps)) {
    const thread = nodes.find((t) => t.row.kind === "thread" && t.row.key.endsWith(`/${n.row.key.split("/")[0]}`));
    if (n.row.key !== "rounds") n.row.title = "Marked steps";
    // The same steps twice would be one row too many.
    if (thread && n.row.n && n.row.n !== rounds?.row.n) adopt(thread, n);
    else rest.push(n);
  }
  return { steps, rest };
}

function flatten(top: Node[], all: Node[]): Row[] {
  const rows: Row[] = [];
  const at = new Map<Node, number>();
  const visit = (node: Node): void => {
    at.set(node, rows.length);
    node.row.parent = node.parent ? at.get(node.parent)! : -1;
    rows.push(node.row);
    node.children.forEach(visit);
  };
  top.forEach(visit);
  // What has no place still has a number: tiles and hits refer to lanes.
  for (const node of all) if (!at.has(node)) rows.push({ ...node.row, parent: -1, is_hidden: true });
  return rows;
}

export function arrange(meta: Meta, opening?: Opening): Arranged {
  const nodes = treeOf(meta.rows);
  const run = Math.max(1, meta.run ?? meta.to - meta.from);
  const devices = nodes.filter((n) => n.row.kind === "device");
  const idleOf = (d: Node): number => d.children.find((c) => c.row.kind === "idle")?.row.busy ?? 0;
  const lead = devices.find((d) => d.row.key === opening?.device) ?? [...devices].sort((a, b) => idleOf(b) - idleOf(a))[0];
  const { steps, rest } = stepsOf(nodes);
  const metrics = metricsOf(nodes);
  devices.forEach(sortDevice);
  const launchers = launchersOf(nodes, opening);
  const processes = nodes.filter((n) => n.row.kind === "process");
  const home = launchers[0]?.parent ?? processes[0];
  // Of several processes, each has a main thread.
  for (const t of nodes) if (processes.length > 1 && t.parent && t.row.title === "main thread") t.row.title = `main thread of ${t.parent.row.title}`;
  for (const t of launchers) {
    adopt(null, t);
    t.row.is_launcher = true;
  }
  for (const p of processes) foldIdle(p, run, opening);
  const isTop = new Set<Node | null | undefined>([steps, lead, ...launchers, home, ...devices, ...processes, metrics, ...rest]);
  const others = nodes.filter((n) => !n.parent && !isTop.has(n) && n.row.kind !== "curve");
  const top = [steps, lead, ...launchers, home, ...devices.filter((d) => d !== lead), ...processes.filter((p) => p !== home), ...others, metrics]
    .filter((n): n is Node => !!n && (!["process", "fold"].includes(n.row.kind) || n.children.length > 0));
  const open = new Set<Node | undefined>([lead, launchers[0]]);
  if (home?.row.kind === "process" && home.children.some((c) => c.row.kind === "thread")) open.add(home);
  // Two threads that take turns, forward and backward: both are of interest.
  if (launchers.length === 2) open.add(launchers[1]);
  const rows = flatten(top, nodes);
  const collapsed = new Set<string>();
  const isOpen = new Set([...open].map((n) => n?.row.key));
  const parents = new Set(rows.map((r) => r.parent));
  rows.forEach((r, ix) => { if (parents.has(ix) && !isOpen.has(r.key)) collapsed.add(r.key); });
  const idle = lead?.children.find((c) => c.row.kind === "idle");
  return { meta: { ...meta, rows }, pinned: [steps, idle].filter((n): n is Node => !!n).map((n) => n.row.key), collapsed };
}
