"""A session of a kernel that a reader brings: one request, one answer, as `session` has them.

A request names what to `do`: ``"read"`` the kernels of a PTX text, ``"run"`` one of them,
``"record"`` the warp that comes to a line of it, and ``"step"`` to one of its instructions. What
else it says, `DEFAULT`, is what a link holds; arguments are words of `lib.compiler.arguments`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import PurePath
from typing import Any

import numpy as np

from lib import ptx
from lib.compiler import arguments
from lib.compiler.signature import check_arguments, of_kernel, plain_name
from lib.kernels.spec import unknown
from lib.panel import form, render
from lib.panel.asking import Asking, last
from lib.panel.expected import Compared, compare
from lib.panel.request import (
    MAX_FIRST,
    MAX_MOMENTS,
    MAX_PTX,
    MAX_TURNS,
    Refused,
    orders,
    whole,
)
from lib.ptx.report import RACES, Finding, grouped, hazard_lines, verdicts

DEFAULT: Mapping[str, Any] = {
    "do": "run", "ptx": "", "sources": {}, "kernel": "", "args": [], "grid": [1], "block": [1],
    "cluster": None, "shared": 0, "schedule": "lowest", "landing": "early", "seed": 0,
    "strict": False, "expect": "", "merge": None, "name": "", "template": "",
}
MAX_BYTES = 1 << 26  # of all arrays
MAX_THREADS = 1 << 20  # of a launch
MAX_ARGUMENTS = 64
MAX_ROWS = 1200  # lines that are shown of a source
# What a verdict says first: kinds of hazards, and of errors, of each.
_MEMORY = ("overflow", "one address", "alignment", "tensor memory")
_OF_MEMORY = (ptx.OutOfBounds, ptx.Misaligned, ptx.UninitialisedRead)
_OF_PROGRESS = (ptx.Deadlock, ptx.Endless)
_TEXT = html.escape
_COLUMNS = ("instructions", "requests", "sectors", "wavefronts", "conflicts")

Tell = Callable[[str], None]


@dataclass
class Batches(ptx.Progress):
    """A launch's progress, said whenever a batch of blocks begins."""

    tell: Tell = field(default=lambda said: None)

    def begin(self, blocks: int, done: int, running: Any) -> None:
        """Note that blocks begin to run, and tell it."""
        super().begin(blocks, done, running)
        if done:
            self.tell(f"Running: {done:,} of {blocks:,} blocks are done")


@dataclass
class FromLine(ptx.Recorder):
    """A recorder that begins where its warp first comes to one of some lines of PTX."""

    lines: frozenset[int] = frozenset()

    def end(self, f: Any, index: int, taking: tuple[Any, ...] | None) -> None:
        """Keep what an instruction did, once one of the lines was met."""
        met = bool(self.moments) or not self.lines
        super().end(f, index, taking)
        if not met and self.moments and self.moments[0].instruction.line not in self.lines:
            self.moments.clear()
            self.first += 1


@dataclass(frozen=True)
class Launching:
    """A request that has been read and held to its limits."""

    asked: Mapping[str, Any]
    function: ptx.Function
    module: ptx.Module
    arguments: list[arguments.Argument]

    @property
    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The arrays by name, those that tensor maps are of among them."""
        values = {one.name: getattr(one.value, "array", one.value) for one in self.arguments}
        return {name: one for name, one in values.items()
                if isinstance(one, np.ndarray) and one.ndim}

    @property
    def title(self) -> str:
        """What is launched, in a few words."""
        grid, block = ("×".join(map(str, self.asked[key])) for key in ("grid", "block"))
        return f"{plain_name(self.function.name)}, grid {grid}, block {block}"

    def launch(self, **options: Any) -> ptx.Launch:
        """Launch it."""
        asked = self.asked
        values = [one.value for one in self.arguments]
        check_arguments(self.function.name, of_kernel(self.function.name, None), values)
        try:
            merge = asked["merge"] and {int(line): wide and ptx.Wide(*wide)
                                        for line, wide in asked["merge"].items()}
        except (AttributeError, TypeError, ValueError):
            raise Refused("What is merged is a width by line of PTX.") from None
        return self.function(
            asked["grid"], asked["block"], values, asked["shared"], cluster=asked["cluster"],
            schedule=asked["schedule"], landing=asked["landing"], seed=asked["seed"],
            strict=asked["strict"], turns=MAX_TURNS, merge=merge, **options)


class Trial(Asking):
    """Answers requests about any kernel.

    Parameters
    ----------
    tell : callable, optional
        Batches how far a run is.
    """

    default, smaller = DEFAULT, "smaller arrays or a smaller grid"

    def __init__(self, tell: Tell = lambda said: None) -> None:
        self.tell = tell

    def _read(self, given: Mapping[str, Any]) -> render.Answer:
        source = next(iter(given["sources"].values()), "")
        found = form.kernels(module_of(given).program, source)
        names = ", ".join(one["plain"] for one in found)
        return {"html": "", "said": f"{len(found)} in the PTX: {names}", "verdict": "read",
                "kernels": found}

    def _run(self, given: Mapping[str, Any]) -> render.Answer:
        launching = read(given)
        before = {one.name: one.value.copy() if isinstance(one.value, np.ndarray) else one.value
                  for one in launching.arguments}
        before |= {name: array.copy() for name, array in launching.arrays.items()}
        try:
            launch = launching.launch(races=True, progress=Batches(tell=self.tell))
        except (ptx.LaunchError, ptx.UnsupportedInstruction):
            raise
        except ptx.Error as error:
            return stopped(launching, error)
        compared = None
        if str(given["expect"]).strip():
            compared = compare(str(given["expect"]), launching.arrays, before)
        return finished(launching, launch, compared, before)

    def _record(self, given: Mapping[str, Any]) -> render.Answer:
        launching = read(given)
        blocks, warps = last(launching.asked["grid"], launching.asked["block"])
        place = shown_file(given)
        row = whole(given, "row", 0, 1 << 24)
        lines = frozenset(each.line for each in launching.function.entry.instructions
                          if row and row == _row(each.line, render.places(each), place))
        if row and not lines:
            raise Refused(f"Line {row} has no instruction: choose another.")
        recorder = FromLine(
            whole(given, "at_block", 0, blocks), whole(given, "warp", 0, warps),
            whole(given, "from", 0, MAX_FIRST), MAX_MOMENTS, lines=lines)
        where = f"comes to line {row}" if row else "runs so many instructions"
        return self.record(recorder, launching.launch,
                           f"never {where}: choose another warp or block", given["ptx"],
                           given["sources"])

    answers = {"read": _read, "run": _run, "record": _record, "step": Asking.step}


def module_of(given: Mapping[str, Any]) -> ptx.Module:
    """The module of a request.

    Raises
    ------
    Refused
        If it has no PTX, or too much of it.
    """
    text = given["ptx"]
    if not isinstance(text, str) or not text.strip():
        raise Refused("There is no PTX: paste some, or choose an example.")
    if len(text) > MAX_PTX:
        raise Refused(f"The PTX is longer than {MAX_PTX:,} characters: shorten it.")
    if re.search(r"__global__|#include|@triton|^def ", text, re.M) and ".entry" not in text:
        raise Refused("This is source code, not PTX. Compile it first: nvcc -ptx -lineinfo, "
                      "Compiler Explorer, or, where this page has a compiler, the field for CUDA.")
    sources = given["sources"]
    if not isinstance(sources, dict) or not all(isinstance(one, str) for one in sources.values()):
        raise Refused("Sources are texts by the name of their file.")
    module = ptx.Module(text, sources=sources)
    if not module.program.entries:
        raise Refused("The PTX has no kernel: there is no .entry in it.")
    return module


def read(given: Mapping[str, Any]) -> Launching:
    """Check what a page or a link says.

    Raises
    ------
    Refused
        If a value breaks its limit.
    """
    module = module_of(given)
    entries = module.program.entries
    name = str(given["kernel"] or "") or next(iter(entries))
    named = [entry for entry in entries if name in (entry, plain_name(entry))]
    if not named:
        raise Refused(unknown("kernel", str(name), entries))
    words = given["args"]
    if not isinstance(words, list) or len(words) > MAX_ARGUMENTS or not all(
            isinstance(word, str) for word in words):
        raise Refused(f"Arguments are at most {MAX_ARGUMENTS} words, such as int:128.")
    if any(re.match(r"(?:[^:]*=)?@|.*:@", word) for word in words):
        raise Refused("No file is read here: describe the array, such as float32[64,64]:uniform.")
    _bound(words)
    sizes = {key: _sizes(given, key) for key in ("grid", "block")}
    if given["cluster"]:
        sizes["cluster"] = _sizes(given, "cluster")
    if prod(sizes["grid"]) * prod(sizes["block"]) > MAX_THREADS:
        raise Refused(f"Grid times block is more than {MAX_THREADS:,} threads: take a smaller "
                      "grid.")
    orders(given)
    asked = {**given, **sizes, "cluster": sizes.get("cluster"),
             "shared": whole(given, "shared", 0, 1 << 20), "seed": whole(given, "seed", 0, 1 << 31)}
    try:
        found = arguments.parse(words, asked["seed"], option="argument")
    except ValueError as error:
        raise Refused(f"{error}.") from None
    return Launching(asked, module.get_function(named[0]), module, found)


def _bound(words: Sequence[str]) -> None:
    """Refuse arrays that are too large before they are made."""
    total = 0
    for word in words:
        for sizes in re.findall(r"\w\[([\d,x ]*)\]", word):
            total += 8 * prod(int(size) for size in re.split(r"[,x ]+", sizes) if size)
    if total > 8 * MAX_BYTES:
        raise Refused(f"The arrays have more than {MAX_BYTES:,} elements: take smaller ones.")


def _sizes(given: Mapping[str, Any], key: str) -> tuple[int, ...]:
    sizes = given[key]
    if not isinstance(sizes, list) or not 1 <= len(sizes) <= 3 or not all(
            isinstance(size, int) and 1 <= size <= 1 << 31 for size in sizes):
        raise Refused(f"{key} must be one to three whole numbers from 1, such as 8,8.")
    return tuple(sizes)


# -- answers ------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Verdict:
    """What was looked at, what it came to, and whether that is "right", "wrong" or "open"."""

    what: str
    came: str
    state: str = "right"


def finished(
    launching: Launching, launch: ptx.Launch, compared: Compared | None,
    before: Mapping[str, object],
) -> render.Answer:
    """Tell of a launch that ran to its end."""
    findings = launch.findings
    values = _values(launching, compared, before)
    races = [one for one in findings if one.kind in RACES]
    rows = [values, Verdict("Races", verdicts(launch)["races"], "wrong" if races else "right"),
            *_of_kinds(findings), Verdict("Deadlock", "none, the kernel ran to its end")]
    notes = [] if launch.merged else [
        "Accesses are those of the PTX; ptxas may merge some of them."]
    return _answer(launching, rows, hazard_lines(findings, launch.sources), launch.traced, notes)


def stopped(launching: Launching, error: ptx.Error) -> render.Answer:
    """Tell of a launch that the emulator stopped."""
    findings = grouped(error.hazards)
    races = sum(one.kind in RACES for one in findings)
    kind = render.kind(error)
    rows = [Verdict("Values", f"none: the kernel was stopped, {kind}", "wrong"),
            Verdict("Races", f"{races:,} found before it was stopped" if races else
                    "none found before it was stopped", "wrong" if races else "open"),
            *_of_kinds(findings, error, kind),
            Verdict("Deadlock", kind, "wrong") if isinstance(error, _OF_PROGRESS) else
            Verdict("Deadlock", "the kernel was stopped before its end", "open")]
    notes = [note for note in getattr(error, "__notes__", ()) if not note.startswith("Found ")]
    report = [f"{type(error).__name__}: {error}", *(f"    {note}" for note in notes),
            *hazard_lines(findings, launching.module.sources)]
    return _answer(launching, rows, report, None, [])


def _values(
    launching: Launching, compared: Compared | None, before: Mapping[str, object]
) -> Verdict:
    if compared is not None:
        return Verdict("Values", str(compared), "wrong" if compared.wrong else "right")
    parts = []
    for name, array in launching.arrays.items():
        old = before[name]
        assert isinstance(old, np.ndarray)
        if array.tobytes() == old.tobytes():
            continue
        empty = int(np.isnan(array).sum()) if array.dtype.kind == "f" else 0
        parts.append(f"{name} was written" + (
            f", {empty:,} of its {array.size:,} elements are NaN" if empty else ""))
    return Verdict("Values", f"{'; '.join(parts) or 'no array was changed'}; not compared: a line "
                   "of NumPy says what is right", "open")


def _of_kinds(
    findings: Sequence[Finding], error: ptx.Error | None = None, kind: str = ""
) -> list[Verdict]:
    """The verdicts on memory, and on waits and barriers."""
    memory = sum(one.kind in _MEMORY for one in findings)
    waits = sum(one.kind not in (*_MEMORY, *RACES) for one in findings)
    looked = [("Memory", memory, "every access aligned and inside its array", _OF_MEMORY),
              ("Waits", waits, "every barrier, fence and copy in order", (ptx.Divergence,))]
    return [Verdict(what, kind, "wrong") if isinstance(error, kinds) else
            Verdict(what, f"{found:,} found", "wrong") if found else
            Verdict(what, clean if error is None else "none found before it was stopped",
                    "right" if error is None else "open")
            for what, found, clean, kinds in looked]


def _answer(
    launching: Launching, rows: Sequence[Verdict], report: Sequence[str], trace: ptx.Trace | None,
    notes: Sequence[str],
) -> render.Answer:
    wrong = [row for row in rows if row.state == "wrong"]
    verdict = "wrong" if wrong else "right"
    short = "; ".join(f"{row.what.lower()}: {row.came}" for row in wrong or rows[:2])
    said = f"{launching.title}: {short}."
    cells = "".join(
        f'<tr class="try-{row.state}"><th scope="row">{row.what}</th>'
        f"<td>{_TEXT(row.came)}</td></tr>"
        for row in rows)
    parts = [f'<p class="live-verdict live-{verdict}">{_TEXT(said)}</p>',
             f'<table class="try-verdicts"><caption>{_TEXT(launching.title)}, emulated'
             f"</caption><tbody>{cells}</tbody></table>", _listed(report),
             source_table(launching, trace, report),
             *(f"<p>{_TEXT(note)}</p>" for note in notes)]
    return {"html": "".join(parts), "said": said, "verdict": verdict,
            "report": _markdown(launching, rows, report, trace, notes)}


def _listed(report: Sequence[str]) -> str:
    """Findings in the words of ``python -m lib emulate``: one list item each."""
    items: list[str] = []
    for row in report:
        text = _TEXT(row.strip())
        if not row.startswith(" "):
            items.append(f"<strong>{text}</strong>")
        elif text.startswith("What to do: "):
            items[-1] += f'<p class="try-cure">{text}</p>'
        else:
            items[-1] += f"<p>{text}</p>"
    return f'<ul class="live-hazards">{"".join(f"<li>{one}</li>" for one in items)}</ul>' * bool(
        items)


def _markdown(
    launching: Launching, rows: Sequence[Verdict], report: Sequence[str], trace: ptx.Trace | None,
    notes: Sequence[str],
) -> str:
    asked = launching.asked
    lines = [f"### {launching.title}", "", "| looked at | came to |", "|---|---|",
             *(f"| {row.what} | {row.came} |".replace("\n", " ") for row in rows), ""]
    if report:
        lines += ["```", *report, "```", ""]
    lines += [f"Arguments: {' '.join(f'`{word}`' for word in asked['args'])}; order of warps "
              f"{asked['schedule']}, copies land {asked['landing']}. Emulated, "
              f"{launching.module.program.target}."]
    if trace is not None:
        counted = {name: number for name, number in trace.counters().items() if number}
        lines += ["", "| counter | count |", "|---|--:|",
                  *(f"| {name.replace('_', ' ')} | {number:,} |"
                    for name, number in counted.items())]
    return "\n".join([*lines, *("\n" + note for note in notes), ""])


# -- the source, with what each line asked for --------------------------------------------------

def shown_file(given: Mapping[str, Any]) -> str:
    """The file of the source that is shown; empty where that is the PTX itself."""
    return next(iter(given["sources"]), "")


def _row(ptx_line: int, places: Sequence[tuple[str, int]], file: str) -> int:
    """The line of the shown file that something belongs to; 0 if none."""
    if not file:
        return ptx_line
    return next((number for name, number in places if PurePath(name).name == file), 0)


def by_row(launching: Launching, trace: ptx.Trace) -> dict[int, dict[str, int]]:
    """What each line of the shown source asked for, by `_COLUMNS`."""
    file = shown_file(launching.asked)
    found: dict[int, dict[str, int]] = {}

    def add(row: int, *numbers: int) -> None:
        if row:
            counts = found.setdefault(row, dict.fromkeys(_COLUMNS, 0))
            for name, number in zip(_COLUMNS, numbers, strict=False):
                counts[name] += number

    entry = launching.function.entry
    at = {each.line: _row(each.line, render.places(each), file)
          for one in (entry, *launching.module.program.functions.values()) if one is not None
          for each in one.instructions}
    for line, (warps, _) in trace.lines.items():
        add(at.get(line, 0), warps)
    for site in trace.sites:
        add(_row(site.line, render.places(site), file), 0, site.requests, site.sectors,
            site.wavefronts, site.wavefronts - site.ideal)
    return found


def source_table(launching: Launching, trace: ptx.Trace | None, report: Sequence[str]) -> str:
    """The source, each line of it with its counts; a line with code is a button.

    The lines of what was told are marked.
    """
    asked, file = launching.asked, shown_file(launching.asked)
    lines = (asked["sources"][file] if file else asked["ptx"]).rstrip().split("\n")
    counts = by_row(launching, trace) if trace is not None else {}
    instructions = launching.function.entry.instructions
    at = {each.line: _row(each.line, render.places(each), file) for each in instructions}
    compiled = set(at.values()) - {0}
    marked = {at.get(int(line), 0) for line in re.findall(r"PTX line (\d+)", "\n".join(report))}
    if file:
        first, last = 1, len(lines)
    else:
        first, last = launching.function.entry.line, max(compiled, default=1)
    columns = [name for name in _COLUMNS if any(row[name] for row in counts.values())]
    rows: list[str] = []
    left = 0
    for number in range(first, last + 1):
        if len(rows) >= MAX_ROWS:
            left = last + 1 - number
            break
        row = counts.get(number, {})
        label = (f'<button type="button" data-row="{number}" aria-label="Step through line '
                 f'{number}">{number}</button>' if number in compiled else str(number))
        cells = "".join(f'<td class="live-number">{row[name]:,}</td>' if row.get(name)
                        else "<td></td>" for name in columns)
        code = _TEXT(lines[number - 1].rstrip()) if number <= len(lines) else ""
        mark = ' class="live-now"' if number in marked else ""
        rows.append(f"<tr{mark}><th scope=row>{label}</th>{cells}<td><code>{code}</code></td></tr>")
    head = "".join(f'<th class="live-number">{name}</th>' for name in columns)
    more = f"<p>{left:,} more lines are not shown.</p>" if left else ""
    return ('<div class="live-scroll try-scroll" tabindex="0">'
            '<table class="try-source table-numbers"><caption>'
            f'{_TEXT(file or "PTX")}: warp instructions and memory by line; choose one '
            f'to step through it</caption><thead><tr>'
            f"<th>line</th>{head}<th>source</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
            f"</div>{more}")
