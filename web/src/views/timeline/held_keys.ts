import { isForView } from "../../ui/keys";
import { HELD } from "./keys";

/** One press moves as far as so many seconds of holding. */
export const PRESS_S = 0.14;

export interface KeyEvents {
  /** A key that moves was pressed; it is held until `held` no longer has it. */
  step(key: string, seconds: number): void;
  /** Another key was pressed; whether it does anything. */
  act(key: string, isBack: boolean, target: EventTarget | null): boolean;
}

/** Keys of the whole page while the view is shown, but not while something is typed. */
export class HeldKeys {
  readonly held = new Set<string>();

  constructor(private readonly on: KeyEvents) {
    document.addEventListener("keydown", this.onDown);
    document.addEventListener("keyup", this.onUp);
    window.addEventListener("blur", this.onBlur);
  }

  destroy(): void {
    document.removeEventListener("keydown", this.onDown);
    document.removeEventListener("keyup", this.onUp);
    window.removeEventListener("blur", this.onBlur);
  }

  private readonly onDown = (event: KeyboardEvent): void => {
    if (!isForView(event)) return;
    const key = nameOf(event);
    // `+` is a letter with Shift on many keyboards.
    if (key in HELD && (!event.shiftKey || key === "+")) {
      this.held.add(key);
      if (!event.repeat) this.on.step(key, PRESS_S);
    } else if (!this.on.act(key, event.shiftKey, event.target)) return;
    event.preventDefault();
  };

  private readonly onUp = (event: KeyboardEvent): void => {
    this.held.delete(nameOf(event));
  };

  private readonly onBlur = (): void => this.held.clear();
}

function nameOf(event: KeyboardEvent): string {
  return event.key.length === 1 ? event.key.toLowerCase() : event.key;
}
