import type { RooflineData } from "../../data/roofline";
import { countText, shareText } from "../../ui/numbers";
import { cut } from "../../ui/text";

const NAMED = 3;
const NAME_LETTERS = 60;

/** Why points have no place in the chart: a line for each reason, with the points that took most time. */
export function absentLines(chart: RooflineData): string[] {
  const absent = chart.points.filter((point) => point.absent !== "").sort((a, b) => b.time_ns - a.time_ns);
  return [...new Set(absent.map((point) => point.absent))].map((reason) => {
    const points = absent.filter((point) => point.absent === reason);
    const names = points.slice(0, NAMED).map((point) => cut(point.name, NAME_LETTERS));
    const others = points.length > NAMED ? ` and ${countText(points.length - NAMED, "other")}` : "";
    const time_ns = points.reduce((sum, point) => sum + point.time_ns, 0);
    const share = chart.time_ns > 0 ? `, ${shareText(time_ns / chart.time_ns)} of the GPU time` : "";
    return `${reason}: ${names.join(", ")}${others}${share}`;
  });
}
