import { expect, it } from "vitest";
import { chromeTrace } from "./chrome_trace";
import { densityOf } from "./density";
import { find } from "./find";
import { FlowIndex } from "./flows";
import { busyOfDevices } from "./idle";
import { groupsOf } from "./lanes";
import { bandAt, GROUP_PX, layoutOf, ROW_PX } from "./layout";
import { firstFrom, firstNear } from "./order";
import { ticksOf } from "./ticks";
import { traceFromText } from "./trace_text";

const DATA = traceFromText(`
thread 1
  0-100 step
  10-12 cuLaunchKernel ->5
stream 7
  20-60 Gemm<128> <-5
  60-70 copy
`);
const GROUPS = groupsOf(DATA);

it("a search finds names in any case, with their time", () => {
  const found = find(DATA, GROUPS, "gemm");
  expect([found?.slices.length, found?.time_ns]).toEqual([1, 40]);
  expect([...found!.hits.get(GROUPS[0].lanes[0].rows[0])!]).toEqual([0, 1, 1]);
});

it("a search between slashes is an expression, a broken one finds nothing", () => {
  expect(find(DATA, GROUPS, "/^(copy|step)$/")?.slices.length).toBe(2);
  expect(find(DATA, GROUPS, "/(/")?.slices.length).toBe(0);
  expect(find(DATA, GROUPS, "  ")).toBeNull();
});

it("an arrow is found at both of its ends", () => {
  const index = new FlowIndex(DATA.flows);
  const launch = DATA.slices.node.indexOf(DATA.frames.name.indexOf("cuLaunchKernel"));
  const kernel = DATA.slices.node.indexOf(DATA.frames.name.indexOf("Gemm<128>"));
  expect(index.of(launch)).toEqual([[launch, kernel]]);
  expect(index.of(kernel)).toEqual([[launch, kernel]]);
  expect(index.of(DATA.slices.node.indexOf(DATA.frames.name.indexOf("copy")))).toEqual([]);
});

it("a Chrome trace has every slice once, lanes from 1, and both ends of arrows", () => {
  const events = JSON.parse(chromeTrace(DATA, GROUPS).join("")).traceEvents as Record<string, unknown>[];
  const slices = events.filter((event) => event.ph === "X");
  expect(slices.map((event) => event.name)).toEqual(["Gemm<128>", "copy", "step", "cuLaunchKernel"]);
  expect(new Set(slices.map((event) => event.tid))).toEqual(new Set([1, 2]));
  expect(slices[0]).toMatchObject({ ts: 0.02, dur: 0.04, pid: 1 });
  expect(events.filter((event) => event.ph === "s" || event.ph === "f")).toHaveLength(2);
});

it("the ruler has round instants that are told apart", () => {
  expect(ticksOf({ start: 0, end: 1e6 }, 5).map((tick) => tick.text)).toEqual([
    "0.0 ms",
    "0.2 ms",
    "0.4 ms",
    "0.6 ms",
    "0.8 ms",
    "1.0 ms",
  ]);
  const near = ticksOf({ start: 3_000_000_000, end: 3_000_000_100 }, 4).map((tick) => tick.text);
  expect(near[1]).toBe("3.00000005 s");
  expect(new Set(near).size).toBe(near.length);
});

it("bands stand below each other, of a closed group the head alone", () => {
  const open = layoutOf(GROUPS, new Set(), false);
  expect(open.bands.map((band) => band.lane?.label ?? "head")).toEqual(["head", "stream 7", "thread 1"]);
  expect(bandAt(open, GROUP_PX + 3)?.depth).toBe(0);
  expect(bandAt(open, open.bands[2].rows_y + ROW_PX + 2)).toMatchObject({ depth: 1 });
  expect(layoutOf(GROUPS, new Set([0]), false).height).toBe(GROUP_PX);
});

it("the minimap shows how busy each part was", () => {
  const { gpu, host } = densityOf(GROUPS, busyOfDevices(DATA), { start: 0, end: 100 }, 5);
  expect(gpu).toEqual([0, 1, 1, 0.5, 0]);
  expect(host).toEqual([1, 1, 1, 1, 1]);
});

it("searches from near find what searches from the start find", () => {
  const values = Float64Array.from({ length: 1000 }, (_, index) => index * 3);
  for (const value of [1, 50, 2997, 5000]) expect(firstNear(values, value, 0)).toBe(firstFrom(values, value));
});
