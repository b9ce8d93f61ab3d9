import { expect, it } from "vitest";
import { profileFromText } from "../../data/sample";
import { parseSettings, settingsState, usualSettings } from "./settings";

const data = profileFromText("library torch.run\n  kernel gemm 3");

it("an address gives back the settings that it was made of", () => {
  const settings = { metric: "gpu_time", direction: "up" as const, folds: false, colour: "gpu_time", query: "a b" };
  expect(parseSettings(settingsState(settings, data), data)).toEqual(settings);
});

it("says nothing of what is usual", () => {
  expect(Object.values(settingsState(usualSettings(data), data)).join("")).toBe("");
});

it("takes nonsense as the usual", () => {
  const nonsense = { metric: "no", direction: "left", colour: "red" };
  expect(parseSettings(nonsense, data)).toEqual(usualSettings(data));
});
