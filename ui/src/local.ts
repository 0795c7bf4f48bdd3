// The page as one file: answers come out of the document itself.

import type { Source } from "./source";

export async function localSource(): Promise<Source | null> {
  return null;
}
