declare module "panel-files" {
  /** What each file of this folder exports, but index.ts. */
  export const FILES: Record<string, unknown>[];
}
