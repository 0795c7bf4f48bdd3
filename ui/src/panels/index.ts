// The panels, in the order of their tabs: what files of this folder export. tools/list-panels makes the list of files.

import { FILES } from "panel-files";
import type { Panel } from "./panel";

const isPanel = (x: unknown): x is Panel => typeof x === "object" && x !== null && "render" in x && "place" in x;

export const PANELS: Panel[] = FILES.flatMap((f) => Object.values(f)).filter(isPanel).sort((a, b) => a.place - b.place);
