import "./summary.css";
import "../findings/findings.css";
import type { HotRow, HotTable, ProfileData, Wall } from "../../data/profile";
import { element, ends, pairs, sentence } from "../../ui/element";
import { countText, shareText, timeText, valueText } from "../../ui/numbers";
import { type Parts, partsApart, printable } from "../../ui/text";
import { boundsBar, entry, piece } from "../findings/bounds";
import { findingCard } from "../findings/card";
import { meaningOf } from "../findings/meanings";
import type { Host, View } from "../view";

const N_BEST = 3;
/** The rows of tables that stand at the side of others. */
const N_ROWS = 8;

/** The answer: large numbers, where the wall time went, what to change first, and what took most. */
export class SummaryView implements View {
  constructor(
    private readonly data: ProfileData,
    private readonly host: Host,
  ) {}

  mount(parent: HTMLElement): void {
    const { sentences, facts, lacks, numbers, wall, tables } = this.data.summary;
    const first = this.data.findings?.sentence;
    const root = element("div", "summary");
    if (first) root.append(element("h2", "headline", ...sentence(first)));
    if (numbers.length > 0) root.append(element("div", "numbers", ...numbers.map(bigNumber)));
    if (wall !== null) root.append(this.wall(wall));
    if (this.data.findings?.parts.length) {
      root.append(titled("The steady state: the GPU works, or waits", boundsBar(this.data.findings.parts)));
    }
    const said = element("section", "", element("h2", "", "In words"), list("answer", sentences));
    const best = this.best();
    root.append(element("div", best ? "two" : "one", ...(best ? [best] : []), said));
    const run = element("section", "", element("h2", "", "The run"), pairs(facts, "pairs"));
    const cells = [...tables.map((table) => this.table(table)), run];
    if (lacks.length) cells.push(element("section", "", element("h2", "", "What is not known"), list("lacks", lacks)));
    root.append(element("div", "tables", ...cells));
    parent.append(root);
  }

  destroy(): void {}

  state(): Record<string, string> {
    return {};
  }

  apply(): void {}

  private wall({ wall_ns, parts, text, steady }: Wall): HTMLElement {
    const bar = element("div", "stacked");
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", printable(text));
    const legend = element("ul", "legend");
    for (const { name, duration_ns } of parts) {
      const share = duration_ns / wall_ns;
      bar.append(piece(name, "0", share, `${name} ${timeText(duration_ns)}, ${shareText(share)}`));
      legend.append(entry(name, "0", name, timeText(duration_ns), meaningOf(name)));
    }
    const made = titled(`Wall time ${timeText(wall_ns)}`, bar, legend);
    if (steady !== null) {
      const span = steady.map(Math.round).join("~");
      legend.append(element("li", "", this.link("steady state in the timeline", "timeline", { span })));
    }
    return made;
  }

  /** The three findings that gain most, and the way to the others. */
  private best(): HTMLElement | null {
    const found = this.data.findings;
    const worth = found?.rows.filter((finding) => finding.isWorth) ?? [];
    if (worth.length === 0) return null;
    const cards = worth.slice(0, N_BEST).map((finding) => findingCard(this.data, this.host, finding));
    const more = (found?.rows.length ?? 0) - cards.length;
    const title = element("h2", "", "What to change first");
    const made = element("section", "", title, element("ol", "findings", ...cards));
    made.append(this.link(more > 0 ? `${countText(more, "more finding")}` : "All that was looked at", "findings", {}));
    return made;
  }

  private table({ title, about, unit, metric, rows, more }: HotTable): HTMLElement {
    const shown = rows.slice(0, N_ROWS);
    const names = partsApart(shown.map((row) => printable(row.name)));
    const body = element("tbody", "", ...shown.map((row, index) => this.row(row, names[index], unit, metric)));
    const head = element("h2", "", title, " ", element("small", "", about));
    const made = element("section", "", head, element("table", "hot", body));
    if (more)
      made.append(element("p", "more", this.link("all of them", metric === "gpu_time" ? "kernels" : "flame", {})));
    return made;
  }

  private row({ name, full, value, share, node }: HotRow, parts: Parts, unit: string, metric: string): HTMLElement {
    const state: Record<string, string> = { node: String(node) };
    if (metric !== this.data.opens.metric) state.metric = metric;
    if (this.data.steady && !this.data.opens.isSteady) state.part = "steady";
    const label = ends(parts);
    const link = node === null ? element("span", "ends", ...label) : this.link("", "flame", state);
    if (node !== null) {
      link.classList.add("ends");
      link.append(...label);
    }
    link.title = printable(full);
    link.setAttribute("aria-label", printable(name));
    const made = element(
      "tr",
      "",
      element("td", "name", link),
      element("td", "value", valueText(value, unit)),
      element("td", "share", shareText(share)),
    );
    made.dataset.role = metric === "gpu_time" ? "gpu" : "host";
    made.style.setProperty("--share", `${share * 100}%`);
    return made;
  }

  private link(text: string, view: string, state: Record<string, string>): HTMLElement {
    const link = element("a", "", text);
    link.href = "#";
    link.onclick = (event) => {
      event.preventDefault();
      this.host.open(view, state);
    };
    return link;
  }
}

function bigNumber({ value, name, about }: { value: string; name: string; about: string }): HTMLElement {
  return element(
    "div",
    "",
    element("strong", "", printable(value)),
    element("span", "", printable(name)),
    element("small", "", printable(about)),
  );
}

function titled(title: string, ...children: HTMLElement[]): HTMLElement {
  return element("section", "stack", element("h2", "", title), ...children);
}

function list(className: string, texts: string[]): HTMLElement {
  return element("ul", className, ...texts.map((text) => element("li", "", ...sentence(text))));
}
