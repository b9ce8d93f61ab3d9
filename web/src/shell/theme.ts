import type { Theme } from "../ui/colours";

const KEY = "bragg-theme";

/** What the reader chose, else what the system prefers. */
export function initialTheme(): Theme {
  const stored = storage()?.getItem(KEY);
  if (stored === "light" || stored === "dark") return stored;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export function applyTheme(theme: Theme): void {
  document.documentElement.dataset.theme = theme;
}

export function storeTheme(theme: Theme): void {
  storage()?.setItem(KEY, theme);
}

/** Pages in sandboxed frames, as notebooks make them, have none. */
function storage(): Storage | null {
  try {
    return localStorage;
  } catch {
    return null;
  }
}
