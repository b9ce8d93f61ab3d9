import "./app.css";
import { render } from "preact";
import { decode, fromBase64 } from "./data/decode";
import type { ProfileData } from "./data/profile";
import { addressText, movedAddress, parseAddress } from "./shell/address";
import { App } from "./shell/app";
import { followParent } from "./shell/embed";
import { Followed } from "./shell/follow";

/** Show profiles; what was shown before is in the address. */
function show(root: HTMLElement, profiles: ProfileData[]): void {
  render(null, root);
  root.replaceChildren();
  render(<App profiles={profiles} />, root);
}

async function readPage(root: HTMLElement): Promise<void> {
  const elements = [...document.querySelectorAll("script.profile")];
  const profiles = await Promise.all(elements.map((found) => decode(fromBase64(found.textContent))));
  for (const found of elements) found.remove();
  show(root, profiles);
}

function followServer(root: HTMLElement): void {
  const status = document.createElement("p");
  status.className = "status";
  status.setAttribute("role", "status");
  document.body.append(status);
  const say = (text: string) => {
    status.textContent = text;
    status.hidden = text === "";
  };
  let listed: number[] = [];
  const showMoved = (profiles: ProfileData[], numbers: number[]) => {
    history.replaceState(null, "", addressText(movedAddress(parseAddress(location.hash), listed, numbers)));
    listed = numbers;
    show(root, profiles);
  };
  new Followed(showMoved, say).start();
}

const root = document.getElementById("app") as HTMLElement;
followParent();
if (document.querySelector("meta[name=bragg-server]")) followServer(root);
else {
  readPage(root).catch((error: unknown) => {
    root.textContent = `This report could not be read: ${error}`;
    throw error;
  });
}
