import { describe, expect, it } from "vitest";
import { gapCause } from "./gap_cause";
import { modelOf } from "./model";
import { traceFromText } from "./trace_text";

function cause(launch: string): [number, number] | null {
  const data = traceFromText(`thread 1\n${launch}\nstream 7\n  0-20 a\n  60-90 b <-5\n`);
  const found = gapCause(data, modelOf(data), { start: 20, end: 60 });
  return found === null ? null : [found.waiting_ns, found.starting_ns];
}

describe("a gap", () => {
  it("waits for the host until the end of the launch, then for the start", () => {
    expect(cause("  40-50 cuLaunchKernel ->5")).toEqual([30, 10]);
  });

  it("of something that was launched before it waits for the start alone", () => {
    expect(cause("  5-10 cuLaunchKernel ->5")).toEqual([0, 40]);
  });

  it("has no cause where the launch is not known", () => {
    expect(cause("  5-10 cuLaunchKernel ->9")).toBeNull();
  });

  it("names what ended it and what launched that", () => {
    const data = traceFromText("thread 1\n  40-50 cuLaunchKernel ->5\nstream 7\n  0-20 a\n  60-90 b <-5\n");
    const found = gapCause(data, modelOf(data), { start: 20, end: 60 });
    const name = (slice: number) => data.frames.name[data.tree.frame[data.slices.node[slice]]];
    expect([name(found!.next), name(found!.launch)]).toEqual(["b", "cuLaunchKernel"]);
  });
});
