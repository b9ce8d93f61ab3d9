// The part of the address after `#`: which profile, which view, and what it shows.

export interface Place {
  /** Of several profiles in one page. */
  profile: number;
  /** Empty: the first. */
  view: string;
  state: Record<string, string>;
}

export function parsePlace(hash: string): Place {
  const found = Object.fromEntries(new URLSearchParams(hash.replace(/^#/, "")));
  const { view = "", profile = "0", ...state } = found;
  return { view, profile: Number.parseInt(profile, 10) || 0, state };
}

export function placeText(place: Place): string {
  const entries = Object.entries(place.state).filter(([, value]) => value !== "");
  const first: [string, string][] = [["view", place.view]];
  if (place.profile) first.push(["profile", String(place.profile)]);
  return `#${new URLSearchParams([...first, ...entries])}`;
}
