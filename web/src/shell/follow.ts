// The profiles of `bragg web`: asked for when the page opens, and again when their files change.

import "./follow.css";
import { decode } from "../data/decode";
import type { ProfileData } from "../data/profile";
import { printable } from "../ui/text";

/** A row of the server's list; see bragg/views/web/shelf.py. */
interface Entry {
  number: number;
  title: string;
  /** Another one after every change; empty: the file is gone. */
  version: string;
}

interface Known {
  version: string;
  /** null: it could never be read. */
  data: ProfileData | null;
  /** Why it cannot be read now; empty: it can. */
  problem: string;
}

/** A change is shown after a pause of this many times what showing the last one took. */
const PAUSE = 4;
const LEAST_PAUSE_MS = 500;

/** Profiles of a server, the last good state of each. */
export class Followed {
  private readonly known = new Map<number, Known>();
  private wanted: Entry[] | null = null;
  private isBusy = false;

  /**
   * @param show what to do with the profiles and their numbers, whenever they changed
   * @param say what to do with what went wrong; empty: nothing did
   */
  constructor(
    private readonly show: (profiles: ProfileData[], numbers: number[]) => void,
    private readonly say: (text: string) => void,
  ) {}

  start(): void {
    const changes = new EventSource("changes");
    changes.onmessage = (message) => this.want(JSON.parse(message.data));
    changes.onerror = () => this.say("bragg web does not answer: this is what it showed last.");
  }

  private want(entries: Entry[]): void {
    this.wanted = entries;
    if (!this.isBusy) void this.update();
  }

  private async update(): Promise<void> {
    this.isBusy = true;
    while (this.wanted !== null) {
      const entries = this.wanted;
      this.wanted = null;
      const begun = performance.now();
      await this.read(entries);
      const pause = Math.max(LEAST_PAUSE_MS, PAUSE * (performance.now() - begun));
      await new Promise((resume) => setTimeout(resume, pause));
    }
    this.isBusy = false;
  }

  private async read(entries: Entry[]): Promise<void> {
    const before = this.profiles(entries);
    for (const entry of entries) {
      const known = this.known.get(entry.number);
      if (known?.version !== entry.version) this.known.set(entry.number, await readEntry(entry, known?.data ?? null));
    }
    const found = this.profiles(entries);
    const problems = entries.flatMap((entry) => this.known.get(entry.number)?.problem || []);
    this.say(problems.map(printable).join("; ") || (found.length ? "" : "There is no profile yet."));
    const isSame = found.length === before.length && found.every((data, index) => data === before[index]);
    if (!isSame && found.length) this.show(found, this.readable(entries));
  }

  private profiles(entries: Entry[]): ProfileData[] {
    return entries.flatMap((entry) => this.known.get(entry.number)?.data ?? []);
  }

  private readable(entries: Entry[]): number[] {
    return entries.map((entry) => entry.number).filter((number) => this.known.get(number)?.data);
  }
}

/** The profile of an entry, or what it was before. */
async function readEntry(entry: Entry, before: ProfileData | null): Promise<Known> {
  const { version } = entry;
  if (!version && before) return { version, data: before, problem: `${entry.title} is gone: this is what it was.` };
  try {
    const answer = await fetch(`profile/${entry.number}`);
    if (!answer.ok) return { version, data: before, problem: await answer.text() };
    return { version, data: await decode(new Uint8Array(await answer.arrayBuffer())), problem: "" };
  } catch (error: unknown) {
    return { version, data: before, problem: `${entry.title} could not be read: ${error}` };
  }
}
