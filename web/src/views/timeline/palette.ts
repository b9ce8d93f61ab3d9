// Colours of slices: kernels with most time have colours of their own, everything else that of its kind.

import type { ProfileData } from "../../data/profile";
import { FrameKind } from "../../data/profile";
import { kernelColour, kindColour, MATCH, type Theme, WAITING } from "../../ui/colours";
import type { Pixel } from "./paint";
import { mixed, pixelOf } from "./paint";

export interface Palette {
  background: Pixel;
  backgroundCss: string;
  /** Behind the heads of groups. */
  group: string;
  grid: Pixel;
  gap: Pixel;
  /** What was searched for, and text on it. */
  hit: Pixel;
  hitInk: string;
  /** Over what is not chosen. */
  veil: string;
  accent: string;
  /** Of the minimap. */
  gpu: string;
  host: string;
  ink: string;
  faint: string;
  line: string;
  /** Colour of each frame as `#rrggbb`. */
  css: string[];
  /** The same as pixels. */
  pixels: Uint32Array;
  /** The same for what was not searched for. */
  dimmed: Uint32Array;
}

/** Colour of each frame: `#rrggbb`. */
export function frameColours(data: ProfileData, theme: Theme): string[] {
  const { frames, slices, tree } = data;
  const time = new Float64Array(frames.kind.length);
  for (let row = 0; row < slices.node.length; row += 1) time[tree.frame[slices.node[row]]] += slices.duration[row];
  const kernels = [...frames.kind.keys()]
    .filter((frame) => frames.kind[frame] === FrameKind.Kernel && time[frame] > 0)
    .sort((a, b) => time[b] - time[a]);
  const rank = new Map(kernels.map((frame, index) => [frame, index]));
  return frames.name.map((_, frame) => {
    const kernel = rank.get(frame);
    if (kernel !== undefined) return kernelColour(kernel, theme);
    return kindColour(frames.kind[frame] as FrameKind, theme);
  });
}

export function paletteOf(colours: string[], theme: Theme): Palette {
  const isLight = theme === "light";
  const backgroundCss = isLight ? "#ffffff" : "#14171a";
  const background = pixelOf(backgroundCss);
  const pixels = Uint32Array.from(colours, pixelOf);
  return {
    background,
    backgroundCss,
    group: isLight ? "#f4f6f8" : "#1d2126",
    grid: pixelOf(isLight ? "#eceef2" : "#22262e"),
    gap: pixelOf(WAITING[theme]),
    hit: pixelOf(MATCH[theme]),
    hitInk: isLight ? "#ffffff" : "#111111",
    veil: isLight ? "rgb(255 255 255 / 60%)" : "rgb(10 11 14 / 60%)",
    accent: isLight ? "#0072b2" : "#56b4e9",
    gpu: isLight ? "#dd8f4a" : "#d08a4e",
    host: isLight ? "#6d9dc5" : "#5f8fb8",
    ink: isLight ? "#171a1d" : "#e8ebee",
    faint: isLight ? "#57616b" : "#9aa5b0",
    line: isLight ? "#d8dde3" : "#343b43",
    css: colours,
    pixels,
    dimmed: pixels.map((pixel) => mixed(background, pixel, 0.22)),
  };
}
