import { expect, it } from "vitest";
import { parsePlace, placeText } from "./address";

it("an address gives back what it was made of", () => {
  const place = { view: "flame", profile: 2, state: { q: "a&b=c #%", node: "7" } };
  expect(parsePlace(placeText(place))).toEqual(place);
});

it("leaves out what is empty", () => {
  expect(placeText({ view: "kernels", profile: 0, state: { q: "" } })).toBe("#view=kernels");
});

it("takes nonsense as the usual", () => {
  expect(parsePlace("#profile=x")).toEqual({ view: "", profile: 0, state: {} });
});
