"""The desk that answers a page: one request, one answer, both as JSON has them.

A request names what to `do`: ``"run"`` a kernel, ``"record"`` a warp, ``"step"`` to one of its
instructions, or show the ``"ptx"``. An answer has ``html``, what the page shows, ``said``, one line
of it for screen readers, and what else the page needs.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from lib import ptx
from lib.kernels.catalogue import find
from lib.kernels.select import select
from lib.kernels.spec import unknown
from lib.live import page
from lib.live.family import Family, Instance
from lib.problem import LARGEST, Problem, Verdict
from lib.ptx.core.errors import LaunchError
from lib.ptx.launch import LANDINGS, SCHEDULES
from lib.run.prepared import Step, lay_out

MOST = 256  # elements along a side: what a page answers within seconds
MOST_PTX = 4_000_000  # characters
TURNS = 1 << 17  # of a batch of blocks; the kernels of these sizes take a tenth
WRONG = 4.0  # an element is off if its error passes so many tolerances of a typical element
DEFAULT = {
    "do": "run", "variant": None, "M": 128, "N": 128, "K": 128, "alpha": 1.0, "beta": 0.0,
    "schedule": "lowest", "landing": "early", "races": True, "mistake": None, "ptx": None,
}


class Refused(ValueError):
    """A request that breaks a limit; the message says which and what to do."""


@dataclass(frozen=True)
class Asked:
    """A request to run, checked."""

    problem: Problem
    variant: str
    schedule: str
    landing: str
    races: bool
    mistake: int | None
    ptx: str | None

    @property
    def changed(self) -> bool:
        """Whether the PTX is another than the compiler's."""
        return self.mistake is not None or self.ptx is not None


@dataclass(frozen=True)
class Done:
    """What a run came to.

    Attributes
    ----------
    asked : Asked
    variant : str
    reason : str
        Why another instantiation was run than the variant's own; empty if none was.
    instance : Instance
    launch : ptx.Launch or None
        None where it was stopped.
    verdict : Verdict or None
    wrong : ndarray of bool, shape (M, N), or None
        The elements that are wrong, where any are.
    error : ptx.Error or None
        What stopped it.
    """

    asked: Asked
    reason: str
    instance: Instance
    launch: ptx.Launch | None
    verdict: Verdict | None
    wrong: np.ndarray | None
    error: ptx.Error | None

    def counters(self) -> dict[str, int]:
        """All counters of the run; none if it was stopped."""
        if self.launch is None:
            return {}
        trace = self.launch.trace
        return trace.counters() | {k: v for k, v in trace.matrix_counters().items() if v}


class Desk:
    """Answers requests about one chapter's kernels; keeps the last run and recording.

    Parameters
    ----------
    family : Family
    """

    def __init__(self, family: Family) -> None:
        self.family = family
        self.kernel = find(family.stem)
        self._unchanged: dict[Asked, Done] = {}
        self._recorded: tuple[list[ptx.Moment], Instance, ptx.Launch] | None = None

    def ask(self, request: str) -> str:
        """Answer a request.

        Parameters
        ----------
        request : str
            JSON: ``do``, and what `DEFAULT` has.

        Returns
        -------
        str
            JSON. A request that is refused, and a kernel that is stopped, have an answer too.
        """
        try:
            given = {**DEFAULT, **json.loads(request)}
            answers = {"run": self._run, "record": self._record, "step": self._step,
                       "ptx": self._ptx}
            if given["do"] not in answers:
                raise Refused(unknown("request", str(given["do"]), answers))
            answer = answers[given["do"]](given)
        except Refused as refused:
            answer = page.refused(str(refused))
        except MemoryError:
            answer = page.refused("That is more than the memory of this page holds: take a "
                                  "smaller shape.")
        return json.dumps(answer)

    # -- running --------------------------------------------------------------------------------

    def _run(self, given: dict[str, Any]) -> dict[str, Any]:
        asked = self._asked(given)
        beside = self._beside(asked)
        done = self.run(asked) if beside is None or beside.asked != asked else beside
        return page.answer(self.kernel, done, beside, self._mistake(asked))

    def run(self, asked: Asked) -> Done:
        """Run a kernel."""
        steps, instance, reason, matrices = self._prepared(asked)
        A, B, C = matrices
        problem = asked.problem
        reference = problem.reference(A, B, C)
        text, merge = self._text(asked, instance)
        launch, error = None, None
        try:
            for step in steps[:-1]:
                packing = self._instance(self.kernel.expression(step.variant))
                self._launch(packing.ptx, None, packing, step, asked, trace=False)
            launch = self._launch(text, merge, instance, steps[-1], asked,
                                  watch=_watched(steps[-1]), races=asked.races)
        except ptx.Error as stopped:
            return Done(asked, reason, instance, None, None, None, stopped)
        verdict = problem.judge(C, reference)
        wrong = None if verdict.ok else wrong_elements(problem, C, reference.C)
        return Done(asked, reason, instance, launch, verdict, wrong, error)

    def _launch(self, text: str, merge, instance: Instance, step: Step, asked: Asked, **options):
        module = ptx.Module(text, instance.arch)
        entries = module.program.entries
        name = instance.entry
        if name not in entries and asked.ptx is not None and len(entries) == 1:
            name = next(iter(entries))  # the reader has renamed it
        launch = step.launch
        return module.get_function(name)(
            launch.grid, launch.block, step.arguments, launch.shared_bytes, merge=merge,
            schedule=asked.schedule, landing=asked.landing, turns=TURNS, **options)

    def _beside(self, asked: Asked) -> Done | None:
        """The unchanged kernel on the same problem: the chapter's first variant, or this one."""
        name = asked.variant if asked.changed else self.family.variants[0]
        other = Asked(self.kernel.variant(name).typed(asked.problem), name, asked.schedule,
                      asked.landing, asked.races and not asked.changed, None, None)
        if other not in self._unchanged:
            if len(self._unchanged) >= 8:
                self._unchanged.clear()
            try:
                self._unchanged[other] = self.run(other)
            except Refused:
                return None
        return self._unchanged[other]

    def _prepared(self, asked: Asked):
        kernel, problem = self.kernel, asked.problem
        variant = kernel.variant(asked.variant)
        matrices = problem.inputs()
        try:
            selection = select(kernel, problem, variant)
            # The emulator gets plain arrays of the same memory (see `lib.bfloat16`).
            plain = tuple(np.asarray(matrix) for matrix in matrices)
            prepared = lay_out(kernel, selection, problem, [plain])
        except ValueError as refused:
            raise Refused(f"{refused}.") from None
        steps = prepared.steps(0)
        instance = self._instance(kernel.expression(selection.variant), selection.reason)
        return steps, instance, selection.reason, matrices

    def _instance(self, expression: str, reason: str = "") -> Instance:
        if expression not in self.family.instances:
            raise Refused(
                f"This shape takes another instantiation, {expression}, which the page does not "
                f"carry{f' ({reason})' if reason else ''}: take multiples of 8, or the first "
                "variant.")
        return self.family.instances[expression]

    def _text(self, asked: Asked, instance: Instance):
        """The PTX to run, and what is known of how ptxas merges its accesses."""
        if asked.ptx is not None:
            return asked.ptx, moved(instance.merge, instance.ptx, asked.ptx)
        if asked.mistake is None:
            return instance.ptx, instance.merge
        lines = instance.ptx.split("\n")
        for number, text in instance.mistakes[asked.mistake].lines.items():
            lines[number - 1] = text
        return "\n".join(lines), instance.merge

    def _mistake(self, asked: Asked):
        if asked.mistake is None:
            return None
        return self._prepared(asked)[1].mistakes[asked.mistake]

    def predict(self, asked: str) -> tuple[float, str, str]:
        """The number that a question asks for, from the run that the panel shows first.

        Parameters
        ----------
        asked : str
            ``VARIANT COUNTER``, a counter of the run of a variant; or ``VARIANT SPACE KIND ARRAY
            COUNT``, what one access of the watched warp takes (`lib.live.page.COUNTS`):
            ``coalesced global load A sectors``, ``transposed shared store As wavefronts``.

        Returns
        -------
        (float, str, str)
            The number; what it is, in words; and what more the run has of it, as HTML: the line
            that makes the access, and all that it takes.

        Raises
        ------
        ValueError
            If the run has no such counter or access.
        """
        name, *words = asked.split()
        if name not in self.family.variants:
            raise ValueError(unknown("variant", name, dict.fromkeys(self.family.variants)))
        given = {**DEFAULT, "variant": name, "races": False}
        done = self.run(self._asked(given))
        if len(words) == 1:
            counters = done.counters()
            if words[0] not in counters:
                raise ValueError(unknown("counter", words[0], counters))
            return counters[words[0]], f"{words[0].replace('_', ' ')} of {name}", ""
        if len(words) != 4:
            raise ValueError(f"{asked!r}: write VARIANT COUNTER, or VARIANT SPACE KIND ARRAY COUNT")
        space, kind, array, count = words
        found, access = page.cost(done.launch, space, kind, array, count)
        said = page.COUNTS[space][count].format(f"{space} {kind}")
        return found, f"{said} of {array}, variant {name}", page.caption(access)

    # -- what a request may ask for -------------------------------------------------------------

    def _asked(self, given: dict[str, Any]) -> Asked:
        name = given["variant"] or self.family.variants[0]
        if name not in self.family.variants:
            raise Refused(unknown("variant", str(name), dict.fromkeys(self.family.variants)))
        sizes = [_whole(given, key, 0 if key == "K" else 1, MOST) for key in "MNK"]
        alpha, beta = (_number(given, key) for key in ("alpha", "beta"))
        for key, known in (("schedule", SCHEDULES), ("landing", LANDINGS)):
            if given[key] not in known:
                raise Refused(unknown(key, str(given[key]), dict.fromkeys(known)))
        text = given["ptx"]
        if text is not None and (not isinstance(text, str) or len(text) > MOST_PTX):
            raise Refused(f"The PTX is longer than {MOST_PTX:,} characters: shorten it.")
        problem = self.kernel.variant(name).problem(*sizes, alpha, beta)
        asked = Asked(problem, name, given["schedule"], given["landing"], bool(given["races"]),
                      given["mistake"], text)
        if asked.mistake is not None:
            if text is not None:
                raise Refused("Choose a mistake or edit the PTX, not both.")
            _, instance, _, _ = self._prepared(asked)
            if not isinstance(asked.mistake, int) or not (
                    0 <= asked.mistake < len(instance.mistakes)):
                raise Refused(f"There are {len(instance.mistakes)} mistakes to choose from for "
                              "this shape.")
        return asked

    # -- the PTX, and a warp step by step -------------------------------------------------------

    def _ptx(self, given: dict[str, Any]) -> dict[str, Any]:
        asked = self._asked(given)
        _, instance, _, _ = self._prepared(asked)
        text, _ = self._text(asked, instance)
        return page.listing(text, instance.entry)

    def _record(self, given: dict[str, Any]) -> dict[str, Any]:
        asked = self._asked(given)
        steps, instance, _, _ = self._prepared(asked)
        step = steps[-1]
        grid, block = step.launch.grid, step.launch.block
        blocks, threads = grid[0] * grid[1] * grid[2], block[0] * block[1] * block[2]
        recorder = ptx.Recorder(
            _whole({"block": 0, **given}, "block", 0, blocks - 1),
            _whole({"warp": 0, **given}, "warp", 0, -(-threads // 32) - 1),
            _whole({"first": 0, **given}, "first", 0, 1 << 24), 2048)
        text, _ = self._text(asked, instance)
        said = ""
        launch = None
        try:
            launch = self._launch(text, None, instance, step, asked, trace=False,
                                  recorder=recorder)
        except (LaunchError, ptx.ParseError, ptx.UnsupportedInstruction) as error:
            raise Refused(f"{error}.") from None
        except ptx.Error as stopped:
            said = str(stopped)
        if not recorder.moments:
            raise Refused(said or f"Warp {recorder.warp} of block {recorder.block} ran fewer than "
                          f"{recorder.first} instructions: begin earlier.")
        self._recorded = recorder, text, launch
        return self._step({**given, "at": 0, "said": said})

    def _step(self, given: dict[str, Any]) -> dict[str, Any]:
        if self._recorded is None:
            raise Refused("No warp is recorded yet: record one first.")
        recorder, text, launch = self._recorded
        at = _whole({"at": 0, **given}, "at", 0, len(recorder.moments) - 1)
        watched = [name for name in str(given.get("registers", "")).split() if name][:8]
        return page.moment(recorder, at, text, launch, watched, str(given.get("said", "")))


def wrong_elements(problem: Problem, C: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Which elements are wrong: NaN, or farther off than rounding explains of a typical one.

    Returns
    -------
    ndarray of bool, shape (M, N)
        At least one is set.
    """
    numbers = wanted[np.abs(wanted) <= LARGEST[problem.out]]
    typical = float(np.sqrt(np.mean(numbers**2))) if numbers.size else 0.0
    with np.errstate(all="ignore"):
        off = np.abs(C.astype(np.float64) - wanted)
        wrong = ~(off <= WRONG * problem.tolerance * typical)
    if not wrong.any():
        wrong = off >= np.nanmax(off)
    return wrong


def moved(
    merge: dict[int, tuple[int, int] | None], before: str, after: str
) -> dict[int, tuple[int, int] | None]:
    """Find the lines of PTX that `merge` names in an edited text; those that changed are left out.
    """
    found = {}
    matcher = difflib.SequenceMatcher(None, before.split("\n"), after.split("\n"), autojunk=False)
    old, new = before.split("\n"), after.split("\n")
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
                 min(len(old), len(new)))
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    # Between the first and the last edit lines are matched; before and behind they are the same.
    matcher.set_seqs(old[start:len(old) - end], new[start:len(new) - end])
    places = {i: i for i in range(start)}
    places |= {len(old) - 1 - i: len(new) - 1 - i for i in range(end)}
    for a, b, many in matcher.get_matching_blocks():
        places |= {start + a + i: start + b + i for i in range(many)}
    for line, wide in merge.items():
        if line - 1 in places:
            found[places[line - 1] + 1] = wide
    return found


def _watched(step: Step) -> tuple[int, int]:
    """The block and the warp whose addresses are kept: not the first, where zeros hide mistakes."""
    grid, block = step.launch.grid, step.launch.block
    blocks, threads = grid[0] * grid[1] * grid[2], block[0] * block[1] * block[2]
    return min(5, blocks - 1), min(3, -(-threads // 32) - 1)


def _whole(given: dict[str, Any], key: str, least: int, most: int) -> int:
    value = given[key]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Refused(f"{key} must be a whole number from {least} to {most:,}, not {value!r}.")
    return value


def _number(given: dict[str, Any], key: str) -> float:
    value = given[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e6:
        raise Refused(f"{key} must be a number of at most 1,000,000, not {value!r}.")
    return float(value)
