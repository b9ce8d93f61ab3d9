// A finding as a box: what it gains, what was measured, what to change, and where to look.

import { codeLine, lineText } from "../../data/places";
import type { Finding, ProfileData } from "../../data/profile";
import { labelOf, placeOf } from "../../data/tree";
import { button, element, sentence } from "../../ui/element";
import { cutMiddle, printable } from "../../ui/text";
import { SHORTEST_NS, spanText } from "../timeline/span";
import type { Host } from "../view";

const MAX_LABEL = 48;

/** What a button says, and the view and the state that it opens. */
type Target = [label: string, view: string, state: Record<string, string>];

export function findingCard(data: ProfileData, host: Host, finding: Finding): HTMLElement {
  const body = element("div", "body", element("p", "message", ...sentence(finding.message)));
  if (finding.hint) body.append(element("p", "change", element("b", "", "Change: "), printable(finding.hint)));
  if (finding.numbers.length > 0) body.append(evidence(finding));
  body.append(...places(data, finding), links(data, host, finding));
  const card = element("li", "finding", gain(finding), body);
  card.dataset.severity = finding.severity;
  return card;
}

function gain(finding: Finding): HTMLElement {
  const made = element("div", "gain", element("strong", "", finding.gain ? finding.gainText : "–"));
  if (finding.gain) made.append(element("span", "", finding.gainOf));
  made.append(element("span", "confidence", finding.confidence));
  if (finding.gain?.limit) made.append(element("span", "", `${finding.gain.limit} limits it`));
  return made;
}

function evidence(finding: Finding): HTMLElement {
  const pairs = finding.numbers.map(([name, value]) =>
    element("span", "", element("b", "", printable(value)), ` ${printable(name)}`),
  );
  return element("p", "evidence", ...pairs);
}

/** The line, with its text where the profile has it. */
function places(data: ProfileData, { rule, at, file = "", line = 0 }: Finding): HTMLElement[] {
  const text = lineText(data, file, line);
  const made = element("p", "place", element("span", "rule", rule));
  if (at) made.append(element("code", "", printable(at)));
  if (text) made.append(element("code", "line", printable(text)));
  return [made];
}

function links(data: ProfileData, host: Host, finding: Finding): HTMLElement {
  const made = element("div", "links");
  for (const [label, view, state] of targets(data, finding)) {
    made.append(button(label, () => host.open(view, state)));
  }
  return made;
}

function targets(data: ProfileData, { node, slice, file = "", line = 0, kernel = "", places = [] }: Finding): Target[] {
  const found: Target[] = [];
  const nodes = [node, ...places.map((place) => place.node)].filter((one) => one !== null && one > 0) as number[];
  for (const one of [...new Set(nodes)].slice(0, 3)) {
    const label = `Flame: ${cutMiddle(`${labelOf(data, one)} ${placeOf(data, data.tree.frame[one])}`.trim(), MAX_LABEL)}`;
    if (!found.some(([other]) => other === label)) found.push([label, "flame", { node: String(one) }]);
  }
  if (slice !== null) found.push(["Timeline", "timeline", { slice: String(slice), span: spanAround(data, slice) }]);
  const code = codeLine(data, file, line);
  if (code !== null) found.push(["Source line", "source", { kernel: code.code.name, line: `python:${code.row}` }]);
  else if (data.code.some((one) => one.name === kernel)) found.push(["Source", "source", { kernel }]);
  return found;
}

/** A slice with as much on both sides. */
function spanAround({ slices }: ProfileData, slice: number): string {
  const room = Math.max(slices.duration[slice], SHORTEST_NS);
  return spanText({ start: slices.start[slice] - room, end: slices.start[slice] + slices.duration[slice] + room });
}
