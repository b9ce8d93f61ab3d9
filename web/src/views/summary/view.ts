import "./summary.css";
import type { Finding, ProfileData } from "../../data/profile";
import { labelOf } from "../../data/tree";
import { element } from "../../ui/element";
import { shareText, valueText } from "../../ui/numbers";
import { printable } from "../../ui/text";
import type { Host, View } from "../view";
import { type HotRow, hotList } from "./hot_list";

const N_HOTTEST = 10;

/** The answer in sentences, what took most, what was found, and the machine. */
export class SummaryView implements View {
  constructor(
    private readonly data: ProfileData,
    private readonly host: Host,
  ) {}

  mount(parent: HTMLElement): void {
    const { sentences, facts, lacks } = this.data.summary;
    const main = element("section", "", ...this.hotTable(), ...this.findings());
    const side = element("section", "", element("h2", "", "The run"), pairs(facts));
    if (lacks.length) side.append(element("h2", "", "What is not known"), list("lacks", lacks));
    parent.append(element("div", "summary", list("answer", sentences), main, side));
  }

  destroy(): void {}

  state(): Record<string, string> {
    return {};
  }

  apply(): void {}

  private hotTable(): HTMLElement[] {
    const metric = this.data.mainMetric;
    if (metric === null) return [];
    const unit = this.data.metrics[metric].unit;
    const head = element(
      "tr",
      "",
      cell("th", "name", "name"),
      cell("th", "value", metric),
      cell("th", "share", "share"),
    );
    const rows = hotList(this.data, metric, N_HOTTEST).map((row) => this.hotRow(row, unit));
    const table = element("table", "hot", element("thead", "", head), element("tbody", "", ...rows));
    return [element("h2", "", "What took most"), table];
  }

  private hotRow(row: HotRow, unit: string): HTMLElement {
    const name = printable(this.data.frames.label[row.frame]);
    const link = element("a", "", name);
    link.href = "#";
    link.title = printable(this.data.frames.name[row.frame]);
    link.onclick = (event) => {
      event.preventDefault();
      this.host.open("flame", { node: String(row.node) });
    };
    const nameCell = element("td", "name", link);
    const value = cell("td", "value", valueText(row.value, unit));
    const made = element("tr", "", nameCell, value, cell("td", "share", shareText(row.share)));
    made.style.setProperty("--share", `${row.share * 100}%`);
    return made;
  }

  private findings(): HTMLElement[] {
    const rows = this.data.findings.map((finding) => this.finding(finding));
    if (!rows.length) return [];
    return [element("h2", "", "Findings"), element("ul", "findings", ...rows)];
  }

  private finding(finding: Finding): HTMLElement {
    const made = element("li", "", printable(finding.message));
    made.dataset.severity = finding.severity;
    if (finding.hint) made.append(element("small", "", printable(finding.hint)));
    const node = finding.node;
    if (node !== null) {
      const button = element("button", "", printable(labelOf(this.data, node)));
      button.onclick = () => this.host.open("flame", { node: String(node) });
      made.append(" ", button);
    }
    return made;
  }
}

function cell(tag: "th" | "td", className: string, text: string): HTMLElement {
  return element(tag, className, text);
}

function list(className: string, texts: string[]): HTMLElement {
  return element("ul", className, ...texts.map((text) => element("li", "", printable(text))));
}

function pairs(rows: [string, string][]): HTMLElement {
  const made = element("dl", "pairs");
  for (const [name, value] of rows) made.append(element("dt", "", name), element("dd", "", printable(value)));
  return made;
}
