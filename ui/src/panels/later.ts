// Panels whose data this recording, or this version, does not have.

import { emptyState } from "../table";
import type { Panel } from "./panel";

export const kernel: Panel = {
  id: "kernel",
  title: "Kernel",
  render: () => emptyState("No counters were recorded",
    "Roofline, stalls and occupancy of a kernel need hardware counters, which this recording does not have."),
};
