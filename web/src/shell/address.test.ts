import { expect, it } from "vitest";
import { addressText, movedAddress, parseAddress } from "./address";

it("an address gives back what it was made of", () => {
  const address = { view: "flame", profile: 2, state: { q: "a&b=c #%", node: "7" } };
  expect(parseAddress(addressText(address))).toEqual(address);
});

it("leaves out what is empty", () => {
  expect(addressText({ view: "kernels", profile: 0, state: { q: "" } })).toBe("#view=kernels");
});

it("takes nonsense as the usual", () => {
  expect(parseAddress("#profile=x")).toEqual({ view: "", profile: 0, state: {} });
});

it("keeps a profile chosen where newer ones come before it", () => {
  const address = { view: "kernels", profile: 1, state: { node: "7" } };
  expect(movedAddress(address, [3, 5], [8, 3, 5])).toEqual({ ...address, profile: 2 });
  expect(movedAddress(address, [3, 5], [3])).toEqual({ view: "kernels", profile: 0, state: {} });
  expect(movedAddress(address, [], [3, 5])).toEqual(address);
});
