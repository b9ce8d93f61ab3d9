import { expect, it } from "vitest";
import { movedPlace, parsePlace, placeText } from "./address";

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

it("keeps a profile chosen where newer ones come before it", () => {
  const place = { view: "kernels", profile: 1, state: { node: "7" } };
  expect(movedPlace(place, [3, 5], [8, 3, 5])).toEqual({ ...place, profile: 2 });
  expect(movedPlace(place, [3, 5], [3])).toEqual({ view: "kernels", profile: 0, state: {} });
  expect(movedPlace(place, [], [3, 5])).toEqual(place);
});
