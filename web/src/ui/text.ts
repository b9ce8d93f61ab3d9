// Names come from programs and may hold anything. They reach the page as text nodes or through a canvas, never as HTML.

// C0 and C1 controls, and what turns the direction of text around or is not seen.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]/gu;

/** Text on one line in which every character is seen: others are shown as escapes, as in a terminal. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (letter) => {
    const code = letter.charCodeAt(0);
    return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** Printable text of at most so many characters, its end replaced by `…`. */
export function cut(text: string, length: number): string {
  const head = printable(text.slice(0, length + 1));
  return head.length > length ? `${head.slice(0, Math.max(length - 1, 0))}…` : head;
}

/** In less room neither of two ends would be read. */
const LEAST_FOR_BOTH = 11;

/** Printable text of at most so many characters: its middle gives way, for what tells names apart is often their end. */
export function cutMiddle(text: string, length: number): string {
  const whole = printable(text);
  if (whole.length <= length) return whole;
  if (length < LEAST_FOR_BOTH) return cut(text, length);
  const tail = Math.floor((length - 1) / 2);
  return `${whole.slice(0, Math.max(length - 1 - tail, 0))}…${tail > 0 ? whole.slice(-tail) : ""}`;
}

/** The same below what calls it: a name that begins with the caller's, as those of modules do, tells the rest. */
export function cutBelow(text: string, caller: string, length: number): string {
  const [whole, begin] = [printable(text), printable(caller)];
  if (whole.length <= length || !begin || !whole.startsWith(`${begin}.`)) return cutMiddle(text, length);
  const own = whole.slice(begin.length);
  return own.length <= length ? own : `…${own.slice(Math.min(1 - length, -1))}`;
}

/** A sentence in parts, of which every second is a number with its unit. */
export function numbersApart(text: string): string[] {
  return text.split(/([\d.,]+ (?:%|[kMG]?B|[num]?s)(?!\w))/);
}

/** Letters that stay of the end of a name. */
const TAIL = 14;
/** Letters before a difference that stay, too. */
const BEFORE = 3;
/** Letters from a second difference on, which tells a name from those that begin alike up to it. */
const AFTER = 4;
/** Letters of what is kept at most: more leave no room for where the name begins. */
const MOST = 26;

/** A name in three parts: where there is no room the last gives way, then the first. */
export type Parts = [head: string, kept: string, rest: string];

/** Each name in parts, of which its end is kept; of names that begin and end alike what differs. */
export function partsApart(names: string[]): Parts[] {
  return names.map((name) => {
    const at = name.length - Math.min(Math.floor(name.length / 2), TAIL);
    const alike = names.filter((other) => other !== name && other.slice(-TAIL) === name.slice(-TAIL));
    const places = alike.map((other) => firstDifference(name, other)).filter((place) => place >= BEFORE);
    if (places.length === 0) return [name.slice(0, at), name.slice(at), ""];
    const differs = Math.min(...places);
    const begin = Math.min(differs - BEFORE, at);
    const end = endApart(name, names, begin + TAIL, begin + MOST);
    return [name.slice(0, begin), name.slice(begin, end), name.slice(end)];
  });
}

/** Where to cut a name so that it differs from those that begin with the same letters. */
function endApart(name: string, names: string[], least: number, most: number): number {
  const places = names
    .filter((other) => other !== name && other.startsWith(name.slice(0, least)))
    .map((other) => firstDifference(name, other) + AFTER);
  return Math.max(least, ...places.filter((place) => place <= most));
}

function firstDifference(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}
