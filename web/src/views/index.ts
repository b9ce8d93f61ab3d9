import type { ViewRow } from "./view";

/** The views in the order of the tabs, by the name in the address. */
export const VIEWS: Record<string, ViewRow> = {};
