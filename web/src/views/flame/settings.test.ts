import { expect, it } from "vitest";
import { profileFromText } from "../../data/sample";
import { ofPart, parseSettings, settingsState, usualSettings } from "./settings";

const data = profileFromText("library torch.run\n  kernel gemm 3");

const OTHER = { metric: "gpu_time", direction: "up", folds: false, colour: "gpu_time", query: "a b" } as const;

it("an address gives back the settings that it was made of", () => {
  const settings = { part: "all", ...OTHER } as const;
  expect(parseSettings(settingsState(settings, data), data)).toEqual(settings);
});

it("a part of the run has metrics of its own", () => {
  const steady = { host_time: { unit: "ns", kind: "inclusive" as const, own: Float64Array.of(0, 5, 0) } };
  const both = { ...data, steady, opens: { isSteady: true, metric: "host_time" } };
  expect(usualSettings(both)).toMatchObject({ part: "steady", metric: "host_time" });
  expect(parseSettings({ part: "all" }, both)).toMatchObject({ part: "all", metric: "gpu_time" });
  expect(parseSettings({ part: "steady", metric: "gpu_time" }, both)).toMatchObject({ metric: "host_time" });
  expect(parseSettings({ part: "steady" }, data).part).toBe("all");
  expect(ofPart(both, "steady").metrics).toBe(steady);
});

it("says nothing of what is usual", () => {
  expect(Object.values(settingsState(usualSettings(data), data)).join("")).toBe("");
});

it("takes nonsense as the usual", () => {
  const nonsense = { metric: "no", direction: "left", colour: "red" };
  expect(parseSettings(nonsense, data)).toEqual(usualSettings(data));
});
