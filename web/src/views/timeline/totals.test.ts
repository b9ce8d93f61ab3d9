import { describe, expect, it } from "vitest";
import { busyOfDevices } from "./idle";
import { groupsOf } from "./lanes";
import { idleTexts, sharesText, type Totals, totalsOf } from "./totals";
import { traceFromText } from "./trace_text";

const TRACE = `
thread 1
  0-100 step
  0-50 inner
stream 7
  0-10 gemm
  40-60 gemm
  60-70 copy
`;

function totals(text: string, start: number, end: number): [Totals, Record<string, [number, number]>] {
  const data = traceFromText(text, text === TRACE ? [[10, 40, "gemm"]] : []);
  const found = totalsOf(data, groupsOf(data), busyOfDevices(data), { start, end });
  return [
    found,
    Object.fromEntries(found.frames.map((one) => [data.frames.name[one.frame], [one.time_ns, one.count]])),
  ];
}

describe("a range", () => {
  it("adds up kernels, of those that stick out the part inside", () => {
    expect(totals(TRACE, 50, 65)[1]).toEqual({ gemm: [10, 1], copy: [5, 1] });
  });

  it("has one row for kernels that are called the same", () => {
    const data = traceFromText("stream 7\n  0-10 mul<float>\n  10-14 mul<double>\n  20-25 copy\n");
    data.frames.label.forEach((label, frame) => {
      if (label.startsWith("mul")) data.frames.label[frame] = "mul";
    });
    const { frames } = totalsOf(data, groupsOf(data), busyOfDevices(data), { start: 0, end: 100 });
    expect(frames.map(({ frame, time_ns, count }) => [data.frames.label[frame], time_ns, count])).toEqual([
      ["mul", 14, 2],
      ["copy", 5, 1],
    ]);
  });

  it("has nothing of what ended as it begins", () => {
    expect(totals(TRACE, 10, 40)[1]).toEqual({});
  });

  it("says how long the GPU was idle", () => {
    expect(totals(TRACE, 0, 100)[0].idle).toEqual([{ label: "GPU 0", share: 0.6 }]);
  });

  it("adds up the outermost slices of threads where there is no GPU", () => {
    const [found, times] = totals("thread 1\n  0-100 step\n  0-50 inner\n", 0, 80);
    expect([found.ofGpu, times]).toEqual([false, { step: [80, 1] }]);
  });

  it("has shares of itself where a step and the operators in it stand in lanes of their own", () => {
    const data = traceFromText("thread 1\n  0-60 step\nthread 1 ops\n  10-40 add\n");
    const found = totalsOf(data, groupsOf(data), busyOfDevices(data), { start: 0, end: 100 });
    expect([found.whole_ns, sharesText(found)]).toEqual([100, "Shares are of these 100 ns."]);
  });

  it("of GPUs has shares of what they worked", () => {
    const found = totals(TRACE, 0, 100)[0];
    expect([found.whole_ns, sharesText(found)]).toEqual([40, "Shares are of 40 ns of GPU work."]);
  });

  it("is empty where nothing ran", () => {
    expect(totals(TRACE, 80, 90)[0].frames).toEqual([]);
  });
});

it("many devices are told together", () => {
  const idle = [0.1, 0.2, 0.3, 0.4, 0.5].map((share, device) => ({ label: `GPU ${device}`, share }));
  const totals = { ofGpu: true, frames: [], whole_ns: 0 };
  expect(idleTexts({ ...totals, idle })).toEqual(["5 GPUs idle 30.0 % (10.0 % to 50.0 %)"]);
  expect(idleTexts({ ...totals, idle: idle.slice(0, 2) })).toEqual(["GPU 0 idle 10.0 %", "GPU 1 idle 20.0 %"]);
});
