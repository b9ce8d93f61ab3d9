// What the words of the bars mean, for the pointer that rests on one.

const MEANINGS: Record<string, string> = {
  start: "Before the first step: imports, reading data, making the model",
  "GPU work": "From the first to the last work of a GPU",
  "warm-up": "The first steps, which take longer: compiling, tuning, first uses of kernels and memory",
  steady: "The steps that are alike, one like the other: what shares and findings are about, unless they say otherwise",
  teardown: "After the last step: writing results, ending processes",
  rest: "After the steps that are alike; GPUs still worked",
  input: "The GPU waited for the data loader",
  output: "The GPU waited while the program printed, logged or wrote files",
  synchronisation: "The host waited until the GPU was done, as .item() does, and launched nothing meanwhile",
  allocation: "The GPU waited while memory was taken or given back",
  "copies to the GPU": "The GPU waited for the call that copies from memory of the host",
  "operators that plan": "The GPU waited while a library chose how to compute",
  "operators on the CPU": "The GPU waited while operators of the framework computed on the CPU",
  launches: "The GPU waited for the driver's calls that give it kernels",
  "Python and operators":
    "The GPU waited while Python and the framework prepared the next launch: kernels are too short for the host",
  compilation: "The GPU waited while code was compiled",
  "code that launches nothing":
    "The GPU waited while the program ran code that gives it no work, such as your own Python",
  "between a launch and its start":
    "Kernels were launched, and began a little later: the time that a launch takes to arrive",
};

export function meaningOf(name: string): string {
  return MEANINGS[name] ?? "";
}
