"""A session of one chapter's page: one request, one answer, both as JSON has them.

A request names what to `do`: ``"run"`` a kernel, answer a ``"task"``, ``"record"`` a warp,
``"step"`` to one of its instructions, show the ``"ptx"``, or the ``"source"`` with the mistakes
that can be seeded in it. An answer has ``html``, what the page shows, ``said``, one line of it for
screen readers, and what else the page needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from lib import ptx
from lib.dispatch.plan import Plan, plan
from lib.kernels.catalogue import find
from lib.kernels.spec import unknown
from lib.panel import render, tasks
from lib.panel.asking import Asking, last
from lib.panel.bundle import Bundle, Instance, Merge, Mistake, carried_over
from lib.panel.request import (
    DEFAULT,
    MAX_FIRST,
    MAX_MOMENTS,
    MAX_TURNS,
    Finished,
    Refused,
    Request,
    Result,
    Stopped,
    read,
    whole,
    wrong_elements,
)
from lib.problem import Problem, Reference
from lib.run.prepared import Step, lay_out

MAX_BASELINES = 8  # runs of unchanged kernels that a session keeps


@dataclass(frozen=True)
class Inputs:
    """A problem's matrices, drawn once for all runs on it."""

    problem: Problem

    @cached_property
    def matrices(self) -> tuple[Any, ...]:
        """A, B and C, and scales if there are any, as no kernel has touched them."""
        drawn: tuple[Any, ...] = self.problem.inputs()
        return drawn

    @cached_property
    def reference(self) -> Reference:
        """The answer in float64."""
        return self.problem.reference(*self.matrices)

    def copies(self) -> tuple[Any, ...]:
        """The same for one run, which may write to all of them."""
        return tuple(None if matrix is None else matrix.copy() for matrix in self.matrices)


@dataclass(frozen=True)
class Planned:
    """A request with what it launches.

    Attributes
    ----------
    request : Request
    plan : Plan
    instance : Instance
        The instantiation that is launched last.
    """

    request: Request
    plan: Plan
    instance: Instance

    @property
    def mistake(self) -> Mistake | None:
        """The mistake that is seeded."""
        at = self.request.mistake
        return None if at is None else self.instance.mistakes[at]

    @property
    def text(self) -> str:
        """The PTX to run."""
        if self.request.ptx is not None:
            return self.request.ptx
        if self.mistake is None:
            return self.instance.ptx
        lines = self.instance.ptx.split("\n")
        for number, text in self.mistake.lines.items():
            lines[number - 1] = text
        return "\n".join(lines)

    @property
    def merge(self) -> Merge:
        """What is known of how ptxas merges the accesses of this text."""
        if self.request.ptx is None:
            return self.instance.merge
        return carried_over(self.instance.merge, self.instance.ptx, self.request.ptx)


class Session(Asking):
    """Answers requests about one chapter's kernels.

    Parameters
    ----------
    bundle : Bundle
    """

    default = DEFAULT

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.kernel = find(bundle.stem)
        self._inputs: Inputs | None = None
        self._baselines: dict[Request, Result] = {}

    # -- running --------------------------------------------------------------------------------

    def _run(self, given: Mapping[str, Any]) -> render.Answer:
        planned = self._planned(self._read(given))
        baseline = self._baseline(planned.request)
        if baseline is not None and baseline.request == planned.request:
            return render.answer(self.kernel, baseline, baseline)
        return render.seeded(render.answer(self.kernel, self.run(planned), baseline),
                             planned.mistake)

    def _task(self, given: Mapping[str, Any]) -> render.Answer:
        """Answer a task by two runs: before its change, and as the controls are now."""
        known = tasks.TASKS.get(self.bundle.stem, ())
        task = known[whole({"task": -1, **given}, "task", 0, len(known) - 1)]
        earlier, later = (self._planned(self._read(run)) for run in (
            {**DEFAULT, **self.settings(task.before)}, given))
        before, after = self.run(earlier), self.run(later)
        try:
            numbers = [render.counted(result, task.asked) for result in (before, after)]
        except ValueError as error:
            raise Refused(f"This run doesn't answer the task: {error}.") from None
        return render.seeded(render.task(self.kernel, task, (before, after), numbers),
                             later.mistake)

    def settings(self, run: Mapping[str, Any]) -> dict[str, Any]:
        """What the controls are set to for one run of a task.

        Raises
        ------
        ValueError
            If its kernel has no such mistake.
        """
        variant = self.kernel.variant(run.get("variant", self.bundle.variants[0]))
        instance = self._instance(self.kernel.expression(variant))
        return {"variant": variant.name, **tasks.settings(run, instance.mistakes)}

    def run(self, planned: Planned) -> Result:
        """Run a kernel."""
        problem, instance = planned.request.problem, planned.instance
        inputs = self._drawn(problem)
        matrices = inputs.copies()
        steps = self._steps(planned, matrices)
        reason = planned.plan.reason
        try:
            for step in steps[:-1]:
                packing = self._instance(self.kernel.expression(step.variant))
                self._launch(packing.ptx, None, packing, step, planned.request, trace=False)
            launch = self._launch(
                planned.text, planned.merge, instance, steps[-1], planned.request,
                watch=_watched(steps[-1]), races=planned.request.races)
        except ptx.Error as error:
            return Stopped(planned.request, reason, instance.arch, error)
        C, reference = matrices[2], inputs.reference
        verdict = problem.judge(C, reference, *matrices[3:])
        wrong = None if verdict.ok else wrong_elements(problem, C, reference.C)
        return Finished(planned.request, reason, instance.arch, launch, verdict, wrong)

    def _launch(
        self, text: str, merge: Merge | None, instance: Instance, step: Step, request: Request,
        **options: Any,
    ) -> ptx.Launch:
        module = ptx.Module(text, instance.arch)
        entries = module.program.entries
        name = instance.entry
        if name not in entries and request.ptx is not None and len(entries) == 1:
            name = next(iter(entries))  # the reader has renamed it
        launch = step.launch
        return module.get_function(name)(
            launch.grid, launch.block, step.arguments, launch.shared_bytes, merge=merge,
            schedule=request.schedule, landing=request.landing, turns=MAX_TURNS, **options)

    def _baseline(self, request: Request) -> Result | None:
        """The unchanged kernel on the same problem: the chapter's first variant, or this one."""
        name = request.variant if request.changed else self.bundle.variants[0]
        unchanged = Request(
            self.kernel.variant(name).typed(request.problem), name, request.schedule,
            request.landing, request.races and not request.changed, None, None)
        if unchanged not in self._baselines:
            if len(self._baselines) >= MAX_BASELINES:
                self._baselines.clear()
            try:
                self._baselines[unchanged] = self.run(self._planned(unchanged))
            except Refused:
                return None
        return self._baselines[unchanged]

    def _read(self, given: Mapping[str, Any]) -> Request:
        return read(given, self.kernel, self.bundle.variants)

    def _planned(self, request: Request) -> Planned:
        """Plan a request's launches.

        Raises
        ------
        Refused
            If the shape can't be launched, the page doesn't carry its instantiation, or that has no
            such mistake.
        """
        variant = self.kernel.variant(request.variant)
        try:
            # Exactly the variant: its instantiations are what the page carries.
            chosen = plan(self.kernel, variant, request.problem, exact=True)
        except ValueError as refused:
            raise Refused(f"{refused}.") from None
        instance = self._instance(self.kernel.expression(chosen.variant), chosen.reason)
        if request.mistake is not None and not 0 <= request.mistake < len(instance.mistakes):
            raise Refused(f"There are {len(instance.mistakes)} mistakes to choose from for this "
                          "shape.")
        return Planned(request, chosen, instance)

    def _instance(self, expression: str, reason: str = "") -> Instance:
        if expression not in self.bundle.instances:
            raise Refused(
                f"This shape takes another instantiation, {expression}, which the page does not "
                f"carry{f' ({reason})' if reason else ''}: take multiples of 8, or the first "
                "variant.")
        return self.bundle.instances[expression]

    def _drawn(self, problem: Problem) -> Inputs:
        """The inputs of a problem; those of the last one are kept."""
        if self._inputs is None or self._inputs.problem != problem:
            self._inputs = Inputs(problem)
        return self._inputs

    def _steps(self, planned: Planned, matrices: tuple[Any, ...]) -> list[Step]:
        """The launches, on plain arrays of the same memory (see `lib.bfloat16`)."""
        arrays = tuple(None if one is None else np.asarray(one) for one in matrices)
        try:
            return lay_out(planned.plan, planned.request.problem, [arrays])[0]
        except ValueError as refused:
            raise Refused(f"{refused}.") from None

    def predict(self, asked: str) -> tuple[float, str, str]:
        """The number that a question asks for, from the run that the panel shows first.

        Parameters
        ----------
        asked : str
            ``VARIANT SPACE KIND ARRAY COUNT``, what one access of the watched warp takes
            (`lib.panel.render.COUNTS`): ``coalesced global load A sectors``, ``transposed shared
            store As wavefronts``.

        Returns
        -------
        (float, str, str)
            The number; what it is, in words; and as HTML the line that makes the access, and all
            that it takes.

        Raises
        ------
        ValueError
            If the run has no such access.
        """
        name, *words = asked.split()
        if name not in self.bundle.variants:
            raise ValueError(unknown("variant", name, dict.fromkeys(self.bundle.variants)))
        given = {**DEFAULT, "variant": name, "races": False}
        result = self.run(self._planned(self._read(given)))
        if isinstance(result, Stopped):
            raise ValueError(f"{asked!r}: the run was stopped: {result.error}")
        if len(words) != 4:
            raise ValueError(f"{asked!r}: write VARIANT SPACE KIND ARRAY COUNT")
        space, kind, array, count = words
        found, access = render.cost(result.launch, space, kind, array, count)
        said = render.COUNTS[space][count].format(f"{space} {kind}")
        return found, f"{said} of {array}, variant {name}", render.caption(access)

    def executed(self, name: str) -> set[int]:
        """The lines of PTX that a variant's run executes, of the problem that a page shows first.

        None of an exhibit that the emulator stops.
        """
        result = self.run(self._planned(self._read({**DEFAULT, "variant": name, "races": False})))
        return set() if isinstance(result, Stopped) else set(result.launch.traced.lines)

    # -- the PTX, and a warp step by step -------------------------------------------------------

    def _ptx(self, given: Mapping[str, Any]) -> render.Answer:
        planned = self._planned(self._read(given))
        return render.listing(planned.text, planned.instance.entry)

    def _source(self, given: Mapping[str, Any]) -> render.Answer:
        planned = self._planned(self._read({**given, "mistake": None}))
        return render.mistakes(planned.instance.mistakes, given["mistake"])

    def _record(self, given: Mapping[str, Any]) -> render.Answer:
        planned = self._planned(self._read(given))
        step = self._steps(planned, self._drawn(planned.request.problem).copies())[-1]
        blocks, warps = last(step.launch.grid, step.launch.block)
        recorder = ptx.Recorder(
            whole(given, "block", 0, blocks), whole(given, "warp", 0, warps),
            whole(given, "first", 0, MAX_FIRST), MAX_MOMENTS)
        return self.record(
            recorder,
            partial(self._launch, planned.text, None, planned.instance, step, planned.request),
            f"ran fewer than {recorder.first} instructions: begin earlier", planned.text)

    answers = {"run": _run, "task": _task, "record": _record, "step": Asking.step, "ptx": _ptx,
               "source": _source}


def _watched(step: Step) -> tuple[int, int]:
    """The block and the warp whose addresses are kept: not the first, where zeros hide mistakes."""
    block, warp = last(step.launch.grid, step.launch.block)
    return min(5, block), min(3, warp)
