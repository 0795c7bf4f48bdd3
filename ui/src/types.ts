// What the answers of src/page hold.

export interface Row {
  key: string;
  kind: string;
  title: string;
  parent: number;
  lane: number;
  n_lanes: number;
  n: number;
  busy: number;
  curve: number;
  unit?: string;
  max?: number;
  top?: number; // of the scale of a curve
  is_hidden?: boolean; // has nothing to show
  is_launcher?: boolean; // a thread that starts the work of the device
}

/** What the page shows first, as the analysis says (src/page/page_open.h). */
export interface Opening {
  from: number;
  to: number;
  n_steps: number;
  steady_from: number; // all steady steps
  steady_to: number;
  device: string; // keys of rows
  threads: string[];
  active?: string[]; // threads that did something in the steady steps
}

export interface Meta {
  name: string;
  id: string;
  version: string;
  size_bytes: number;
  n_events: number;
  from: number;
  to: number;
  epoch_utc_ms: number;
  is_sealed: boolean;
  is_simulated: boolean;
  is_imported: boolean;
  is_offline: boolean;
  editor?: string; // address that opens {file} at {line} in an editor
  is_job?: boolean; // reports are the ranks of one job
  has_requests?: boolean; // of a server
  origin?: number; // what times count from, in the report's own time
  n_damaged: number;
  index_bytes: number;
  n_steps: number;
  reports: string[];
  tables: TableInfo[];
  devices: { id: number; name: string; uuid: string }[];
  n_lost: number;
  n_loss_kinds: number;
  rows: Row[];
  lanes: number[];
  minimap: { busy: number[]; idle: number[]; n: number };
  notice?: string;
  run?: number; // length of the whole run, where only a part is here
}

/** A table of `lull stats`; `tab` and the rest where a panel has a button for it. */
export interface TableInfo {
  name: string;
  tab?: string;
  label?: string;
  names?: string; // column whose texts are names on the timeline
  place?: number; // order of the buttons
  has_data?: boolean; // what it needs was recorded
}

export interface Column {
  name: string;
  kind: string;
  unit?: string;
  doc?: string;
  decimals: number;
}

export type Cell = string | number | null;

export interface Table {
  name: string;
  title: string;
  summary: string;
  columns: Column[];
  rows: Cell[][];
  n: number;
  why?: string;
}

export interface Link {
  lane: number;
  start: number;
  end: number;
  name: string;
  kind: string;
  /** What it is to the one that is selected; src/page/links.h. */
  rel: "call" | "work" | "awaited" | "waiter" | "producer" | "next";
}

/** The critical path of a step (src/page/path.h). */
export interface Path {
  from: number;
  to: number;
  pieces: [kind: "work" | "queue" | "thread" | "wait" | "return", lane: number, start: number, end: number, name: string][];
  sums: [kind: string, ns: number, n: number][];
}

/** What an event is a part of, on the thread that it is of or that launched it (src/page/around.h). */
export interface Around {
  kind: string; // of a row, or "line"
  name: string;
  place?: string;
  lane: number;
  start: number;
  end: number;
}

/** Function, file and line or module, 1 if it is code of the program itself. */
export type Frame = [string, string, number];

export interface Selected {
  type: string; // event, gap, or range (made here)
  lane: number;
  row: string;
  start: number;
  end: number;
  name?: string;
  nameId?: number;
  class?: number;
  before?: string;
  after?: string;
  fields?: [string, string | number | Frame[], string?][];
  links?: Link[];
  around?: Around[];
}

export interface Hits {
  total: number;
  n: number; // those that have a number; fewer than all only if there are millions
  first: number; // number of the first in `hits`, a page of them
  here: number; // number of the first at or after the asked moment
  is_cut: boolean;
  names: [number, number][];
  buckets: number[];
  hits: [number, number, number][];
}

/** A span of time in ns since the origin of the report. */
export interface Span {
  from: number;
  to: number;
}
