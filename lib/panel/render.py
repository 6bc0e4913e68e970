"""An answer as HTML: the same text in the worker as in the page that is built."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lib import ptx
from lib.kernels.spec import Kernel
from lib.panel import tasks
from lib.panel.bundle import Mistake
from lib.panel.request import Finished, Result, Stopped
from lib.panel.tasks import Task
from lib.paths import CUDA
from lib.ptx.core.memory import WINDOWS
from lib.ptx.core.parser import parse
from lib.ptx.core.syntax import Instruction
from lib.ptx.report import grouped, verdicts
from lib.ptx.source_lines import SourceLines
from lib.show import banks, coalescing, scene
from lib.show.accesses import Named, named
from lib.show.scene import Drawing
from lib.show.words import plural, spaced

Answer = dict[str, Any]

MAX_HAZARDS = 6
_TEXT = html.escape
# PTX that a reader has edited may name any file: none but the book's own kernels are shown.
_SOURCES = SourceLines(folders=(CUDA,))


def refused(why: str) -> Answer:
    """The answer to a request that breaks a limit."""
    return {"html": f'<p class="live-verdict live-stopped">{_TEXT(why)}</p>', "said": why,
            "verdict": "refused"}


def answer(kernel: Kernel, result: Result, baseline: Result | None) -> Answer:
    """Tell of a run.

    Parameters
    ----------
    kernel : Kernel
    result : Finished or Stopped
    baseline : Finished or Stopped or None
        The unchanged kernel's run, whose counters stand beside this one's.

    Returns
    -------
    dict
        ``html``, ``said``, ``verdict`` ("right", "wrong", "suspicious" or "stopped"), ``counters``,
        and ``accesses``: a label and a picture of each.
    """
    verdict, said = _verdict(result)
    parts = [f'<p class="live-verdict live-{verdict}">{_TEXT(said)}</p>']
    if result.reason:
        parts.append("<p>Another instantiation ran than the variant's own: "
                     f"{_TEXT(result.reason)}.</p>")
    if isinstance(result, Finished) and result.wrong is not None:
        parts.append(wrong_elements(result.wrong))
    parts.append(_hazards(result.hazards))
    counters = result.counters()
    if counters:
        other = baseline if baseline and baseline.request != result.request else None
        parts.append(_counters(kernel, result, other))
    accesses, first = _accesses(result, tasks.subject(kernel.stem))
    return {
        "html": "".join(parts), "said": said, "verdict": verdict, "counters": counters,
        "accesses": accesses, "first": first,
    }


def _verdict(result: Result) -> tuple[str, str]:
    request = result.request
    problem = request.problem
    what = (f"{request.variant} at {problem.M}×{problem.N}×{problem.K}, "
            f"α = {problem.alpha:g}, β = {problem.beta:g}")
    if isinstance(result, Stopped):
        what_kind = kind(result.error)
        named = "" if what_kind == "error" else f", {what_kind}"
        # Which kernel is known, and its name has a hundred letters.
        where = re.sub(r"^kernel '[^']*', ", "", str(result.error))
        return "stopped", f"{what}: stopped{named}. {where}"
    values = str(result.verdict)
    if result.wrong is not None:
        values = (f"wrong, {int(result.wrong.sum()):,} of {result.wrong.size:,} elements of C are "
                  "off")
    found = {"values": values, **verdicts(result.launch)}
    said = f"{what}: {'; '.join(f'{thing}: {came}' for thing, came in found.items())}."
    if result.wrong is not None:
        return "wrong", said
    if result.hazards:
        return "suspicious", (f"{said} In this order of warps C comes out as it should, in another "
                              "it may not.")
    return "right", said


def kind(error: ptx.Error) -> str:
    """What stopped a kernel, in words."""
    return spaced(type(error).__name__)


def _hazards(hazards: list[ptx.Hazard]) -> str:
    found = grouped(hazards)
    if not found:
        return ""
    items = []
    for one in found[:MAX_HAZARDS]:
        lines = one.first if one.second in ("", one.first) else f"{one.first} and {one.second}"
        items.append(f"<li><strong>{_TEXT(one.kind)}</strong>, {_TEXT(lines)}: "
                     f"{_TEXT(one.example.message)}</li>")
    more = len(found) - MAX_HAZARDS
    if more > 0:
        items.append(f"<li>… and {more} more.</li>")
    return f'<ul class="live-hazards">{"".join(items)}</ul>'


def _counters(kernel: Kernel, result: Result, other: Result | None) -> str:
    mine, theirs = result.counters(), other.counters() if other else {}
    head = "<th>counter</th>" + f'<th class="live-number">{_TEXT(_title(result))}</th>'
    if other and theirs:
        head += f'<th class="live-number">{_TEXT(_title(other, unchanged=True))}</th>'
    rows = []
    for name, value in mine.items():
        if not value and not theirs.get(name):
            continue
        cells = f'<td class="live-number">{value:,}</td>'
        differs = theirs and theirs.get(name, 0) != value
        if theirs:
            cells += f'<td class="live-number">{theirs.get(name, 0):,}</td>'
        mark = ' class="live-differs"' if differs else ""
        rows.append(f'<tr{mark}><th scope="row">{_TEXT(name.replace("_", " "))}</th>{cells}</tr>')
    evidence = f"emulated: {result.arch} PTX"
    return ('<div class="live-scroll"><table class="live-counters"><caption>'
            f"{_TEXT(kernel.title)}, {evidence}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>")


def _title(result: Result, unchanged: bool = False) -> str:
    request = result.request
    if request.ptx is not None:
        return "your PTX"
    if request.mistake is not None:
        return "with the mistake"
    return f"{request.variant}, unchanged" if unchanged else request.variant


def _accesses(
    result: Result, subject: tuple[str, str, str] | None
) -> tuple[list[dict[str, str]], int]:
    """Pictures of the accesses of the watched warp, and which comes first.

    That is the one that the chapter is about: its space, kind and array. Without one, what wastes
    most; of several, one of shared memory.
    """
    if isinstance(result, Stopped) or not any(result.launch.traced.watched.values()):
        return [], 0
    found: list[dict[str, str]] = []
    first, best = 0, (False, -1, False)
    for space in ("global", "shared"):
        for one in named(result.launch, space):
            picture, wasted = drawn(one)
            if not picture:
                continue
            rank = ((space, one.kind, one.array) == subject, wasted, space == "shared")
            if rank > best:
                first, best = len(found), rank
            found.append({"label": f"{space} {one.kind} {one.label} ({one.where})",
                          "html": picture})
    return found, first


# What a question may ask of an access, and how that is said; of global memory and of shared.
COUNTS = {
    "global": {"sectors": "sectors per {}", "bytes_per_sector": "bytes used of each sector, {}"},
    "shared": {"wavefronts": "wavefronts per {}"},
}


def cost(launch: ptx.Launch, space: str, kind: str, array: str, count: str) -> tuple[float, Named]:
    """What one access of the watched warp takes, by a key of `COUNTS`; and that access.

    Raises
    ------
    ValueError
        If there is no such access, or no such count.
    """
    one = next((one for one in named(launch, space) if (one.kind, one.array) == (kind, array)),
               None) if count in COUNTS.get(space, {}) else None
    if one is None:
        raise ValueError(f"the run has no {space} {kind} of {array} that takes {count}")
    if space == "shared":
        return one.served().served.wavefronts, one
    seen = one.touched().cost
    if count == "sectors":
        return len(seen.sectors), one
    return seen.useful_bytes / len(seen.sectors), one


def drawn(one: Named) -> tuple[str, int]:
    """The picture of an access with its caption, and the sectors or wavefronts it wastes."""
    if one.space == "global":
        panel = one.touched()
        picture = scene.piece(coalescing.picture(panel))
        wasted = len(panel.cost.sectors) - panel.cost.least_sectors
    else:
        try:
            served = one.served()
        except ValueError:
            return "", 0
        picture = scene.piece(banks.picture(served))
        wasted = served.served.conflicts
    return f'<p class="live-caption">{caption(one)}</p>{picture}', wasted


def caption(one: Named) -> str:
    """What an access takes, with the line that makes it, as HTML."""
    if one.space == "global":
        seen = one.touched().cost
        words = (f"{plural(len(seen.sectors), 'sector')} for {plural(seen.lanes, 'lane')}, "
                 f"{seen.useful_bytes} of {seen.sector_bytes} bytes used")
    else:
        served = one.served().served
        words = f"{plural(served.wavefronts, 'wavefront')}, ideal {served.ideal}"
    return _TEXT(f"{one.space} {one.kind} {one.label}, {one.where}: {words}")


# -- a task: before and after -------------------------------------------------------------------

def counted(result: Result, asked: str) -> tuple[float, Named | None]:
    """What a task asks for of a run, and the access that it is of, where it is of one.

    Raises
    ------
    ValueError
        If the run has no such thing: it was stopped, or makes no such access.
    """
    if asked == tasks.RACES:
        return len(grouped(result.hazards)), None
    if isinstance(result, Stopped):
        raise ValueError(f"it was stopped: {result.error}")
    if asked == tasks.WRONG:
        return 0 if result.wrong is None else int(result.wrong.sum()), None
    words = asked.split()
    if len(words) == 1:
        return result.counters()[asked], None
    space, kind, array, count = words
    return cost(result.launch, space, kind, array, count)


def task(
    kernel: Kernel, one: Task, runs: tuple[Result, Result],
    numbers: Sequence[tuple[float, Named | None]],
) -> Answer:
    """Answer a task: the number before and after, their difference, and what it comes from.

    Parameters
    ----------
    kernel : Kernel
    one : Task
    runs : (Finished or Stopped, Finished or Stopped)
        Before the change, and behind it.
    numbers : sequence of (float, Named or None)
        What `counted` returned of each.

    Returns
    -------
    dict
        As `answer`, and ``numbers``: both.
    """
    (old, earlier), (new, later) = numbers
    change = _change(old, new)
    what = _asked(one.asked)
    said = f"{_number(old)} before, {_number(new)} after: {change}"
    cells = "".join(f'<td class="live-number">{_number(value)}</td>' for value in (old, new))
    differs = ' class="live-differs"' if old != new else ""
    parts = [
        f'<p class="live-task-said">{_TEXT(one.question)}</p>',
        '<div class="live-scroll"><table class="live-task"><thead><tr><th>counted in the run</th>'
        '<th class="live-number">before</th><th class="live-number">after</th><th></th></tr>'
        f'</thead><tbody><tr{differs}><th scope="row">{_TEXT(what)}</th>{cells}'
        f"<td>{_TEXT(change)}</td></tr></tbody></table></div>",
    ]
    pictures = []
    for name, access in (("Before", earlier), ("After", later)):
        if access is not None and (picture := drawn(access)[0]):
            pictures.append(f'<div class="live-side"><h4>{name}</h4>{picture}</div>')
    if pictures:
        parts.append(f'<div class="live-sides">{"".join(pictures)}</div>')
    before, after = runs
    rest = answer(kernel, after, before)
    # The pictures of the task stand in the place of those of the run.
    return {**rest, "html": "".join(parts) + rest["html"], "said": f"{what}: {said}.",
            "numbers": [old, new], **({"accesses": []} if pictures else {})}


def _asked(asked: str) -> str:
    words = asked.split()
    if len(words) == 4:
        space, kind, array, count = words
        return f"{COUNTS[space][count].format(f'{space} {kind}')} of {array}"
    return tasks.WORDS.get(asked, asked.replace("_", " "))


def _change(old: float, new: float) -> str:
    if old == new:
        return "no difference"
    if not old or not new or abs(new - old) < min(old, new) / 2:
        return f"{'+' if new > old else '−'}{_number(abs(new - old))}"
    return f"×{_number(new / old)}" if new > old else f"÷{_number(old / new)}"


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:,.3g}"


# -- mistakes in the source ---------------------------------------------------------------------

def seeded(answer: Answer, mistake: Mistake | None) -> Answer:
    """Say in an answer which mistake was in the kernel."""
    if mistake is None:
        return {**answer, "mistake": ""}
    line = f" <code>{_TEXT(mistake.source)}</code>" if mistake.source else ""
    return {**answer, "mistake": mistake.said,
            "html": f"<p>Mistake: {_TEXT(mistake.said)}{line}</p>{answer['html']}"}


def mistakes(seeds: Sequence[Mistake], chosen: int | None) -> Answer:
    """The kernel's source, where a line that can have a mistake is a button.

    Parameters
    ----------
    seeds : sequence of Mistake
        All of one file.
    chosen : int or None
        The one that the kernel has now.

    Returns
    -------
    dict
        ``verdict`` is "source", and ``first`` the line of the first mistake.
    """
    at: dict[int, list[int]] = {}
    for number, mistake in enumerate(seeds):
        at.setdefault(mistake.line, []).append(number)
    if not at:
        return refused("No mistake is seeded in the instantiation that runs here: take sides that "
                       "are multiples of 8, or another variant.")
    lines = _SOURCES.text(seeds[0].file).rstrip().split("\n")
    rows = []
    for line, text in enumerate(lines, 1):
        code = f"<code>{_TEXT(text) or ' '}</code>"
        buttons = "".join(
            f'<button type="button" data-mistake="{number}" aria-pressed='
            f'"{"true" if number == chosen else "false"}">{"" if i else code}'
            f"<span>{_TEXT(seeds[number].name)}</span></button>"
            for i, number in enumerate(at.get(line, ())))
        rows.append(f"<li>{buttons or code}</li>")
    said = (f"{PurePath(seeds[0].file).name}: {plural(len(seeds), 'mistake')} in "
            f"{plural(len(at), 'line')} of {len(lines)}")
    return {"html": f'<p>{_TEXT(said)}. Choose a marked line, then run.</p><ol '
                    f'class="live-source live-seeds">{"".join(rows)}</ol>',
            "said": said, "verdict": "source", "first": min(at)}


# -- PTX beside CUDA ----------------------------------------------------------------------------

def listing(text: str, entry: str) -> Answer:
    """PTX for the editor: its inner loop, and the CUDA line of each of its lines.

    Returns
    -------
    dict
        ``first`` and ``last`` are the lines of the inner loop, or of the kernel where it has none;
        ``lines`` has the CUDA line by line of PTX; ``ptx`` is the text, ``cuda`` the source.

    Raises
    ------
    ptx.Error
        If there is no such kernel.
    """
    program = parse(text)
    at: dict[int, int] = {}
    if entry not in program.entries and len(program.entries) != 1:
        raise ptx.Error(f"no kernel '{entry}' in this text")
    instructions = program.entries.get(entry, next(iter(program.entries.values()))).instructions
    for each in instructions:
        place = own_line(each)
        if place:
            at[each.line] = place[1]
    files = [i.cuda[0] for i in instructions if i.cuda]
    own = next((f for f in files if f.endswith(".cu")), None)
    source = _SOURCES.text(own) if own else ""
    loop = inner_loop(instructions)
    begin, end = loop or (0, len(instructions) - 1)
    first, last = instructions[begin].line, instructions[end].line
    rows = text.split("\n")
    while first > 1 and not rows[first - 2].rstrip().endswith((";", "{", "}")):
        first -= 1  # its label, and where it is in the source
    while not rows[first - 1].strip():
        first += 1
    what = "the inner loop" if loop else "the kernel"
    return {"html": "", "said": f"PTX, lines {first:,} to {last:,} of {len(rows):,}: {what}",
            "ptx": text, "cuda": source, "file": PurePath(own).name if own else "", "lines": at,
            "first": first, "last": last, "verdict": "listed"}


# What multiplies and adds, by the beginning of an opcode; `mad` forms addresses, too.
_WORK = ("fma.", "mma.", "wmma.mma", "wgmma.mma_async", "tcgen05.mma")


def inner_loop(instructions: Sequence[Instruction]) -> tuple[int, int] | None:
    """Find the innermost loop that multiplies and adds; of several, the one that does it most.

    Parameters
    ----------
    instructions : sequence of Instruction
        Of one kernel.

    Returns
    -------
    (int, int) or None
        Its first and its last instruction; None if no loop multiplies and adds.
    """
    found: dict[tuple[int, int], int] = {}
    for at, each in enumerate(instructions):
        if each.target is not None and each.target <= at:
            work = sum(one.opcode.startswith(_WORK)
                       for one in instructions[each.target : at + 1])
            if work:
                found[each.target, at] = work
    innermost = [
        loop for loop in found
        if not any(other != loop and loop[0] <= other[0] and other[1] <= loop[1]
                   for other in found)]
    return max(innermost, key=lambda loop: found[loop], default=None)


def own_line(instruction: Instruction) -> tuple[str, int] | None:
    """The line in the kernel's own file that an instruction belongs to."""
    return next((place for place in places(instruction) if place[0].endswith(".cu")), None)


def places(each: Any) -> list[tuple[str, int]]:
    """The lines of CUDA that an instruction, or an access, belongs to, the innermost first."""
    return [*([each.cuda] if each.cuda else []), *each.callers]


# -- a warp, step by step -----------------------------------------------------------------------

@dataclass(frozen=True)
class Recording:
    """The instructions of one warp, and what they are of.

    Attributes
    ----------
    recorder : ptx.Recorder
    launch : ptx.Launch or None
        None where the emulator stopped it.
    stopped : str
        By what.
    text : str
        The PTX.
    sources : mapping of str to str or None
        Texts by the name of their file, where none is to be read.
    """

    recorder: ptx.Recorder
    launch: ptx.Launch | None
    stopped: str
    text: str
    sources: Mapping[str, str] | None = None


def moment(recording: Recording, at: int, watched: Sequence[str]) -> Answer:
    """One instruction of a recorded warp.

    Parameters
    ----------
    recording : Recording
    at : int
        Which of its moments.
    watched : sequence of str
        Registers whose latest values the reader wants to see.
    """
    recorder = recording.recorder
    now = recorder.moments[at]
    instruction = now.instruction
    line = " ".join(recording.text.split("\n")[instruction.line - 1].split())
    number = recorder.first + at + 1
    said = f"Instruction {number:,}: {line}"
    parts = []
    own = own_line(instruction)
    if own:
        parts.append(_source(own, recording.sources))
    parts.append(f"<p>PTX line {instruction.line}: <code>{_TEXT(line)}</code></p>")
    parts.append(active_lanes(now.active))
    if now.address is not None and now.active.any():
        parts.append(_addresses(now, now.address, recording.launch))
    for name, values in now.written.items():
        parts.append(_register(name, values, now.active))
    for name in watched:
        latest = next((m for m in reversed(recorder.moments[: at + 1]) if name in m.written), None)
        if latest is None:
            parts.append(f"<p><code>{_TEXT(name)}</code>: not written since the recording began."
                         "</p>")
        elif name not in now.written:
            parts.append(_register(name, latest.written[name], latest.active))
    if now.waiting:
        earlier = recorder.moments[at - 1].waiting if at else now.waiting
        items = "".join(
            f"<li>{_TEXT(one)}</li>" if one in earlier else
            f'<li class="live-moved"><strong>{_TEXT(one)}</strong></li>' for one in now.waiting)
        parts.append('<p class="live-caption">Of the block, behind this instruction; bold is what '
                     f"has changed since the last one:</p><ul>{items}</ul>")
    if recording.stopped and at == len(recorder.moments) - 1:
        parts.append(f'<p class="live-verdict live-stopped">{_TEXT(recording.stopped)}</p>')
    memory = [i for i, m in enumerate(recorder.moments) if m.address is not None]
    return {"html": "".join(parts), "said": said, "verdict": "step", "at": at,
            "count": len(recorder.moments), "line": instruction.line, "memory": memory,
            "starts": _starts(recorder)}


def _starts(recorder: ptx.Recorder) -> list[int]:
    """The moments at which the warp comes to another line of the kernel's file.

    What no line is known of belongs to the line before it.
    """
    starts: list[int] = []
    last = None
    for i, each in enumerate(recorder.moments):
        place = own_line(each.instruction)
        if place is not None and place != last:
            starts.append(i)
            last = place
    return starts


_AROUND = 3  # lines of the kernel that are shown before and behind the one that runs


def _source(place: tuple[str, int], sources: Mapping[str, str] | None) -> str:
    """The line of the kernel that runs, among its neighbours."""
    name, number = PurePath(place[0]).name, place[1]
    text = _SOURCES.text(place[0]) if sources is None else sources.get(name, "")
    lines = text.split("\n")
    said = f"<p>{_TEXT(name)}:{number}"
    if number > len(lines):
        return f"{said}</p>"
    first = max(1, number - _AROUND)
    rows = "".join(
        f"<li{' class=live-now aria-current=step' if first + i == number else ''}>"
        f"{_TEXT(row) or ' '}</li>"
        for i, row in enumerate(lines[first - 1 : number + _AROUND]))
    return f'{said}</p><ol class="live-source" tabindex="0" start="{first}">{rows}</ol>'


def _addresses(
    now: ptx.Moment, addresses: NDArray[np.int64], launch: ptx.Launch | None
) -> str:
    """Where an access goes: sectors of an array, or banks."""
    parts = now.instruction.parts
    kind = {"st": "store", "ldmatrix": "ldmatrix", "stmatrix": "stmatrix"}.get(parts[0], "load")
    width = 16 if kind in banks.MATRIX_KINDS else now.nbytes
    if width not in (1, 2, 4, 8, 16):
        return ""
    access = coalescing.Access(np.where(now.active, addresses, 0), now.active, width)
    if any(part.startswith("shared") for part in parts) and parts[0] != "mbarrier":
        window = np.int64(WINDOWS["shared"])
        starts = np.where(addresses >= window, addresses - window, addresses)
        starts = np.where(now.active, starts, 0)
        access = coalescing.Access(starts, now.active, width)
        return scene.piece(banks.picture(banks.panel("of this instruction", access, kind=kind)))
    if "global" in parts and launch is not None:
        first = int(addresses[now.active][0])
        array = next((a for a in launch.allocations
                      if a.base <= first < a.base + a.nbytes), None)
        if array is not None:
            return scene.piece(coalescing.picture(
                coalescing.panel("of this instruction", access, array, array="array", kind=kind)))
    return ""


def _register(name: str, values: NDArray[Any], active: NDArray[np.bool_]) -> str:
    """A register's values in the lanes; one value where all have the same."""
    shown = values.tolist()
    if len({repr(value) for value in shown}) == 1:
        return f"<p><code>{_TEXT(name)}</code> = {_TEXT(_value(shown[0]))} in every lane</p>"
    cells = "".join(
        f"<td{'' if on else ' class=live-off'}>{_TEXT(_value(value))}</td>"
        + ("</tr><tr>" if lane % 8 == 7 and lane < 31 else "")
        for lane, (value, on) in enumerate(zip(shown, active.tolist(), strict=True))
    )
    return ('<div class="live-scroll"><table class="live-lanes"><caption><code>'
            f"{_TEXT(name)}</code>, lanes 0 to 31, eight a row</caption><tbody><tr>{cells}</tr>"
            "</tbody></table></div>")


def _value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def wrong_elements(wrong: NDArray[np.bool_]) -> str:
    """C with its wrong elements, and where they lie."""
    rows, columns = wrong.shape
    scale = 256 / max(rows, columns)
    runs = []
    for i, row in enumerate(wrong):
        edges = np.flatnonzero(np.diff(np.concatenate(([0], row.astype(np.int8), [0]))))
        runs += [(start * scale, i * scale, (end - start) * scale, scale)
                 for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]
    width, height = columns * scale, rows * scale
    drawing = Drawing(width, height).boxes(runs, "warning")
    drawing.frames([(0, 0, width, height)])
    said = f"C, {rows}×{columns}: {int(wrong.sum()):,} wrong"
    if runs:
        (top, bottom), (first, last) = (np.flatnonzero(wrong.any(axis))[[0, -1]]
                                        for axis in (1, 0))
        said += f", rows {top} to {bottom}, columns {first} to {last}"
    return scene.piece(drawing.html() + scene.words(said))


def active_lanes(active: NDArray[np.bool_]) -> str:
    """Which of a warp's lanes take part in an instruction."""
    halves = []
    for first in range(0, len(active), 16):
        drawing = Drawing(288, 18)
        for lane in range(first, first + 16):
            box = ((lane - first) * 18.0 + 1, 1.0, 16.0, 16.0)
            if active[lane]:
                drawing.filled(box, lane, "load")
            else:
                drawing.frames([box], faint=True).label(box, lane)
        halves.append(drawing.html())
    return scene.piece(scene.row(*halves)
                       + scene.words(f"This instruction: {int(active.sum())} of {len(active)} lanes"
                                     " are active"))
