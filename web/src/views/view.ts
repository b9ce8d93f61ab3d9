import type { ProfileData } from "../data/profile";

/** One way to look at a profile. Mounted while it is shown; what it shows is a few strings, which are in the address. */
export interface View {
  mount(element: HTMLElement): void;
  destroy(): void;
  /** What the address must say for the same picture, without what is as usual. */
  state(): Record<string, string>;
  /** Show what an address says; called once after `mount` and whenever the address changes. Bad values are usual ones. */
  apply(state: Record<string, string>): void;
}

/** What a view can ask of the page. */
export interface Host {
  readonly theme: "light" | "dark";
  /** Another node is of interest: other views show it too. */
  select(node: number): void;
  open(view: string, state: Record<string, string>): void;
  /** `state()` has changed. */
  changed(): void;
}

export type ViewClass = new (data: ProfileData, host: Host) => View;

/** A row of the table of views. */
export interface ViewRow {
  label: string;
  view: ViewClass;
  /** Why it would be empty; empty when it is not. */
  needs(data: ProfileData): string;
  /** What it shows where there is something to show; with `command` and `sketch` it stands in its place. */
  shows: string;
  /** What records what it needs; empty: nothing more is needed. */
  command: string;
  /** Boxes of a drawing, in a room of 160 x 72: what colour means, left, top, width, height. */
  sketch: [role: string, x: number, y: number, width: number, height: number][];
  /** Keys that it listens to, and what they do. */
  keys: [string, string][];
}
