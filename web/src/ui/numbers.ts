// Numbers for people; the same rules as the terminal's.

const LADDERS: Record<string, [string, number][]> = {
  ns: [
    ["s", 1e9],
    ["ms", 1e6],
    ["us", 1e3],
    ["ns", 1],
  ],
  B: [
    ["GB", 1e9],
    ["MB", 1e6],
    ["kB", 1e3],
    ["B", 1],
  ],
  "1": [["", 1]],
};
const RATES: [string, number][] = [
  ["T", 1e12],
  ["G", 1e9],
  ["M", 1e6],
  ["k", 1e3],
  ["", 1],
];

/** A value with its unit, to three digits or more: `12.3 ms`; a dash for NaN and null. */
export function valueText(value: number | null, unit: string): string {
  if (value === null || Number.isNaN(value)) return "–";
  const ladder = LADDERS[unit];
  if (ladder === undefined) return `${digits(value)} ${unit}`.trimEnd();
  const [name, divisor] = ladder.find((step) => Math.abs(value) >= step[1]) ?? ladder[ladder.length - 1];
  const scaled = value / divisor;
  const text = divisor === 1 && Number.isInteger(scaled) ? grouped(scaled, 0) : digits(scaled);
  return name ? `${text} ${name}` : text;
}

export function timeText(time_ns: number | null): string {
  return valueText(time_ns, "ns");
}

export function bytesText(size_bytes: number | null): string {
  return valueText(size_bytes, "B");
}

/** A rate with the prefix that fits: `312 Tflop/s`. */
export function rateText(value: number | null, unit: string): string {
  if (value === null || Number.isNaN(value)) return "–";
  const [prefix, divisor] = RATES.find((step) => Math.abs(value) >= step[1]) ?? RATES[RATES.length - 1];
  return `${digits(value / divisor)} ${prefix}${unit}`;
}

/** A share of a whole, 0 to 1, as percent. */
export function shareText(share: number | null): string {
  if (share === null || Number.isNaN(share)) return "–";
  return share > 0 && share < 0.0005 ? "<0.1 %" : `${(share * 100).toFixed(1)} %`;
}

/** `1 kernel`, `12,345 kernels`. */
export function countText(count: number, noun: string, nouns = `${noun}s`): string {
  return `${grouped(count, 0)} ${count === 1 ? noun : nouns}`;
}

function digits(value: number): string {
  const size = Math.abs(value);
  return grouped(value, size >= 100 || value === 0 ? 0 : size >= 10 ? 1 : size >= 0.01 ? 2 : 4);
}

/** With a comma between thousands, whatever the reader's language: numbers are the same in every report. */
function grouped(value: number, decimals: number): string {
  const [whole, fraction] = value.toFixed(decimals).split(".");
  const text = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return fraction === undefined ? text : `${text}.${fraction}`;
}
