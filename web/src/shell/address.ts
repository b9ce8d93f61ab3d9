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

/**
 * The same profile in another list.
 *
 * @param before numbers of the profiles that were listed; none: nothing was
 * @param after those that are listed now; the first is chosen where the old one is gone
 */
export function movedPlace(place: Place, before: number[], after: number[]): Place {
  const chosen = before[place.profile];
  if (chosen === undefined) return place;
  const profile = after.indexOf(chosen);
  return profile < 0 ? { view: place.view, profile: 0, state: {} } : { ...place, profile };
}

export function placeText(place: Place): string {
  const entries = Object.entries(place.state).filter(([, value]) => value !== "");
  const first: [string, string][] = [["view", place.view]];
  if (place.profile) first.push(["profile", String(place.profile)]);
  return `#${new URLSearchParams([...first, ...entries])}`;
}
