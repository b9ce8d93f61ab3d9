import { expect, it } from "vitest";
import { profileFromText } from "../data/sample";
import { linksOf } from "./links";

it("leads only to views that show something of the node", () => {
  const data = profileFromText("python step\n  kernel gemm 3");
  expect(linksOf(data, 2, [])).toEqual([["Flame", "flame"]]);
  const unknown = { max_ns: null, flops: null, bytes: null, roof_ns: null, bound: null, configurations: [] };
  const kernels = [{ frame: 2, family: "gemm", time_ns: 3, count: 1, ...unknown }];
  expect(linksOf({ ...data, kernels }, 2, ["flame"])).toEqual([["Kernels", "kernels"]]);
  expect(linksOf({ ...data, kernels }, 1, ["flame"])).toEqual([]);
});
