// What the page tells when one looks closer: lists, flame graphs, source, critical paths, and ten tasks. One program, so
// that all share a browser, servers and pages.

import { cases as flame } from "./flame.mjs";
import { cases as lists } from "./lists.mjs";
import { cases as path } from "./path.mjs";
import { cases as source } from "./source.mjs";
import { main } from "./support.mjs";
import { cases as tasks } from "./tasks.mjs";

// Random clicks come last: they leave their page as they like.
await main({ ...lists, ...flame, ...source, ...path, ...tasks });
