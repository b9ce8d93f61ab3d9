// A stretch of time that is shown or chosen, ns since the run began.

export interface Span {
  start: number;
  end: number;
}

/** Less than any slice that is recorded. */
export const SHORTEST_NS = 20;
// Around the whole, or the steady state, so that its ends are seen to be ends.
const MARGIN = 0.02;

/** What is shown at first: everything, with a margin. */
export function whole(length_ns: number): Span {
  const margin = Math.max(length_ns, SHORTEST_NS) * MARGIN;
  return { start: -margin, end: length_ns + margin };
}

/** The span as near to the wanted one as the limits allow: not shorter than can be told apart, not beyond the whole. */
export function clamped(wanted: Span, length_ns: number): Span {
  const limit = whole(length_ns);
  const length = Math.min(Math.max(wanted.end - wanted.start, SHORTEST_NS), limit.end - limit.start);
  const start = Math.min(Math.max(wanted.start, limit.start), limit.end - length);
  return { start, end: start + length };
}

/** Zoomed around an instant that stays where it is; a factor above 1 shows more. */
export function zoomed(span: Span, factor: number, around_ns: number, length_ns: number): Span {
  const before = Math.min(Math.max((around_ns - span.start) / (span.end - span.start), 0), 1);
  const limit = whole(length_ns);
  const wanted = (span.end - span.start) * factor;
  const length = Math.min(Math.max(wanted, SHORTEST_NS), limit.end - limit.start);
  const start = around_ns - before * length;
  return clamped({ start, end: start + length }, length_ns);
}

/** Moved by a share of its own length. */
export function panned(span: Span, share: number, length_ns: number): Span {
  const step = (span.end - span.start) * share;
  return clamped({ start: span.start + step, end: span.end + step }, length_ns);
}

/** Moved so that an instant is in its middle. */
export function centred(span: Span, around_ns: number, length_ns: number): Span {
  const half = (span.end - span.start) / 2;
  return clamped({ start: around_ns - half, end: around_ns + half }, length_ns);
}

/** Around a stretch, with room on both sides. */
export function around(target: Span, length_ns: number, room = 0.5): Span {
  const margin = Math.max(target.end - target.start, SHORTEST_NS) * room;
  return clamped({ start: target.start - margin, end: target.end + margin }, length_ns);
}

/** What two spans share; null: nothing. */
export function overlap(one: Span, other: Span): Span | null {
  const start = Math.max(one.start, other.start);
  const end = Math.min(one.end, other.end);
  return start < end ? { start, end } : null;
}

/** The steady state, where it is known: warm-up may be a hundred times as long, and would leave it a few pixels. */
export function usualSpan(steady: [number, number] | null | undefined, length_ns: number): Span {
  if (!steady) return whole(length_ns);
  const margin_ns = (steady[1] - steady[0]) * MARGIN;
  return clamped({ start: steady[0] - margin_ns, end: steady[1] + margin_ns }, length_ns);
}

/** `120~450`, as an address says it. */
export function spanText(span: Span): string {
  return `${Math.round(span.start)}~${Math.round(span.end)}`;
}

/** What `spanText` said; null: it did not. */
export function parseSpan(text: string | undefined): Span | null {
  const match = /^(-?\d+)~(-?\d+)$/.exec(text ?? "");
  if (match === null) return null;
  const span = { start: Number(match[1]), end: Number(match[2]) };
  return span.start < span.end ? span : null;
}
