import { describe, expect, it } from "vitest";
import { countText, rateText, shareText, timeText, valueText } from "./numbers";

describe("numbers", () => {
  it("writes times in the largest unit that is reached", () => {
    expect([12, 1234, 56_789_000, 2.5e9].map(timeText)).toEqual(["12 ns", "1.23 us", "56.8 ms", "2.50 s"]);
  });
  it("writes sizes in powers of 1000, counts whole and other units as they are", () => {
    expect(valueText(49_152, "B")).toBe("49.2 kB");
    expect(valueText(1_234_567, "1")).toBe("1,234,567");
    expect(valueText(3.5, "tokens")).toBe("3.50 tokens");
  });
  it("writes rates with a prefix", () => {
    expect(rateText(3.12e14, "flop/s")).toBe("312 Tflop/s");
    expect(rateText(0, "B/s")).toBe("0 B/s");
  });
  it("tells little from nothing", () => {
    expect([0, 0.0001, 0.335, 1].map(shareText)).toEqual(["0.0 %", "<0.1 %", "33.5 %", "100.0 %"]);
  });
  it("has a dash for what is not known", () => {
    expect([timeText(null), timeText(Number.NaN), shareText(null)]).toEqual(["–", "–", "–"]);
  });
  it("counts", () => {
    expect([countText(1, "kernel"), countText(12_345, "kernel"), countText(2, "match", "matches")]).toEqual([
      "1 kernel",
      "12,345 kernels",
      "2 matches",
    ]);
  });
});
