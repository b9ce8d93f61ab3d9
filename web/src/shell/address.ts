// The part of the address after `#`: which profile, which view, and what it shows.

export interface Address {
  /** Of several profiles in one page. */
  profile: number;
  /** Empty: the first. */
  view: string;
  state: Record<string, string>;
}

export function parseAddress(hash: string): Address {
  const found = Object.fromEntries(new URLSearchParams(hash.replace(/^#/, "")));
  const { view = "", profile = "0", ...state } = found;
  return { view, profile: Number.parseInt(profile, 10) || 0, state };
}

/**
 * The same profile in another list.
 *
 * @param before numbers of the profiles that were listed; none: nothing was
 * @param after those that are listed now; the first is chosen where the old one is gone
 */
export function movedAddress(address: Address, before: number[], after: number[]): Address {
  const chosen = before[address.profile];
  if (chosen === undefined) return address;
  const profile = after.indexOf(chosen);
  return profile < 0 ? { view: address.view, profile: 0, state: {} } : { ...address, profile };
}

export function addressText(address: Address): string {
  const entries = Object.entries(address.state).filter(([, value]) => value !== "");
  const first: [string, string][] = [["view", address.view]];
  if (address.profile) first.push(["profile", String(address.profile)]);
  return `#${new URLSearchParams([...first, ...entries])}`;
}
