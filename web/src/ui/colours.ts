// Calm colours, one meaning each: what GPUs do is warm, what the host does is cool, what waits has no hue. Every pair of
// a fill and the ink on it has a contrast of 4.5 or more (colours.test.ts).
// The strong ones are Okabe and Ito's, told apart by people with any common colour blindness.
// Source: M. Okabe, K. Ito, "Color Universal Design", 2008.

import { FrameKind } from "../data/profile";

export type Theme = "light" | "dark";

type Shades = Record<Theme, string>;

export const OKABE_ITO = {
  blue: "#0072b2",
  vermilion: "#d55e00",
} as const;

/** What was searched for. */
export const MATCH: Shades = { light: "#b0136c", dark: "#ff8fd0" };
/** A pause of a GPU. */
export const WAITING: Shades = { light: "#e8ebef", dark: "#262b31" };

/** Kernels with most time, told apart within the warm colours; the last is for all others. */
const KERNELS: Record<Theme, string[]> = {
  light: ["#ea9a52", "#f3cd7f", "#dd8062", "#f5b59b", "#cda355", "#e79aa8", "#ead7c4"],
  dark: ["#a65d1a", "#8a6a22", "#98452f", "#a05c48", "#6f5318", "#8d4a58", "#5b4b3d"],
};

/** The colour of the kernel that stands n-th by time. */
export function kernelColour(rank: number, theme: Theme): string {
  const colours = KERNELS[theme];
  return colours[Math.min(rank, colours.length - 1)];
}

const KIND_COLOURS: Record<FrameKind, Shades> = {
  [FrameKind.Root]: { light: "#d5dae0", dark: "#4a525b" },
  [FrameKind.Scope]: { light: "#c8bce8", dark: "#62549a" },
  [FrameKind.State]: { light: "#d5dae0", dark: "#4a525b" },
  [FrameKind.Python]: { light: "#a8cbea", dark: "#37648f" },
  [FrameKind.Native]: { light: "#c9dceb", dark: "#4a6076" },
  [FrameKind.Operator]: { light: "#9fd2c2", dark: "#2b6f60" },
  [FrameKind.GpuApi]: { light: "#b3bfd3", dark: "#55627a" },
  [FrameKind.Kernel]: { light: "#f0b27c", dark: "#96591f" },
  [FrameKind.Line]: { light: "#f6dcb4", dark: "#6d5a36" },
  [FrameKind.Marker]: { light: "#dfd8f2", dark: "#544d74" },
  [FrameKind.Memory]: { light: "#e08f86", dark: "#8f3f36" },
};

/** Frames of libraries that are folded into one. */
export const LIBRARY: Shades = { light: "#e3e8ed", dark: "#3a424a" };
/** Passes of training: neither, forward, backward. */
export const PASSES: Shades[] = [
  { light: "#d5dae0", dark: "#4a525b" },
  { light: "#a8cbea", dark: "#37648f" },
  { light: "#d9a8cf", dark: "#80467a" },
];

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

export function kindColour(kind: FrameKind, theme: Theme): string {
  return KIND_COLOURS[kind][theme];
}

/** Every fill that text stands on. */
export function fills(theme: Theme): string[] {
  const shades = [...Object.values(KIND_COLOURS), ...PASSES, LIBRARY, MATCH].map((shade) => shade[theme]);
  return [...shades, ...KERNELS[theme], OKABE_ITO.blue, OKABE_ITO.vermilion];
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
  const lightness = theme === "light" ? 92 - 24 * size : 30 + 12 * size;
  return `hsl(${change < 0 ? 202 : 26} ${Math.round(5 + 50 * size)}% ${Math.round(lightness)}%)`;
}

// Black, for a dark grey and white leave colours between them without enough contrast.
const INKS = ["#ffffff", "#000000"];

/** The colour of text on any colour above: the one with more contrast. */
export function inkOn(colour: string): string {
  return contrast(INKS[0], colour) > contrast(INKS[1], colour) ? INKS[0] : INKS[1];
}

/** Contrast of two colours, 1 to 21. Source: WCAG 2.2, "contrast ratio". */
export function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const known = new Map<string, number>();

/** Of `#rrggbb` or `hsl(h s% l%)`. */
function luminance(colour: string): number {
  let found = known.get(colour);
  if (found === undefined) {
    const [r, g, b] = (colour.startsWith("#") ? ofHex(colour) : ofHsl(colour)).map((part) =>
      part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
    );
    found = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    known.set(colour, found);
  }
  return found;
}

function ofHex(colour: string): number[] {
  return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255);
}

function ofHsl(colour: string): number[] {
  const [hue, saturation, lightness] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  const [s, l] = [saturation / 100, lightness / 100];
  return [0, 8, 4].map((n) => {
    const k = (n + hue / 30) % 12;
    return l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
  });
}
