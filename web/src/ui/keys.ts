/** Whether a key is meant for the view that is shown: it is not typed elsewhere, and no shortcut of the browser. */
export function isForView(event: KeyboardEvent, elsewhere = "input, select, textarea, dialog"): boolean {
  const isTyping = event.target instanceof Element && event.target.closest(elsewhere);
  return !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey;
}

/** Do what a view does at a key, if anything. */
export function act(event: KeyboardEvent, keys: Record<string, () => void>): void {
  const does = keys[event.key];
  if (!does || !isForView(event)) return;
  event.preventDefault();
  does();
}
