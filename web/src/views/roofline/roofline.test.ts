import { describe, expect, it } from "vitest";
import type { RooflineData, RooflinePoint } from "../../data/roofline";
import { traceFromText } from "../timeline/trace_text";
import { absentLines } from "./absent";
import { needs } from "./needs";
import { Axis, axesOf, decadeText, drawn, neighbour, radius, roofLines } from "./scale";

function point(name: string, intensity: number, flops_per_s: number, time_ns: number): RooflinePoint {
  const bytes_per_s = flops_per_s / intensity;
  return {
    name,
    roof: 0,
    time_ns,
    flops: (flops_per_s * time_ns) / 1e9,
    bytes: (bytes_per_s * time_ns) / 1e9,
    intensity,
    flops_per_s,
    bytes_per_s,
    util: 0.5,
    bound: "memory",
    absent: "",
  };
}

const CHART: RooflineData = {
  roofs: [
    {
      device: "NVIDIA H200",
      bytes_per_s: 4.8e12,
      flops_per_s: [
        [8, 1976e12],
        [16, 988e12],
      ],
      source: "data sheet",
      missing: "",
    },
  ],
  points: [
    point("matmul", 500, 3e14, 8e6),
    point("softmax", 0.4, 1e12, 2e6),
    { ...point("copy", 1, 1, 1), absent: "no flops" },
  ],
  time_ns: 1e7,
  widths: [16],
};
const BOX = { left: 80, right: 880, top: 20, bottom: 520 };
const { x, y } = axesOf(CHART, BOX);

describe("axes", () => {
  it("are logarithmic", () => {
    const axis = new Axis(1, 1e4, 0, 400);
    expect([1, 10, 1e4].map((value) => axis.pixel(value))).toEqual([0, 100, 400]);
    expect(axis.decades).toEqual([1, 10, 100, 1000, 10_000]);
  });

  it("hold every point and every corner of a roof", () => {
    for (const one of drawn(CHART)) {
      expect(x.pixel(one.intensity as number)).toBeGreaterThan(BOX.left);
      expect(x.pixel(one.intensity as number)).toBeLessThan(BOX.right);
      expect(y.pixel(one.flops_per_s as number)).toBeGreaterThan(BOX.top);
      expect(y.pixel(one.flops_per_s as number)).toBeLessThan(BOX.bottom);
    }
    expect(x.pixel(988 / 4.8)).toBeLessThan(BOX.right);
  });

  it("exist without points and without roofs", () => {
    const empty = axesOf({ ...CHART, points: [], roofs: [] }, BOX);
    expect(empty.x.high).toBeGreaterThan(empty.x.low);
  });
});

describe("roofs", () => {
  it("are a level for each width and a slope that ends at the highest", () => {
    const [fp8, fp16, slope] = roofLines(CHART, x, y);
    expect([fp8.widths, fp8.isCounted, fp16.widths, fp16.isCounted]).toEqual([[8], false, [16], true]);
    expect(fp16.from).toEqual([988e12 / 4.8e12, 988e12]);
    expect(slope.widths).toEqual([]);
    expect(slope.to[1]).toBeCloseTo(1976e12, -6);
  });

  it("of equal height are one", () => {
    const roofs: RooflineData["roofs"] = [
      {
        ...CHART.roofs[0],
        flops_per_s: [
          [16, 1e14],
          [32, 1e14],
        ],
      },
    ];
    expect(roofLines({ ...CHART, roofs, widths: [16, 32] }, x, y).map((line) => line.widths)).toEqual([[16, 32], []]);
  });

  it("without a bandwidth have no slope", () => {
    const roofs = [{ ...CHART.roofs[0], bytes_per_s: null }];
    expect(roofLines({ ...CHART, roofs }, x, y).map((line) => line.from[0])).toEqual([x.low, x.low]);
  });
});

it("powers of ten are short", () => {
  expect([0.01, 1, 1000, 1e10, 1e14, 1e15, 1e-5].map(decadeText)).toEqual([
    "0.01",
    "1",
    "1 k",
    "10 G",
    "100 T",
    "1 P",
    "1e-5",
  ]);
});

it("areas are shares of the time", () => {
  expect((radius(CHART.points[0], CHART) / radius(CHART.points[1], CHART)) ** 2).toBeCloseTo(4);
});

it("points without a place are not drawn", () => {
  expect(drawn(CHART).map((one) => one.name)).toEqual(["matmul", "softmax"]);
});

it("what is not drawn is a line for each reason", () => {
  const rest = ["a", "b", "c", "d", "e"].map((name, row) => ({
    ...point(name, 1, 1, row * 1e5),
    absent: "no flops",
  }));
  const points = [...rest, { ...point("f", 1, 1, 5e6), absent: "no bytes" }, CHART.points[0]];
  expect(absentLines({ ...CHART, points })).toEqual([
    "no bytes: f, 50.0 % of the GPU time",
    "no flops: e, d, c and 2 others, 10.0 % of the GPU time",
  ]);
  expect(absentLines({ ...CHART, points: CHART.points.slice(0, 2) })).toEqual([]);
});

it("keys go to the nearest point in their direction", () => {
  const places: [number, number][] = [
    [0, 0],
    [10, 2],
    [50, 0],
    [0, 30],
  ];
  expect(neighbour(places, 0, 1, 0)).toBe(1);
  expect(neighbour(places, 0, 0, 1)).toBe(3);
  expect(neighbour(places, 0, -1, 0)).toBe(-1);
});

it("what is lacking is said", () => {
  const data = traceFromText("stream 7\n  0-9 a");
  const time = { unit: "ns", kind: "inclusive" as const, own: new Float64Array(2) };
  expect(needs(data)).toContain("no GPU time");
  expect(needs({ ...data, metrics: { gpu_time: time } })).toContain("needs the flops and bytes of kernels");
  expect(needs({ ...data, metrics: { gpu_time: time, flops16: time } })).toContain("needs the bytes of kernels");
  expect(needs({ ...data, metrics: { gpu_time: time }, roofline: CHART })).toBe("");
});
