// Kernels below the roofs of their devices. Written by bragg/views/web/points.py.

/** The limits of one device. */
export interface Roof {
  device: string;
  bytes_per_s: number | null;
  /** By width in bits, ascending. */
  flops_per_s: [width: number, flops_per_s: number][];
  /** Where the rates are from. */
  source: string;
  /** What is unknown and why. */
  missing: string;
}

/** A kernel, or a scope that was given flops or bytes, over all call paths; null: not known. */
export interface RooflinePoint {
  name: string;
  /** Row of `roofs`. */
  roof: number | null;
  time_ns: number;
  flops: number;
  bytes: number;
  intensity: number | null;
  flops_per_s: number | null;
  bytes_per_s: number | null;
  /** Share of its roof, 0 to 1. */
  util: number | null;
  bound: "compute" | "memory" | null;
  /** Why it has no place in the chart; empty: it has one. */
  absent: string;
}

export interface RooflineData {
  roofs: Roof[];
  /** Those with most GPU time first. */
  points: RooflinePoint[];
  /** GPU time of the whole profile. */
  time_ns: number;
  /** Widths in bits of the flops that were counted. */
  widths: number[];
}
