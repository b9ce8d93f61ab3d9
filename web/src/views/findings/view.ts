import "./findings.css";
import type { Findings, ProfileData } from "../../data/profile";
import { element } from "../../ui/element";
import { countText, shareText } from "../../ui/numbers";
import { printable } from "../../ui/text";
import type { Host, View } from "../view";
import { boundsBar } from "./bounds";
import { findingCard } from "./card";

/** Why the program is slow: causes by gain, what was fine, and what could not be judged. */
export class FindingsView implements View {
  private chosen = -1;
  private cards: HTMLElement[] = [];

  constructor(
    private readonly data: ProfileData,
    private readonly host: Host,
  ) {}

  mount(parent: HTMLElement): void {
    const found = this.data.findings as Findings;
    this.cards = found.rows.map((finding) => findingCard(this.data, this.host, finding));
    const worth = this.cards.filter((_, row) => found.rows[row].isWorth);
    const small = this.cards.filter((_, row) => !found.rows[row].isWorth);
    const root = element("div", "findings-page", element("h2", "", printable(found.sentence) || "Findings"));
    if (found.parts.length > 0) root.append(boundsBar(found.parts));
    if (worth.length > 0) root.append(element("ol", "findings", ...worth));
    else {
      const judged = found.fine.length > 0 ? "No rule found a cause." : "No rule could judge.";
      root.append(element("p", "none", found.nothing || judged));
    }
    if (small.length > 0) {
      const title = `${countText(small.length, "finding")} below ${shareText(found.leastGain)} of the wall time`;
      root.append(element("details", "", element("summary", "", title), element("ol", "findings", ...small)));
    }
    root.append(...this.rest(found));
    parent.append(root);
  }

  destroy(): void {}

  state(): Record<string, string> {
    return this.chosen >= 0 ? { finding: String(this.chosen) } : {};
  }

  apply(state: Record<string, string>): void {
    const wanted = Number.parseInt(state.finding ?? "-1", 10);
    this.chosen = this.cards[wanted] ? wanted : -1;
    for (const [row, card] of this.cards.entries()) card.classList.toggle("chosen", row === this.chosen);
    const card = this.cards[this.chosen];
    const folded = card?.closest("details");
    if (folded) folded.open = true;
    card?.scrollIntoView({ block: "nearest" });
  }

  private rest({ fine, skipped }: Findings): HTMLElement[] {
    const made: HTMLElement[] = [];
    if (fine.length > 0) made.push(element("p", "fine", element("b", "", "Looked at and fine: "), fine.join(", ")));
    if (skipped.length > 0) {
      const rows = skipped.map(({ missing, command, rules }) => {
        const row = element("li", "", `${rules.join(", ")}: this profile is without ${printable(missing)}. `);
        if (command) row.append("Record it with ", element("code", "", command));
        return row;
      });
      made.push(element("h3", "", "Not judged"), element("ul", "skipped", ...rows));
    }
    return made;
  }
}
