import { describe, expect, it } from "vitest";
import { groupsOf, nested, processLabel, sliceAt } from "./lanes";
import { traceFromText } from "./trace_text";

const STEP = `
thread 1
  0-100 step
  10-40 forward
  20-30 matmul
  50-90 backward
stream 7
  30-60 gemm
  50-80 copy
`;

function names(text: string, lane: number): string[][] {
  const data = traceFromText(text);
  const rows = groupsOf(data)[0].lanes[lane].rows;
  return rows.map((row) => [...row.slices].map((slice) => data.frames.name[data.tree.frame[data.slices.node[slice]]]));
}

describe("lanes", () => {
  it("put streams before threads and what is contained below what contains it", () => {
    expect(groupsOf(traceFromText(STEP))[0].lanes.map((lane) => lane.label)).toEqual(["stream 7", "thread 1"]);
    expect(names(STEP, 1)).toEqual([["step"], ["forward", "backward"], ["matmul"]]);
  });

  it("put what rests in the steady state last", () => {
    const data = traceFromText("thread 1\n  0-100 step\nthread 2\n  0-20 compile\nstream 7\n  5-9 warm\n");
    expect(groupsOf(data)[0].lanes.map((lane) => lane.label)).toEqual(["stream 7", "thread 1", "thread 2"]);
    const wall = { wall_ns: 100, text: "", parts: [], steady: [30, 90] as [number, number] };
    const known = { ...data, summary: { ...data.summary, wall } };
    expect(groupsOf(known)[0].lanes.map((lane) => lane.label)).toEqual(["thread 1", "stream 7", "thread 2"]);
  });

  it("put what overlaps below each other", () => {
    expect(names(STEP, 0)).toEqual([["gemm"], ["copy"]]);
  });

  it("need two rows where each kernel begins before the one before it ends", () => {
    const text = "stream 7\n  0-10 a\n  9-20 b\n  19-30 c\n  29-40 d\n";
    expect(names(text, 0)).toEqual([
      ["a", "c"],
      ["b", "d"],
    ]);
  });

  it("show domains of NVTX apart", () => {
    const text = "thread 1\n  0-9 nccl: reduce\n  1-5 forward\n  6-8 forward\n";
    expect(groupsOf(traceFromText(text))[0].lanes.map((lane) => lane.label)).toEqual(["thread 1", "thread 1 · nccl"]);
  });

  it("do not take values in names for domains", () => {
    const text = `thread 1\n${Array.from({ length: 20 }, (_, step) => `  ${step}-${step + 1} step${step}: run`).join("\n")}`;
    expect(groupsOf(traceFromText(text))[0].lanes).toHaveLength(1);
  });

  it("keep slices that touch on one level", () => {
    const { slices } = traceFromText("thread 1\n  0-5 a\n  5-9 b\n");
    expect(nested(slices, Int32Array.of(0, 1))).toHaveLength(1);
  });

  it("add the busy time up", () => {
    const row = groupsOf(traceFromText(STEP))[0].lanes[1].rows[1];
    expect([...row.busy]).toEqual([0, 30, 70]);
  });
});

describe("the slice at an instant", () => {
  const row = groupsOf(traceFromText(STEP))[0].lanes[1].rows[1];

  it("is the one that runs", () => expect(sliceAt(row, 60, 0)).toBe(1));
  it("is none in a gap", () => expect(sliceAt(row, 45, 2)).toBe(-1));
  it("is a near one when the pointer is beside it", () => expect(sliceAt(row, 42, 3)).toBe(0));
});

describe("a process", () => {
  it("has its rank where there are several", () => {
    const meta = {
      merged: [
        { pid: 1, rank: 0, host: "a" },
        { pid: 2, rank: 1, host: "b" },
      ],
    };
    expect(processLabel(meta, 2)).toBe("rank 1, process 2 on b");
    expect(processLabel({ pid: 2, rank: 0, ranks: 1 }, 2)).toBe("process 2");
  });
});
