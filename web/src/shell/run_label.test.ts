import { expect, it } from "vitest";
import { runLabel } from "./run_label";

const AT = new Date(2026, 10, 23, 14, 2).getTime();
const run = { command: "python3 train.py", duration: "19.8 s", startedMs: AT };

it("a run is named with its command, how long it took and when it began", () => {
  expect(runLabel({ title: "train.bragg", run }, AT + 60_000)).toBe("train.bragg · python3 train.py · 19.8 s · 14:02");
  expect(runLabel({ title: "train.bragg", run }, AT + 48 * 3_600_000)).toMatch(/ · 23 Nov,? 14:02$/);
});

it("what is not known is left out, and long commands are cut", () => {
  expect(runLabel({ title: "a.json", run: { command: "", duration: "", startedMs: null } })).toBe("a.json");
  const long = { ...run, command: "x".repeat(200) };
  expect(runLabel({ title: "a", run: long }, AT).length).toBeLessThan(90);
});
