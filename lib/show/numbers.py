"""The numbers that chapters' sentences quote: each a call of a function below, filled in by a tool.

In a chapter's Markdown a number stands as ``<data value="row('swapped').tflops:.2f">0.50</data>``:
an expression, a format, and what they gave when the chapter was last executed (`book.numbers`).

A variant is named as its chapter's own (``"swapped"``), or another version's
(``"02_shared_tile/tile16"``, ``"02_shared_tile"`` for its fastest); nothing means this chapter's
fastest. Sizes are M = N = K. Speeds and hardware counters are those recorded on `RECORDED_ON`, or
behind ``on('H200').`` those of another GPU:
counters of a version without a variant are those of the ladder's pass, where it has them, so that
versions beside each other are of one board; all others are of its own record. Counts are emulated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

from lib import gpus
from lib.compiler.arch import KNOWN
from lib.compiler.compiled import Compiled
from lib.dispatch.plan import choose
from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import parted
from lib.ptx.core.machine import WARP
from lib.records import ladder, noise, predictions, reach
from lib.records import store as records
from lib.records.reader import counted
from lib.records.schema import (
    CalibrationRecord,
    FusedSide,
    LadderEntry,
    PeerRow,
    RivalsRecord,
    Row,
    Shape,
)
from lib.show import accounts, clusters, epilogue, fp8, tensor_memory, timeline, zoo
from lib.show import instruction_order as order
from lib.show import issue_slots as slots
from lib.show.markdown import NOT_YET
from lib.show.occupancy import occupancy
from lib.show.version import RECORDED_ON, Version, roof
from lib.show.version import Row as Named

SIZE = 4096


class Numbers:
    """What a chapter's sentences can quote; every public method is a function of the expressions.

    Parameters
    ----------
    stem : str
        The chapter's version; one that is no kernel's (``"index"``) names others in full.
    gpu : str
        Whose records.
    """

    def __init__(self, stem: str, gpu: str = RECORDED_ON) -> None:
        self._stem, self._gpu = stem, gpu

    def on(self, gpu: str) -> Numbers:
        """The same functions, of what was recorded on another GPU."""
        return Numbers(self._stem, gpu)

    @cached_property
    def sheet(self) -> gpus.Gpu:
        """The GPU's data sheet."""
        return gpus.GPUS[self._gpu]

    @cached_property
    def _version(self) -> Version:
        return Version(self._stem, fresh=True, gpu=self._gpu)

    def _of(self, name: str) -> Named:
        """A version and a variant of it, its fastest if none is named."""
        stem, variant = parted(name)
        if stem in KERNELS:
            version = Version(stem, fresh=True, gpu=self._gpu)
        else:
            version, variant = self._version, name or None
        return Named(version, version.kernel.variant(variant))

    def row(self, name: str = "", M: int = SIZE, N: int = 0, K: int = 0) -> Row:
        """The row of a product in the version's own record; of a cube M alone is named."""
        version, variant = self._of(name)
        if not N:
            return version.recorded(M, variant.name)
        return _of_shape(version.reader.variant(variant.name).bench, (M, N, K),
                         name or self._stem)

    def in_pass(self, name: str = "", n: int = SIZE) -> Row:
        """The row of a cube in the ladder's pass; of a version without a variant its fastest's."""
        entry = self._entry(name)
        return _of_shape(entry.bench if entry else (), (n, n, n),
                         f"{name or self._stem} in the ladder's pass")

    def _counters(self, name: str, n: int) -> Mapping[str, float]:
        """Hardware counters: the pass's of a version without a variant, else its own record's."""
        version, variant = self._of(name)
        return self._counted_in_pass(name, n) or version.metrics(n, variant.name)

    def _timed_with_counters(self, name: str, n: int) -> Row:
        """The row of the run that `_counters` are of, which knows its board."""
        return (self.in_pass if self._counted_in_pass(name, n) else self.row)(name, n)

    def _counted_in_pass(self, name: str, n: int) -> Mapping[str, float] | None:
        entry = self._entry(name) if name in ("", *KERNELS) else None
        return counted(entry.counters, n) if entry else None

    def _entry(self, name: str) -> LadderEntry | None:
        version, variant = self._of(name)
        key = f"{version.kernel.stem}/{variant.name}"
        entry = ladder.load(self._gpu).entries.get(key)
        if entry and ladder.stale(version.kernel, variant, entry):
            raise records.NotYet(f"the pass has other source of {key}")
        return entry

    def on_ladder(self, name: str = "") -> float:
        """Speed in the ladder's pass, TFLOP/s."""
        return self.in_pass(name).tflops

    def climb(self, name: str, over: str) -> float:
        """How many times the speed of another, both in the ladder's pass."""
        return self.on_ladder(name) / self.on_ladder(over)

    def of_rival(self, name: str = "", n: int = SIZE) -> float:
        """Speed over cuBLAS's one figure, both of the ladder's pass."""
        row = self.in_pass(name, n)
        return row.tflops / ladder.figures(ladder.load(self._gpu))[ladder.product(row)].tflops

    def public(self, name: str, n: int = SIZE) -> PeerRow:
        """A public kernel on a cube, in turns with the best of cuBLAS."""
        record = records.load(RivalsRecord, self._gpu)
        rows = record.peers[name].rows if record and name in record.peers else ()
        for row in rows:
            if row.is_cube(n):
                return row
        raise records.NotRecorded(f"{name} on {self._gpu}: python -m lib rivals --record {name}")

    def outcome(self, name: str, over: str, brief: bool = False) -> str:
        """``"× 1.16"``, of two speeds in the ladder's pass, or that they don't differ."""
        return _compared(self.in_pass(over), self.in_pass(name), brief)

    def outcome_of(
        self, name: str, over: str, brief: bool = False, M: int = SIZE, N: int = 0, K: int = 0,
    ) -> str:
        """The same of the versions' own records; of a cube M alone is named.

        Raises
        ------
        ValueError
            If they were made on two boards.
        """
        return _compared(*self._pair(name, over, M, N, K), brief)

    def _pair(self, name: str, over: str, *shape: int) -> tuple[Row, Row]:
        """The rows of what is compared, `over` first."""
        rows = self.row(over, *shape), self.row(name, *shape)
        self._of_one_board(name, over, *rows)
        return rows

    def _of_one_board(self, name: str, over: str, *rows: Row) -> None:
        if not noise.one_board(*rows):
            raise ValueError(f"{name or self._stem} and {over or self._stem} are of two boards")

    def taken(self, M: int, N: int, K: int) -> str:
        """The tile that the rule of `lib.gemm` takes for a product today, and who shares it."""
        rule = KERNELS["hopper"]
        tuned = rule.variants[0]
        chosen = rule.variant(choose(rule, tuned, tuned.problem(M, N, K)).name)
        blocks = chosen.grid.split
        return f"{'×'.join(map(str, chosen.tile))}, " + (
            "persistent" if chosen.grid.blocks_per_sm else
            f"{blocks} blocks per tile" if blocks > 1 else "a block per tile")

    def patterns(self) -> int:
        """Accesses of a warp that the emulator counts as Nsight Compute did, on a GPU."""
        record = records.load(CalibrationRecord, RECORDED_ON)
        if record is None:
            raise records.NotYet("no accesses are recorded: python -m lib record calibration")
        return len(record.patterns)

    def architectures(self) -> str:
        """Those that the book's kernels are compiled for: ``"sm_75 and sm_80"``."""
        *others, last = KNOWN
        return f"{', '.join(others)} and {last}"

    def operation(self, name: str = "") -> int:
        """The 32-bit descriptor of the operation of a variant's first ``tcgen05.mma``, emulated."""
        version, variant = self._of(name)
        return tensor_memory.followed(version.kernel.stem, variant.name).operands[3]

    def won(self, name: str, over: str) -> str:
        """On how many of its version's own shapes a variant is faster by more than both spreads.

        Of those that are recorded of both: ``"5 of 15"``.
        """
        sides = self._of(name), self._of(over)
        mine, theirs = ({row.shape: row for row in version.reader.variant(variant.name).bench}
                        for version, variant in sides)
        pairs = [(mine[shape], theirs[shape]) for shape in sides[0].page.kernel.own_shapes
                 if shape in mine and shape in theirs]
        won = sum(theirs.seconds / mine.seconds - 1 > theirs.spread + mine.spread
                  for mine, theirs in pairs)
        return f"{won} of {len(pairs)}"

    def faster(self, name: str, than: str, n: int = SIZE) -> float:
        """How many times the speed of another.

        Raises
        ------
        ValueError
            If they were made on two boards.
        """
        before, after = self._pair(name, than, n)
        return after.tflops / before.tflops

    def gain(self, name: str, over: str, n: int = SIZE) -> float:
        """Speed over that of another, less 1."""
        return self.faster(name, over, n) - 1

    def predicted(self, *steps: str) -> float:
        """Gain predicted for some of this chapter's steps, one on top of the other."""
        guesses = predictions.PREDICTIONS[self._stem]
        return math.prod(1 + guesses[step].gain for step in steps) - 1

    def metric(self, key: str, name: str = "", n: int = SIZE) -> float:
        """A recorded hardware counter (`lib.measure.counters`)."""
        return self._counters(name, n)[key]

    def ratio(self, key: str, name: str, to: str, n: int = SIZE) -> float:
        """A recorded hardware counter over that of another variant.

        Raises
        ------
        ValueError
            If they were made on two boards.
        """
        self._of_one_board(name, to, *(self._timed_with_counters(one, n) for one in (name, to)))
        return self.metric(key, name, n) / self.metric(key, to, n)

    def per_fma(self, key: str, name: str = "") -> float:
        """A recorded hardware counter per FMA of a warp: per 32 of its threads'."""
        return self.metric(key, name) / (SIZE**3 / WARP)

    def l1_wavefronts(self, name: str = "") -> float:
        """Wavefronts that the L1's data stage served per FMA of a warp; recorded."""
        return accounts.wavefront_account(
            self._counters(name, SIZE), SIZE, self.sheet.sms, 1.0).each

    def w(self, name: str = "") -> float:
        """Wavefronts of the L1's data stage per FMA of a warp, predicted from emulated counters."""
        version, variant = self._of(name)
        return accounts.predicted(version.kernel.stem, variant.name, self.sheet, SIZE)

    def stall(self, reason: str, name: str = "", n: int = SIZE) -> float:
        """Cycles that warps wait for a reason per instruction issued; recorded."""
        return self.metric(f"stall_{reason}", name, n)

    def waiting(self, reason: str, name: str = "") -> float:
        """Share of a resident warp's time that it waits for a reason; recorded."""
        found = self._counters(name, SIZE)
        warps = found["warps_active_percent"] / 100 * self.sheet.warps_per_sm / slots.SLOTS_PER_SM
        return found[f"stall_{reason}"] * found["issue_active_percent"] / 100 / warps

    def slot(self, part: str, name: str = "") -> float:
        """Share of all issue slots: ``"fma"``, a kind of instruction, ``"empty"``, a stall."""
        return slots.account_of(self._counters(name, SIZE), self.sheet.sms).share(part)

    def per_flop(self, what: str, name: str = "") -> float:
        """What a block asks per FLOP (`lib.show.tensor_memory.Asked`)."""
        version, variant = self._of(name)
        found = tensor_memory.asked(version.kernel.stem, variant.name, tensor_memory.SHAPE)
        return getattr(found, what) / found.flops

    def on_sheet(self, part: str) -> float:
        """Cycles by the data sheet for a tile's MMAs, or for storing it: ``"mma"``, ``"store"``."""
        found = tensor_memory.tile_cycles(self._of("").variant, SIZE, gpus.GPUS["B200"])
        return found[("mma", "store").index(part)]

    def sum_error(self, name: str, signs: str) -> float:
        """Error of one of 26's variants at K = 8,192 by its inputs' signs, on a GPU."""
        version, variant = self._of(name)
        record = records.load(CalibrationRecord, self._gpu)
        for one in record.sums if record else ():
            if (one.kernel, one.signs, one.K) == (
                    f"{version.kernel.stem}/{variant.name}", signs, 8192):
                return one.error
        raise records.NotYet("no sums are recorded: python -m lib record calibration")

    def fused(self, whose: str, M: int, N: int, K: int) -> FusedSide:
        """The fastest of who does bias and GELU: one of `Whose`, or of one's own name."""
        return epilogue.fastest(epilogue.contest((M, N, K)), whose)

    def part(self, variant: str, M: int, N: int, K: int) -> FusedSide:
        """One of 25's instantiations, in turns with the others."""
        return epilogue.part(epilogue.parts((M, N, K)), variant)

    def walk(self, name: str = "", by_sms: bool = False) -> clusters.Walk:
        """A persistent variant's walk through a cube (`lib.show.clusters`)."""
        return clusters.walk(self._of(name).variant, SIZE, by_sms=by_sms)

    def on_inputs(self, inputs: str, name: str) -> float:
        """Recorded speed on another distribution of inputs (``"zeros"``), TFLOP/s."""
        rows = self.row(name).other_inputs
        seconds = next((row.seconds for row in rows if row.inputs == inputs), None)
        if seconds is None:
            raise records.NotRecorded(f"nothing is recorded of {name} at {SIZE:,} on {inputs}")
        return 2e-12 * SIZE**3 / seconds

    def roof(self, name: str) -> float:
        """A roof measured on the recorded GPU, FLOP/s or B/s."""
        return roof(name, self._gpu)

    def longest(self, event: str, name: str = "") -> float:
        """The longest phase of a kind, cycles, of a warp in the recorded timeline's first block."""
        version, variant = self._of(name)
        marks = version.reader.timeline(variant.name)
        warps = timeline.without_other_lanes(marks.events, marks.blocks[0].warps)
        return max(one.end - one.start for one in timeline.phases(marks.events, warps)
                   if one.event == event)

    def compiled(self, name: str = "") -> Compiled:
        """The machine code, with what it takes of an SM."""
        version, variant = self._of(name)
        return version.compiled("sm_90a", variant.name)

    def code(self, opcode: str = "", name: str = "") -> int:
        """Instructions of the inner loop's SASS whose opcode begins so; all if none is given."""
        return sum(one.opcode.startswith(opcode) for one in self.compiled(name).inner_loop)

    def work_between(self, name: str = "") -> int:
        """FMAs between the last global load and the next shared store of the machine code."""
        return order.work_between([one.opcode for one in self.compiled(name).inner_loop])

    def warps(self, name: str) -> int:
        """Warps that are resident on an SM of a GPU."""
        gpu, threads = gpus.GPUS[RECORDED_ON], self._of(name).variant.threads
        used = self.compiled(name).resources
        return occupancy(gpu, used.registers, used.shared_bytes, threads).warps


def _of_shape(rows: Sequence[Row], shape: Shape, name: str) -> Row:
    for row in rows:
        if row.shape == shape:
            return row
    raise records.NotRecorded(f"{'×'.join(map(str, shape))} is not recorded of {name}")


def _compared(before: Row, after: Row, brief: bool) -> str:
    times, level = after.tflops / before.tflops, 100 * noise.of_speed(before, after)
    gain = 100 * (times - 1)
    if abs(gain) <= level:
        return "no difference" if brief else f"no difference ({gain:+.1f} %, noise {level:.1f} %)"
    return f"{gain:+.1f} %" if abs(gain) < 10 else f"× {times:.2f}"


# What a page asks of a subject itself.
SUBJECTS = {"accounts": accounts, "epilogue": epilogue, "fp8": fp8, "reach": reach, "zoo": zoo}


def evaluate(expression: str, stem: str) -> str:
    """Return what an expression with its format gives in a chapter.

    Parameters
    ----------
    expression : str
        As between the braces of an f-string: ``"100 * gain('a', 'b'):+.1f"``. It is evaluated as
        Python, so it must come from this repository.
    stem : str
        The chapter's.

    Returns
    -------
    str
        `NOT_YET` if it needs a version or a variant that has no record as its source is today.

    Raises
    ------
    ValueError
        If it can't be evaluated; the message holds it.
    """
    numbers = Numbers(stem)
    names = {name: getattr(numbers, name) for name in dir(Numbers) if not name.startswith("_")}
    try:
        return str(eval(f'f"""{{{expression}}}"""', {"__builtins__": {
            "abs": abs, "len": len, "max": max, "min": min, "round": round, "sum": sum,
        }, "SIZE": SIZE, **SUBJECTS, **names}))
    except Exception as error:
        # Of what a record has as None nothing was measured.
        if isinstance(error, records.NotYet) or getattr(error, "obj", error) is None:
            return NOT_YET
        raise ValueError(f"{stem}: {expression!r} gives no number: {error}") from error
