import "./app.css";
import { render } from "preact";
import { decode, fromBase64 } from "./data/decode";
import { App } from "./shell/app";

async function start(root: HTMLElement): Promise<void> {
  const elements = [...document.querySelectorAll("script.profile")];
  const profiles = await Promise.all(elements.map((found) => decode(fromBase64(found.textContent))));
  for (const found of elements) found.remove();
  root.replaceChildren();
  render(<App profiles={profiles} />, root);
}

const root = document.getElementById("app") as HTMLElement;
start(root).catch((error: unknown) => {
  root.textContent = `This report could not be read: ${error}`;
  throw error;
});
