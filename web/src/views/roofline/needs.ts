import type { ProfileData } from "../../data/profile";

const HOW =
  "Record again with counters, which measure bytes; or give both to kernels with launch_metadata of triton.jit, or to scopes with " +
  "bragg.scope(name, metrics={…}).";

/** What is lacking for a roofline. */
export function needs(data: ProfileData): string {
  if (data.roofline !== null) return "";
  if (!("gpu_time" in data.metrics)) return "This profile holds no GPU time. Record a program that runs on a GPU.";
  const hasFlops = Object.keys(data.metrics).some((name) => name.startsWith("flops"));
  const lacks = ["flops", "bytes"].filter((name) => (name === "flops" ? !hasFlops : !(name in data.metrics)));
  return `A roofline needs the ${lacks.join(" and ") || "work"} of kernels, and this profile has none. ${HOW}`;
}
