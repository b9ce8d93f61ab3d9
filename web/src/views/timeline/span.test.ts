import { describe, expect, it } from "vitest";
import { clamped, overlap, panned, parseSpan, SHORTEST_NS, spanText, usualSpan, whole, zoomed } from "./span";

const LENGTH = 1000;

describe("zooming", () => {
  it("leaves the instant under the pointer where it is", () => {
    const span = zoomed({ start: 100, end: 300 }, 0.5, 150, LENGTH);
    expect(span).toEqual({ start: 125, end: 225 });
    expect((150 - span.start) / (span.end - span.start)).toBe(0.25);
  });

  it("ends at the shortest and at the whole", () => {
    const near = zoomed({ start: 100, end: 130 }, 1e-6, 110, LENGTH);
    expect(near.end - near.start).toBe(SHORTEST_NS);
    expect(zoomed({ start: 100, end: 300 }, 1e6, 150, LENGTH)).toEqual(whole(LENGTH));
  });
});

describe("panning", () => {
  it("moves by a share of what is shown", () => {
    expect(panned({ start: 100, end: 300 }, 0.5, LENGTH)).toEqual({ start: 200, end: 400 });
  });

  it("stops at the ends and keeps the length", () => {
    expect(panned({ start: 700, end: 900 }, 10, LENGTH)).toEqual({ start: 820, end: 1020 });
    expect(clamped({ start: -500, end: -300 }, LENGTH)).toEqual({ start: -20, end: 180 });
  });
});

it("a span survives an address, and nonsense does not become one", () => {
  expect(parseSpan(spanText({ start: -5, end: 120 }))).toEqual({ start: -5, end: 120 });
  for (const text of [undefined, "", "5", "9~3", "a~b"]) expect(parseSpan(text)).toBeNull();
});

it("the steady state is shown first, with a little around it", () => {
  expect(usualSpan([500, 700], LENGTH)).toEqual({ start: 496, end: 704 });
  expect(usualSpan(null, LENGTH)).toEqual(whole(LENGTH));
});

it("spans that only touch share nothing", () => {
  expect(overlap({ start: 0, end: 5 }, { start: 3, end: 9 })).toEqual({ start: 3, end: 5 });
  expect(overlap({ start: 0, end: 5 }, { start: 5, end: 9 })).toBeNull();
});
