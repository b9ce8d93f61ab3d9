// Finding places in ascending columns.

/** Index of the first value that is not below `value`, from `from` on. */
export function firstFrom(values: ArrayLike<number>, value: number, from = 0, to = values.length): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The same, for a value that is expected near `from`: the steps grow, so a near one is found soon. */
export function firstNear(values: ArrayLike<number>, value: number, from: number): number {
  let step = 1;
  let low = from;
  while (low + step < values.length && values[low + step] < value) {
    low += step;
    step *= 2;
  }
  return firstFrom(values, value, low, Math.min(low + step + 1, values.length));
}
