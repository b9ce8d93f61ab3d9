import { describe, expect, it } from "vitest";
import { FrameKind } from "../data/profile";
import { changeColour, contrast, fills, heatColour, inkOn, kernelColour, kindColour, type Theme } from "./colours";

const THEMES: Theme[] = ["light", "dark"];
const STEPS = Array.from({ length: 21 }, (_, step) => step / 20);

describe.each(THEMES)("in the %s", (theme) => {
  it("text on every fill has a contrast of 4.5", () => {
    const scales = STEPS.flatMap((step) => [heatColour(step, theme), changeColour(2 * step - 1, theme)]);
    for (const fill of [...fills(theme), ...scales]) {
      expect(contrast(fill, inkOn(fill)), fill).toBeGreaterThanOrEqual(4.5);
    }
  });

  it("kinds that mean something else have other colours", () => {
    const kinds = Object.values(FrameKind).filter((kind) => typeof kind === "number" && kind !== FrameKind.Root);
    const colours = kinds.map((kind) => kindColour(kind as FrameKind, theme));
    expect(new Set(colours).size).toBe(kinds.length);
  });

  it("what GPUs do is warm, what the host does is not", () => {
    const isWarm = (colour: string) =>
      Number.parseInt(colour.slice(1, 3), 16) > Number.parseInt(colour.slice(5, 7), 16);
    const warm = [kindColour(FrameKind.Kernel, theme), kindColour(FrameKind.Memory, theme), kernelColour(0, theme)];
    const cool = [FrameKind.Python, FrameKind.Operator, FrameKind.GpuApi].map((kind) => kindColour(kind, theme));
    expect([...warm.map(isWarm), ...cool.map(isWarm)]).toEqual([true, true, true, false, false, false]);
  });
});

it("contrast is that of WCAG", () => {
  expect(contrast("#000000", "#ffffff")).toBeCloseTo(21);
  expect(contrast("#777777", "#ffffff")).toBeCloseTo(4.48, 2);
  expect(contrast("hsl(0 0% 100%)", "#000000")).toBeCloseTo(21);
});
