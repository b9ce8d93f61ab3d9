"""What bounds a program, in a sentence, and the parts of its time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bragg.analyze.causes.bounds import BOTH, Bounds, ForTarget, Part
from bragg.analyze.causes.hardware_limits import Limits
from bragg.analyze.causes.other_threads import OtherThreads
from bragg.model.finding import percent_text
from bragg.views.text.style import printable
from bragg.views.text.units import count_text, time_text

_N_PARTS = 4
_LEAST_PART, _LEAST_OF_THREADS = 0.005, 0.01
# What takes less than this share of the time bounds not all of it, and up to half of it not most.
_ALL, _MOST = 0.8, 0.5
# Of what imports took: a program that did less has hardly begun.
_LITTLE = 0.05
_LACKS = {
    "a kernel that ends": ", and a kernel failed",
    "more work": ", in too few kernels and copies",
    "times": ", at times that are not known",
}


def bounds_sentence(bounds: Bounds) -> str:
    """One sentence on what bounds a program."""
    if bounds.for_target:
        return _target_sentence(bounds.for_target)
    if bounds.host_ns:
        return _host_sentence(bounds)
    if bounds.busy is None or not bounds.of_ns:
        worked = f"the GPU worked {time_text(bounds.gpu_ns)}{_LACKS[bounds.lacks or 'times']}"
        return f"What bounds the program is not known: {worked if bounds.gpu_ns else 'no GPU worked'}."
    where = "the steady state" if bounds.is_steady else "the time from first to last GPU work"
    per_step = (
        f"in {count_text(bounds.n_steps, bounds.step)} of {time_text(bounds.of_ns / bounds.n_steps)}, "
        if bounds.n_steps
        else f"of {time_text(bounds.of_ns)}, {where}, "
    )
    gpu = "the GPU" if bounds.n_gpus == 1 else f"GPU {bounds.gpu}, the busiest of {bounds.n_gpus},"
    if not bounds.by:
        works = f"{per_step}{gpu} works {percent_text(bounds.busy)}"
        return f"{works[0].upper()}{works[1:]}; why it waits is not known."
    name = bounds.cause[0].upper() + bounds.cause[1:]
    bound = "bound" if bounds.by in ("copies", BOTH) else "bounds"
    idle = 1 - bounds.busy
    most_of = "" if max(bounds.busy, idle) >= _ALL or bounds.by == BOTH else "most of "
    works = f"{gpu} works {percent_text(bounds.busy)} and waits {percent_text(idle)}"
    which = "; a timeline tells which of them bounds more" if bounds.by == BOTH else ""
    return f"{name} {bound} {most_of}the program: {per_step}{works}{which}."


def _target_sentence(found: ForTarget) -> str:
    launches = count_text(found.n_launches, "launch", "launches")
    kernels = f"{count_text(found.n_kernels, 'kernel')} {'was' if found.n_kernels == 1 else 'were'}"
    return (
        f"Nothing ran on a GPU: bragg's interpreter executed {launches} on the CPU, "
        f"and {kernels} compiled for {found.target}."
    )


def _host_sentence(bounds: Bounds) -> str:
    """The same of a program without a GPU, whose parts are of the host's time."""
    if bounds.host_ns < _LITTLE * bounds.imports_ns:
        took, ran = time_text(bounds.imports_ns), time_text(bounds.host_ns)
        return f"Imports took {took}, and all else that the program did {ran}: too little to say what bounds it."
    first, *others = [part for part in bounds.parts if part.share >= _LEAST_PART]
    name = bounds.by[0].upper() + bounds.by[1:]
    bound = "bound" if bounds.by in _PLURALS else "bounds"
    verb = "take" if first.name in _PLURALS else "takes"
    most_of = "" if first.share >= _ALL else "most of " if first.share > _MOST else "much of "
    steps = f"{count_text(bounds.n_steps, bounds.step)} of {time_text(bounds.of_ns / max(bounds.n_steps, 1))}"
    is_most = bounds.of_ns > _MOST * bounds.host_ns
    in_steps = f" ({steps})" if bounds.n_steps and is_most else ""
    beside = f" The {steps} took {time_text(bounds.of_ns)} of it." if bounds.n_steps and not is_most else ""
    takes = ", ".join(f"{part.name} {percent_text(part.share)}{_most_at(part)}" for part in others)
    return (
        f"{name} {bound} {most_of}the program, which uses no GPU{in_steps}: "
        f"of {time_text(bounds.host_ns)} on the host after imports, {first.name} {verb} {percent_text(first.share)}"
        f"{_most_at(first)}{', ' if takes else ''}{takes}.{_meanwhile(bounds)}{beside}"
        f"{_INTERPRETED if first.name == 'interpreted kernels' else ''}"
    )


_INTERPRETED = " That is the time of bragg's interpreter, which executes kernels here instead of a GPU."
_PLURALS = ("operators", "interpreted kernels", "Python and native code", "other threads")


def _meanwhile(bounds: Bounds) -> str:
    if bounds.threads is None or bounds.threads.time_ns < _LEAST_OF_THREADS * bounds.host_ns:
        return ""
    return f" Meanwhile {threads_text(bounds.threads)}."


def threads_text(threads: OtherThreads) -> str:
    """What others than the main thread ran: `thread infer ran Python for 1.1 s (most at serve.py:4)`."""
    return f"{_named(threads.names)} ran Python for {time_text(threads.time_ns)}{_most_at(threads)}"


def _named(names: Sequence[str]) -> str:
    if not names:
        return "other threads"
    first, *others = map(printable, names)
    if len(others) < 2:
        return f"threads {first} and {others[0]}" if others else f"thread {first}"
    return f"threads {first}, {others[0]} and {len(others) - 1} more"


def _most_at(part: Part | OtherThreads) -> str:
    return f" (most at {printable(part.at.rpartition('/')[2])})" if part.at else ""


def parts_lines(bounds: Bounds) -> Iterator[str]:
    """What the GPU works on, what limits it there, and what it waits for."""
    if bounds.host_ns:
        return  # the sentence has them
    for title, is_gpu in (("The GPU works on", True), ("The GPU waits for", False)):
        parts = [part for part in bounds.parts if part.is_gpu is is_gpu and part.share >= _LEAST_PART]
        if not parts:
            continue
        texts = [f"{part.name} {percent_text(part.share)}" for part in parts[:_N_PARTS]]
        rest = sum(part.share for part in bounds.parts if part.is_gpu is is_gpu) - sum(
            part.share for part in parts[:_N_PARTS]
        )
        texts += [f"other {percent_text(rest)}"] if rest >= _LEAST_PART else []
        yield f"{title}: {', '.join(texts)}"
        if is_gpu and bounds.limits:
            yield from _limits_line(bounds.limits)


def _limits_line(limits: Limits) -> Iterator[str]:
    shares = {name: share for name, share in limits.named.items() if share >= _LEAST_PART}
    texts = [f"{name} {percent_text(share)} of its time" for name, share in shares.items()]
    if texts:
        how = "counters" if limits.is_measured else "the flops and bytes that the program states"
        yield f"What limits the GPU, by {how}: {', '.join(texts)}"
