// The list of panels, in the order of their tabs.

import { compare } from "./compare";
import { flame } from "./flame";
import { health } from "./health";
import { kernel } from "./kernel";
import { memory } from "./memory";
import type { Panel } from "./panel";
import { query } from "./query";
import { ranks } from "./ranks";
import { selection } from "./selection";
import { steps } from "./steps";
import { calls, collectives, copies, kernels, ops, ranges } from "./tables";
import { verdict } from "./verdict";

export const PANELS: Panel[] = [
  verdict, steps, selection, kernels, calls, ranges, ops, copies, collectives, memory, flame, compare, kernel, ranks, query, health,
];
