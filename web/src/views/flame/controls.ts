// The controls above a flame graph, its legend, and what a search found.

import type { ProfileData } from "../../data/profile";
import { element } from "../../ui/element";
import { countText, shareText } from "../../ui/numbers";
import { Choice, legendItem, searchField, select, tick } from "../../ui/toolbar";
import type { Legend } from "./colouring";
import type { Direction } from "./forest";
import type { Match } from "./search";
import { ofPart, type Part, type Settings, widthMetrics } from "./settings";

const DIRECTIONS: [Direction, string][] = [
  ["down", "Top down"],
  ["up", "Bottom up"],
  ["sandwich", "Sandwich"],
];
const COLOURS: [string, string][] = [
  ["kind", "kind"],
  ["phase", "forward, backward"],
];
const SIDES: [string, string][] = [
  ["gpu_time", "GPU"],
  ["host_time", "CPU"],
  ["gpu_idle_time", "GPU waits"],
];

export class Controls {
  readonly element = element("div", "tools");
  /** Where the search is typed. */
  readonly field: HTMLInputElement;
  private readonly direction: Choice;
  private readonly part: Choice;
  private readonly side: Choice;
  private readonly metric: HTMLSelectElement;
  private readonly colour: HTMLSelectElement;
  private readonly folds: HTMLInputElement;
  private readonly note = element("span", "note");
  private readonly legend = element("span", "legend");

  constructor(
    private readonly data: ProfileData,
    onSet: (changed: Partial<Settings>) => void,
  ) {
    const metrics = widthMetrics(data);
    const sides = SIDES.filter(([name]) => metrics.includes(name));
    // Without a GPU no steady state is known, and imports are left out instead.
    const usual = data.summary.wall ? "Steady state" : "Without imports";
    const parts: [Part, string][] = [
      ["steady", usual],
      ["all", "Whole run"],
    ];
    this.part = new Choice("Part of the run", parts, (value) => onSet({ part: value as Part }));
    this.direction = new Choice("Direction", DIRECTIONS, (value) => onSet({ direction: value as Direction }));
    this.side = new Choice("Side", sides, (metric) => onSet({ metric }));
    const [metricLabel, metric] = select("width", [], (value) => onSet({ metric: value }));
    const [colourLabel, colour] = select("colour", [], (value) => onSet({ colour: value }));
    const [foldLabel, folds] = tick("fold libraries", (isOn) => onSet({ folds: isOn }));
    this.field = searchField("Search: text or /expression/", (query) => onSet({ query }));
    this.metric = metric;
    this.colour = colour;
    this.folds = folds;
    this.element.append(this.direction.element);
    if (data.steady) this.element.append(this.part.element);
    if (sides.length > 1) this.element.append(this.side.element);
    this.element.append(metricLabel, colourLabel, foldLabel, this.field, this.note, this.legend);
  }

  /** What can be chosen of a part of the run. */
  private fill(part: Part): void {
    const shown = ofPart(this.data, part);
    const colours = [...COLOURS, ...Object.keys(shown.metrics).map(twice)];
    this.metric.replaceChildren(...widthMetrics(shown).map((name) => new Option(name, name)));
    this.colour.replaceChildren(...colours.map(([value, text]) => new Option(text, value)));
  }

  /** Show settings; `match` is null where nothing is searched. */
  show(settings: Settings, match: Match | null, legend: Legend): void {
    this.fill(settings.part);
    this.part.value = settings.part;
    this.direction.value = settings.direction;
    this.side.value = settings.metric;
    this.metric.value = settings.metric;
    this.colour.value = settings.colour;
    this.folds.checked = settings.folds;
    if (this.field.value !== settings.query) this.field.value = settings.query;
    this.note.textContent = match ? `${shareText(match.share)} in ${countText(match.count, "match", "matches")}` : "";
    this.legend.replaceChildren(...legend.map(([colour, text]) => legendItem(colour, text)));
  }
}

function twice(text: string): [string, string] {
  return [text, text];
}
