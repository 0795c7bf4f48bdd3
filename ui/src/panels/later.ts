// Panels whose data this recording, or this version, does not have.

import { emptyState } from "../table";
import type { Panel } from "./panel";

export const ranks: Panel = {
  id: "ranks",
  title: "Ranks",
  render: ({ app }) => emptyState("This report is one rank",
    app.meta.reports.length > 1 ? "Several reports are open, but ranks of one job are not put together yet." : "Skew and stragglers need the reports of all ranks."),
};
