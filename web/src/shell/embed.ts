// A page in a frame of a notebook: its address is told to the page around it, which may set it.

const isEmbedded = parent !== window;

/** Tell the page around this one what is shown: what stands behind `#`. */
export function tellAddress(address: string): void {
  // A sandboxed page has no origin, so there is none to tell; nothing but the address is told.
  if (isEmbedded) parent.postMessage({ bragg: address.replace(/^#/, "") }, "*");
}

/** Show what the page around this one asks for. */
export function followParent(): void {
  if (!isEmbedded) return;
  addEventListener("message", (event: MessageEvent) => {
    if (event.source === parent && typeof event.data?.bragg === "string") location.hash = event.data.bragg;
  });
}
