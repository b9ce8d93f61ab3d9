import { describe, expect, it } from "vitest";
import type { KernelRow, Percentiles, ProfileData } from "../../data/profile";
import { profileFromText } from "../../data/sample";
import { COLUMNS, sizeText, sorted } from "./columns";
import { rowsOf } from "./rows";

function kernel(frame: number, family: string, time_ns: number, more: Partial<KernelRow> = {}): KernelRow {
  const unknown = { max_ns: null, flops: null, bytes: null, roof_ns: null, bound: null, configurations: [] };
  return { frame, family, time_ns, count: 1, ...unknown, ...more };
}

function withKernels(...kernels: KernelRow[]): ProfileData {
  return { ...profileFromText("kernel mm<a> 60\nkernel mm<b> 30\nkernel relu 10"), kernels };
}

describe("rows", () => {
  const known = { flops: 600, bytes: 60, roof_ns: 30, bound: "compute" as const };
  const data = withKernels(kernel(1, "mm", 60, known), kernel(2, "mm", 30, known), kernel(3, "relu", 10));
  it("are sums over specializations", () => {
    const [mm, relu] = rowsOf(data, "kernel");
    expect(mm).toMatchObject({ label: "mm", count: 2, time_ns: 90, share: 0.9, bound: "compute" });
    expect([mm.flops_per_s, mm.util]).toEqual([(1200 / 90) * 1e9, 60 / 90]);
    expect([relu.flops_per_s, relu.util]).toEqual([null, null]);
  });
  it("do not add up rates that are known of some only", () => {
    const some = withKernels(kernel(1, "mm", 60, known), kernel(2, "mm", 30));
    expect(rowsOf(some, "kernel")[0].util).toBe(null);
  });
  it("have the percentiles of their grouping", () => {
    const percentiles = { kernel: { mm: [2, 3] as Percentiles }, specialization: {} };
    expect(rowsOf({ ...data, percentiles }, "kernel")[0]).toMatchObject({ p50_ns: 2, p95_ns: 3 });
    expect(rowsOf({ ...data, percentiles }, "specialization")[0]).toMatchObject({ p50_ns: null, p95_ns: null });
  });
  it("sort what is not known behind everything else", () => {
    const util = COLUMNS.find((column) => column.name === "util");
    if (util === undefined) throw new Error("no column");
    for (const isDescending of [true, false]) {
      const names = sorted(rowsOf(data, "specialization"), util, isDescending).map((row) => row.name);
      expect(names[2]).toBe("relu");
    }
  });
  it("by module are named after the nearest file of the program", () => {
    const data = profileFromText("python train\n  library torch.mm\n    kernel a 3\nlibrary torch.mm\n  kernel a 1");
    expect(rowsOf(data, "module").map((row) => [row.name, row.time_ns])).toEqual([
      ["train.py", 3],
      ["torch", 1],
    ]);
  });
  it("by module are those of PyTorch where they were recorded", () => {
    const text =
      "scope Net\n  python train\n    scope Net.one\n      kernel a 3\n    kernel a 4\npython train\n  kernel a 1";
    const meta = { attributes: { Net: { module: "Net" }, "Net.one": { module: "Linear" } } };
    expect(rowsOf({ ...profileFromText(text), meta }, "module").map((row) => [row.name, row.time_ns])).toEqual([
      ["Net.one (Linear)", 3],
      ["Net", 4],
      ["train.py", 1],
    ]);
  });
});

describe("sizes", () => {
  it("are written without trailing ones", () => {
    expect([sizeText([8, 1, 1]), sizeText([8, 2, 1]), sizeText([1, 1, 4])]).toEqual(["8", "8×2", "1×1×4"]);
  });
});
