import type { Found } from "./find";
import { type Span, whole } from "./span";

/** What is shown. */
export interface Scene {
  span: Span;
  scroll_px: number;
  /** Rows of groups whose lanes are not shown. */
  closed: Set<number>;
  range: Span | null;
  /** Rows of slices; -1: none. */
  selected: number;
  hovered: number;
  found: Found | null;
}

/** What is shown at first. */
export function firstScene(length_ns: number): Scene {
  return {
    span: whole(length_ns),
    scroll_px: 0,
    closed: new Set(),
    range: null,
    selected: -1,
    hovered: -1,
    found: null,
  };
}
