// Rows of a flame graph while they are put together.

const FIRST_SLOTS = 1024;

/** Parents precede children; no two children of a row have the same key. */
export class Rows {
  readonly parent: number[] = [];
  readonly key: number[] = [];
  readonly value: number[] = [];
  readonly node: number[] = [];
  readonly folded: number[] = [];
  /** By hash of parent and key: a row + 1; 0: free. A Map takes ten times as long. */
  private slots = new Int32Array(FIRST_SLOTS);

  /** The row with this key below a parent, made where there is none; `node` is what a new one stands for. */
  child(parent: number, key: number, node: number): number {
    const slot = this.slotOf(parent, key);
    if (this.slots[slot]) return this.slots[slot] - 1;
    this.slots[slot] = this.parent.push(parent);
    this.key.push(key);
    this.value.push(0);
    this.node.push(node);
    this.folded.push(0);
    if (this.parent.length * 2 > this.slots.length) this.grow();
    return this.parent.length - 1;
  }

  /** Where a row is, or would be. */
  private slotOf(parent: number, key: number): number {
    const mask = this.slots.length - 1;
    const both = Math.imul(parent + 1, 0x9e3779b1) ^ key;
    const mixed = Math.imul(both ^ (both >>> 16), 0x85ebca6b);
    let slot = (mixed ^ (mixed >>> 13)) & mask;
    while (this.slots[slot] && !this.is(this.slots[slot] - 1, parent, key)) slot = (slot + 1) & mask;
    return slot;
  }

  private is(row: number, parent: number, key: number): boolean {
    return this.parent[row] === parent && this.key[row] === key;
  }

  private grow(): void {
    this.slots = new Int32Array(this.slots.length * 4);
    for (let row = 0; row < this.parent.length; row++)
      this.slots[this.slotOf(this.parent[row], this.key[row])] = row + 1;
  }
}
