/** Keys that move while they are held: how they change the span each frame. */
export const HELD: Record<string, { zoom: number; pan: number; scroll: number }> = {
  w: { zoom: -1, pan: 0, scroll: 0 },
  s: { zoom: 1, pan: 0, scroll: 0 },
  "+": { zoom: -1, pan: 0, scroll: 0 },
  "-": { zoom: 1, pan: 0, scroll: 0 },
  a: { zoom: 0, pan: -1, scroll: 0 },
  d: { zoom: 0, pan: 1, scroll: 0 },
  ArrowLeft: { zoom: 0, pan: -1, scroll: 0 },
  ArrowRight: { zoom: 0, pan: 1, scroll: 0 },
  ArrowUp: { zoom: 0, pan: 0, scroll: -1 },
  ArrowDown: { zoom: 0, pan: 0, scroll: 1 },
};

export const TIMELINE_KEYS: [string, string][] = [
  ["W S", "zoom in and out around the pointer; also the wheel, + and -, or two fingers"],
  ["A D ← →", "move; also by dragging, or Shift and the wheel"],
  ["↑ ↓", "scroll the lanes; also the wheel over their names"],
  ["F", "fit the chosen slice or range"],
  ["0", "everything"],
  ["[ ]", "the slice before and after the chosen one"],
  ["Enter", "follow the arrow of the chosen slice"],
  ["G Shift+G", "the next and the last of the longest gaps of GPUs"],
  ["/ N Shift+N", "search, next and previous slice that was found"],
  ["Esc", "choose nothing"],
];
