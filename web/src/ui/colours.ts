// Okabe and Ito's palette: told apart by people with any common colour blindness.
// Source: M. Okabe, K. Ito, "Color Universal Design", 2008.

import { FrameKind } from "../data/profile";

export type Theme = "light" | "dark";

export const OKABE_ITO = {
  orange: "#e69f00",
  sky: "#56b4e9",
  green: "#009e73",
  yellow: "#f0e442",
  blue: "#0072b2",
  vermilion: "#d55e00",
  purple: "#cc79a7",
  grey: "#999999",
} as const;

/** For things that have no order; the n-th of them. */
export function categoryColour(index: number): string {
  return CATEGORIES[index % CATEGORIES.length];
}

const { orange, sky, green, yellow, blue, vermilion, purple, grey } = OKABE_ITO;
const CATEGORIES: string[] = [sky, orange, green, purple, vermilion, yellow, blue, grey];

const KIND_COLOURS: Record<FrameKind, string> = {
  [FrameKind.Root]: grey,
  [FrameKind.Scope]: yellow,
  [FrameKind.State]: grey,
  [FrameKind.Python]: sky,
  [FrameKind.Native]: "#8fb0c4",
  [FrameKind.Operator]: green,
  [FrameKind.GpuApi]: purple,
  [FrameKind.Kernel]: orange,
  [FrameKind.Line]: "#c9a45c",
  [FrameKind.Marker]: "#b0a8d0",
  [FrameKind.Memory]: vermilion,
};

export const KIND_NAMES: Record<FrameKind, string> = {
  [FrameKind.Root]: "total",
  [FrameKind.Scope]: "scope",
  [FrameKind.State]: "state",
  [FrameKind.Python]: "Python",
  [FrameKind.Native]: "native",
  [FrameKind.Operator]: "operator",
  [FrameKind.GpuApi]: "GPU call",
  [FrameKind.Kernel]: "kernel",
  [FrameKind.Line]: "line",
  [FrameKind.Marker]: "marker",
  [FrameKind.Memory]: "copy or set",
};

export function kindColour(kind: FrameKind): string {
  return KIND_COLOURS[kind];
}

/** From pale to hot, 0 to 1: one hue whose lightness alone says how much, so that it reads in grey too. */
export function heatColour(share: number, theme: Theme): string {
  const clamped = Math.min(Math.max(share, 0), 1);
  const lightness = theme === "light" ? 94 - 46 * clamped : 26 + 36 * clamped;
  return `hsl(26 ${Math.round(30 + 65 * clamped)}% ${Math.round(lightness)}%)`;
}

/** Less (blue), the same (grey) or more (vermilion) than before; -1 to 1. */
export function changeColour(change: number, theme: Theme): string {
  const size = Math.min(Math.abs(change), 1);
  const lightness = theme === "light" ? 92 - 44 * size : 30 + 28 * size;
  return `hsl(${change < 0 ? 202 : 26} ${Math.round(5 + 85 * size)}% ${Math.round(lightness)}%)`;
}

/** The colour of text on any colour above. */
export function inkOn(colour: string): string {
  const lightness = /(\d+)%\)$/.exec(colour);
  const isDark = lightness ? Number(lightness[1]) < 46 : colour === blue;
  return isDark ? "#fff" : "#111";
}
