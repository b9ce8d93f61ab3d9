// What a list of runs says of each.

import type { ProfileData } from "../data/profile";
import { printable } from "../ui/text";

const DAY_MS = 24 * 60 * 60 * 1000;
const LONGEST_COMMAND = 60;

/** `train.bragg · python3 train.py · 19.8 s · 14:02`, as far as it is known; the day where it is not today. */
export function runLabel({ title, run }: Pick<ProfileData, "title" | "run">, now_ms = Date.now()): string {
  const command = run.command.length > LONGEST_COMMAND ? `${run.command.slice(0, LONGEST_COMMAND - 1)}…` : run.command;
  // The title of a run that continues is its command.
  const parts = [
    title,
    title.includes(run.command) ? "" : command,
    run.duration,
    run.startedMs === null ? "" : whenText(run.startedMs, now_ms),
  ];
  return parts.filter(Boolean).map(printable).join(" · ");
}

function whenText(started_ms: number, now_ms: number): string {
  const started = new Date(started_ms);
  const isToday = now_ms - started_ms < DAY_MS && started.getDate() === new Date(now_ms).getDate();
  const day: Intl.DateTimeFormatOptions = isToday ? {} : { month: "short", day: "numeric" };
  return started.toLocaleString("en-GB", { ...day, hour: "2-digit", minute: "2-digit" });
}
