"""The numbers that chapters' sentences quote: each a call of a function below, filled in by a tool.

In a chapter's Markdown a number stands as ``<data value="tflops('swapped'):.2f">0.50</data>``: an
expression, a format, and what they gave when the chapter was last executed (`book.numbers`).

A variant is named as its chapter's own (``"swapped"``), or another version's
(``"02_shared_tile/tile16"``, ``"02_shared_tile"`` for its fastest); nothing means this chapter's
fastest. Sizes are M = N = K. Speeds and hardware counters are those recorded on `RECORDED_ON`:
counters of a version without a variant are those of the ladder's pass, where it has them, so that
versions beside each other are of one board; all others are of its own record. Counts are emulated.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from lib import gpus
from lib.compiler.arch import KNOWN
from lib.dispatch import cost
from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import parted
from lib.ptx.core.machine import WARP
from lib.records import ladder, noise, predictions, reach
from lib.records import store as records
from lib.records.reader import counted
from lib.records.schema import CalibrationRecord, Clock, LadderEntry, Row, Steady
from lib.records.schema import mhz as clock_in_mhz
from lib.show import accounts, epilogue, tensor_memory, timeline
from lib.show import clusters as at_once
from lib.show import fp8 as promotion
from lib.show import instruction_order as order
from lib.show import issue_slots as slots
from lib.show.markdown import NOT_YET
from lib.show.occupancy import occupancy
from lib.show.version import RECORDED_ON, Version, roof
from lib.show.zoo import specimens

SIZE = 4096


class Numbers:
    """What a chapter's sentences can quote; every public method is a function of the expressions.

    Parameters
    ----------
    stem : str
        The chapter's version; one that is no kernel's (``"index"``) names others in full.
    """

    def __init__(self, stem: str) -> None:
        self._stem = stem

    @cached_property
    def _version(self) -> Version:
        return Version(self._stem, fresh=True)

    def _of(self, name: str) -> tuple[Version, str]:
        """A version and a variant of it, its fastest if none is named."""
        stem, variant = parted(name)
        if stem in KERNELS:
            version = Version(stem, fresh=True)
        else:
            version, variant = self._version, name or None
        return version, variant or version.kernel.fastest.name

    def _row(self, name: str, n: int) -> Row:
        version, variant = self._of(name)
        return version.recorded(n, variant)

    def _counters(self, name: str, n: int) -> Mapping[str, float]:
        """Hardware counters: the pass's of a version without a variant, else its own record's."""
        version, variant = self._of(name)
        return self._counted_in_pass(name, n) or version.metrics(n, variant)

    def _timed_with_counters(self, name: str, n: int) -> Row:
        """The row of the run that `_counters` are of, which knows its board."""
        return (self._in_pass if self._counted_in_pass(name, n) else self._row)(name, n)

    def _counted_in_pass(self, name: str, n: int) -> Mapping[str, float] | None:
        entry = self._entry(name) if name in ("", *KERNELS) else None
        return counted(entry.counters, n) if entry else None

    def _entry(self, name: str) -> LadderEntry | None:
        version, variant = self._of(name)
        entry = ladder.load(RECORDED_ON).entries.get(f"{version.kernel.stem}/{variant}")
        if entry and ladder.stale(version.kernel, version.kernel.variant(variant), entry):
            raise records.NotYet(f"the pass has other source of {version.kernel.stem}/{variant}")
        return entry

    def tflops(self, name: str = "", n: int = SIZE) -> float:
        """Recorded speed, TFLOP/s."""
        return self._row(name, n).tflops

    def on_ladder(self, name: str = "", n: int = SIZE) -> float:
        """Speed in the ladder's pass, TFLOP/s; of a version without a variant its fastest."""
        return self._in_pass(name, n).tflops

    def climb(self, name: str, over: str, n: int = SIZE) -> float:
        """How many times the speed of another, both in the ladder's pass."""
        return self.on_ladder(name, n) / self.on_ladder(over, n)

    def of_rival(self, name: str = "", n: int = SIZE) -> float:
        """Speed over cuBLAS's one figure, both of the ladder's pass."""
        row = self._in_pass(name, n)
        return row.tflops / ladder.figures(ladder.load(RECORDED_ON))[ladder.product(row)].tflops

    def rival_on_ladder(self, name: str = "", n: int = SIZE) -> float:
        """The best of cuBLAS on a version's problem in the ladder's pass, TFLOP/s."""
        return self.on_ladder(name, n) / self.of_rival(name, n)

    def peak_on_ladder(self, name: str = "", n: int = SIZE) -> float:
        """TFLOP/s of all the GPU's units at the clock that a version had in the ladder's pass."""
        version, variant = self._of(name)
        gpu, dtype = gpus.GPUS[RECORDED_ON], version.kernel.variant(variant).dtype
        return 1e-6 * self.clock_on_ladder(name, n) * gpu.sms * gpu.flops_per_cycle(dtype)

    def clock_on_ladder(self, name: str = "", n: int = SIZE) -> float:
        """SM clock of the launches that the ladder's pass timed, MHz."""
        return self._clock_in_pass(name, n).mhz

    def cycles_on_ladder(self, name: str = "", n: int = SIZE) -> float:
        """SM cycles of a launch among those that the ladder's pass timed."""
        return self._clock_in_pass(name, n).cycles

    def joules_on_ladder(self, name: str = "", whose: str = "own", n: int = SIZE) -> float:
        """Energy of a product run for seconds in the pass, J: ``"own"`` or ``"cublas"``."""
        return self._lasting_in_pass(name, whose, n).joules

    def lasting_on_ladder(self, name: str = "", whose: str = "own", n: int = SIZE) -> float:
        """Speed of the same run, TFLOP/s."""
        return self._lasting_in_pass(name, whose, n).tflops

    def _lasting_in_pass(self, name: str, whose: str, n: int) -> Steady:
        sustained = self._in_pass(name, n).sustained
        if sustained is None:
            raise records.NotRecorded(f"the pass ran no {name or self._stem} for seconds")
        return {"own": sustained.own, "cublas": sustained.cublas}[whose]

    def outcome(self, name: str, over: str, brief: bool = False, n: int = SIZE) -> str:
        """``"× 1.16"``, of two speeds in the ladder's pass, or that they don't differ."""
        rows = self._in_pass(over, n), self._in_pass(name, n)
        return self._compared(rows[1].tflops / rows[0].tflops, noise.of_speed(*rows), brief)

    def outcome_of(self, name: str, over: str, brief: bool = False, n: int = SIZE) -> str:
        """The same of the versions' own records.

        Raises
        ------
        ValueError
            If they were made on two boards.
        """
        rows = self._pair(name, over, n)
        return self._compared(rows[1].tflops / rows[0].tflops, noise.of_speed(*rows), brief)

    @staticmethod
    def _compared(times: float, level: float, brief: bool) -> str:
        gain = 100 * (times - 1)
        if abs(gain) <= 100 * level:
            return "no difference" if brief else (
                f"no difference ({gain:+.1f} %, noise {100 * level:.1f} %)")
        return f"{gain:+.1f} %" if abs(gain) < 10 else f"× {times:.2f}"

    def _pair(self, name: str, over: str, n: int) -> tuple[Row, Row]:
        """The rows of what is compared, `over` first."""
        rows = self._row(over, n), self._row(name, n)
        self._of_one_board(name, over, *rows)
        return rows

    def _of_one_board(self, name: str, over: str, *rows: Row) -> None:
        if not noise.one_board(*rows):
            raise ValueError(f"{name or self._stem} and {over or self._stem} are of two boards")

    def _clock_in_pass(self, name: str, n: int) -> Clock:
        clock = self._in_pass(name, n).clock
        if clock is None:
            raise records.NotRecorded(f"the pass has no clock of {name or self._stem} at {n:,}")
        return clock

    def _in_pass(self, name: str, n: int) -> Row:
        entry = self._entry(name)
        for row in entry.bench if entry else ():
            if row.is_cube(n):
                return row
        version, variant = self._of(name)
        raise records.NotRecorded(f"the pass has no {version.kernel.stem}/{variant} at {n:,}")

    def ms(self, name: str = "", n: int = SIZE) -> float:
        """Recorded time of one product, ms."""
        return 1e3 * self._row(name, n).seconds

    def us(self, name: str, M: int, N: int, K: int) -> float:
        """Recorded time of one product of that shape, µs."""
        return 1e6 * self._shaped(name, (M, N, K)).seconds

    def rival_us(self, name: str, M: int, N: int, K: int) -> float:
        """The time of the best of cuBLAS in the same run, µs."""
        return 1e6 * self._shaped(name, (M, N, K)).cublas_seconds

    def _shaped(self, name: str, shape: tuple[int, int, int]) -> Row:
        version, variant = self._of(name)
        for row in version.reader.variant(variant).bench:
            if row.shape == shape:
                return row
        raise records.NotRecorded(
            f"{'×'.join(map(str, shape))} is not recorded of {name or self._stem}")

    def mhz(self, name: str = "", n: int = SIZE) -> float:
        """Recorded SM clock of the launches that were timed, MHz."""
        clock = clock_in_mhz(self._row(name, n).clock)
        if clock is None:
            raise records.NotRecorded(f"no clock is recorded of {name or self._stem} at {n:,}")
        return clock

    def lasting_tflops(self, name: str = "", n: int = SIZE) -> float:
        """Recorded speed while the kernel runs alone for seconds (`watts`), TFLOP/s."""
        sustained = self._row(name, n).sustained
        if sustained is None:
            raise records.NotRecorded(f"no long run is recorded of {name or self._stem} at {n:,}")
        return sustained.own.tflops

    def sustained_mhz(self, name: str = "", n: int = SIZE) -> float:
        """Recorded SM clock while the kernel runs alone for seconds (`watts`), MHz."""
        sustained = self._row(name, n).sustained
        clock = clock_in_mhz(sustained.own.clock) if sustained else None
        if clock is None:
            raise records.NotRecorded(f"no long run is recorded of {name or self._stem} at {n:,}")
        return clock

    def of_best(self, name: str = "", n: int = SIZE) -> float:
        """Recorded speed over that of the best of cuBLAS in the same run."""
        return self._row(name, n).ratio

    def how_far(self, group: str) -> str:
        """The fastest of ``"FP32"`` or ``"FP16"``, of the best of cuBLAS (`lib.records.reach`)."""
        return reach.short(reach.reach(group))

    def sustained(self, group: str) -> str:
        """The same while each runs alone for seconds."""
        return reach.give_or_take(*reach.reach(group).sustained)

    def lowest(self, group: str) -> str:
        """The least share of all its recorded shapes, and where."""
        return reach.at_lowest(reach.lowest(reach.reach(group)))

    def taken(self, M: int, N: int, K: int) -> str:
        """The tile that the rule of `lib.gemm` takes for a product today, and who shares it."""
        rule = KERNELS["hopper"]
        tuned = rule.variants[0]
        chosen = rule.variant(cost.choose(rule, tuned, tuned.problem(M, N, K)).name)
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

    def mistakes(self) -> int:
        """Kernels in `cuda/zoo`, with one mistake each."""
        return len(specimens())

    def architectures(self) -> str:
        """Those that the book's kernels are compiled for: ``"sm_75 and sm_80"``."""
        *others, last = KNOWN
        return f"{', '.join(others)} and {last}"

    def operation(self, name: str = "") -> int:
        """The 32-bit descriptor of the operation of a variant's first ``tcgen05.mma``, emulated."""
        version, variant = self._of(name)
        return tensor_memory.followed(version.kernel.stem, variant).operands[3]

    def won(self, name: str, over: str) -> str:
        """On how many of its version's own shapes a variant is faster by more than both spreads.

        Of those that are recorded of both: ``"5 of 15"``.
        """
        found = self._gains(name, over)
        return f"{sum(gain - 1 > spread for gain, spread in found)} of {len(found)}"

    def _gains(self, name: str, over: str) -> list[tuple[float, float]]:
        version, variant = self._of(name)
        other, than = self._of(over)
        mine, theirs = (
            {row.shape: row for row in one.reader.variant(of).bench}
            for one, of in ((version, variant), (other, than)))
        return [(theirs[shape].seconds / mine[shape].seconds,
                 theirs[shape].spread + mine[shape].spread)
                for shape in version.kernel.own_shapes if shape in mine and shape in theirs]

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

    def cycles(self, name: str = "", n: int = SIZE) -> float:
        """SM cycles of a launch among those that were timed; `metric` has those of a profiled one.
        """
        clock = self._row(name, n).clock
        if clock is None:
            raise records.NotYet(f"no clock is recorded of {name or self._stem} at {n:,}")
        return clock.cycles

    def of_peak(self, name: str = "", n: int = SIZE) -> float:
        """Share of the data sheet's peak, by the cycles of the launches that were timed."""
        version, variant = self._of(name)
        peak = gpus.GPUS[RECORDED_ON].flops_per_cycle(version.kernel.variant(variant).dtype)
        return accounts.share(self.cycles(name, n), n, version.record.gpu.sms, peak)

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

    def per_fma(self, key: str, name: str = "", n: int = SIZE) -> float:
        """A recorded hardware counter per FMA of a warp: per 32 of its threads'."""
        return self.metric(key, name, n) / (n**3 / WARP)

    def l1_wavefronts(self, name: str = "", n: int = SIZE) -> float:
        """Wavefronts that the L1's data stage served per FMA of a warp; recorded."""
        version, variant = self._of(name)
        found = self._counters(name, n)
        return accounts.wavefront_account(found, n, version.record.gpu.sms, 1.0).each

    def w(self, name: str = "", n: int = SIZE) -> float:
        """Wavefronts of the L1's data stage per FMA of a warp, predicted from emulated counters."""
        version, variant = self._of(name)
        stem, chosen = version.kernel.stem, version.kernel.variant(variant).name
        return accounts.predicted(stem, chosen, gpus.GPUS[RECORDED_ON], n)

    def rate(self, instruction: str) -> float:
        """FLOP of an SM per cycle in which its tensor cores are busy, with an instruction."""
        return accounts.RATES[instruction]

    def stall(self, reason: str, name: str = "", n: int = SIZE) -> float:
        """Cycles that warps wait for a reason per instruction issued; recorded."""
        return self.metric(f"stall_{reason}", name, n)

    def waiting(self, reason: str, name: str = "", n: int = SIZE) -> float:
        """Share of a resident warp's time that it waits for a reason; recorded."""
        found, gpu = self._counters(name, n), gpus.GPUS[RECORDED_ON]
        warps = found["warps_active_percent"] / 100 * gpu.warps_per_sm / slots.SLOTS_PER_SM
        return found[f"stall_{reason}"] * found["issue_active_percent"] / 100 / warps

    def slot(self, part: str, name: str = "", n: int = SIZE) -> float:
        """Share of all issue slots: ``"fma"``, a kind of instruction, ``"empty"``, a stall."""
        found = slots.account_of(self._counters(name, n), gpus.GPUS[RECORDED_ON].sms)
        return found.share(part)

    def count(self, key: str, name: str = "") -> int:
        """A counter of the traced run, of its matrix counters too."""
        version, variant = self._of(name)
        trace = version.traced(variant).trace
        return {**trace.counters(), **trace.matrix_counters()}[key]

    def per_flop(self, what: str, name: str = "") -> float:
        """What a block asks per FLOP (`lib.show.tensor_memory.Asked`)."""
        version, variant = self._of(name)
        chosen = version.kernel.variant(variant)
        found = tensor_memory.asked(version.kernel.stem, chosen.name, tensor_memory.SHAPE)
        return getattr(found, what) / found.flops

    def on_sheet(self, part: str, K: int = SIZE, key: str = "B200") -> float:
        """Cycles by the data sheet for a tile's MMAs, or for storing it: ``"mma"``, ``"store"``."""
        version, variant = self._of("")
        found = tensor_memory.tile_cycles(version.kernel.variant(variant), K, gpus.GPUS[key])
        return found[("mma", "store").index(part)]

    def sum_error(self, name: str, signs: str, K: int = 8192) -> float:
        """Error of one of 26's variants by its inputs' signs (`lib.show.fp8`)."""
        version, variant = self._of(name)
        chosen = version.kernel.variant(variant).name
        return dict(promotion.emulated(version.kernel.stem, chosen, signs).errors)[K]

    def stops_growing(self, product: float) -> float:
        """The sum to which products of this size add nothing (`lib.show.fp8`)."""
        return promotion.stops_growing(product)

    def saved_us(self, M: int, N: int, K: int) -> float:
        """What `traffic` ``"apart"`` takes more than ``"fused"`` by the data sheet, µs."""
        return 1e6 * epilogue.saved_seconds((M, N, K))

    def times_fused(self, whose: str, M: int, N: int, K: int, named: str = "") -> float:
        """Recorded time of others for bias and GELU over that of the fused kernel.

        `whose`: ``"product"`` (ours, alone), ``"apart"``, ``"rival"`` or ``"rival's product"``;
        or ``""``, and `named` is the name of one of them, such as ``"PyTorch"``.
        """
        row = epilogue.contest((M, N, K))
        return (epilogue.fastest(row, *filter(None, (whose,)), named=named).seconds
                / epilogue.fastest(row, "fused").seconds)

    def dram_mb(self, whose: str, M: int, N: int, K: int, named: str = "") -> float:
        """Recorded MB that one of a contest's sides reads of DRAM and writes (see `times_fused`).
        """
        side = epilogue.fastest(epilogue.contest((M, N, K)), *filter(None, (whose,)), named=named)
        if side.traffic is None:
            raise records.NotYet(f"no traffic is recorded of {side.name} at {M}×{N}×{K}")
        return 1e-6 * (side.traffic.dram_read_bytes + side.traffic.dram_write_bytes)

    def part(self, name: str, over: str, M: int, N: int, K: int) -> float:
        """Recorded time of one of 25's instantiations over that of another in turns, less 1."""
        row = epilogue.parts((M, N, K))
        return epilogue.part(row, name).seconds / epilogue.part(row, over).seconds - 1

    def part_us(self, name: str, M: int, N: int, K: int) -> float:
        """Recorded µs of one of 25's instantiations, in turns with the others."""
        return 1e6 * epilogue.part(epilogue.parts((M, N, K)), name).seconds

    def part_cycles(self, name: str, M: int, N: int, K: int) -> float:
        """Recorded cycles of one of 25's instantiations, in turns with the others."""
        clock = epilogue.part(epilogue.parts((M, N, K)), name).clock
        if clock is None:
            raise records.NotYet(f"no cycles are recorded of {name} at {M}×{N}×{K}")
        return clock.cycles

    def tail(self, name: str, over: str) -> float:
        """The least cycles that an epilogue adds to a tile (`lib.show.epilogue`)."""
        return epilogue.cost(name, over).cycles(epilogue.tile_of(name))

    def tile_cycles(self, name: str, K: int) -> float:
        """The least cycles that the tensor cores of an SM need for a tile of one of 25's."""
        return epilogue.loop_cycles(epilogue.tile_of(name), K)

    def clusters(self, name: str = "", n: int = SIZE, by_sms: bool = False) -> int:
        """Clusters that are launched: those that run at once, or as many as the SMs divide into."""
        return self._walk(name, n, by_sms).clusters

    def tiles_long(self, name: str = "", n: int = SIZE, by_sms: bool = False) -> int:
        """Tiles, one after the other, until the last of these clusters ends; modelled."""
        return self._walk(name, n, by_sms).time

    def _walk(self, name: str, n: int, by_sms: bool) -> at_once.Walk:
        version, variant = self._of(name)
        return at_once.walk(version.kernel.variant(variant), n, by_sms=by_sms)

    def on_inputs(self, inputs: str, name: str = "", n: int = SIZE) -> float:
        """Recorded speed on another distribution of inputs (``"zeros"``), TFLOP/s."""
        rows = self._row(name, n).other_inputs
        seconds = next((row.seconds for row in rows if row.inputs == inputs), None)
        if seconds is None:
            raise records.NotRecorded(f"nothing is recorded of {name} at {n:,} on {inputs}")
        return 2e-12 * n**3 / seconds

    def roof(self, name: str) -> float:
        """A roof measured on the recorded GPU, FLOP/s or B/s."""
        return roof(name)

    def longest(self, event: str, name: str = "") -> float:
        """The longest phase of a kind, cycles, of a warp in the recorded timeline's first block."""
        version, variant = self._of(name)
        marks = version.reader.timeline(version.kernel.variant(variant).name)
        warps = timeline.without_other_lanes(marks.events, marks.blocks[0].warps)
        return max(one.end - one.start for one in timeline.phases(marks.events, warps)
                   if one.event == event)

    def code(self, opcode: str = "", name: str = "", arch: str = "sm_90a") -> int:
        """Instructions of the inner loop's SASS whose opcode begins so; all if none is given."""
        version, variant = self._of(name)
        return sum(one.opcode.startswith(opcode)
                   for one in version.compiled(arch, variant).inner_loop)

    def work_between(self, name: str = "", arch: str = "sm_90a") -> int:
        """FMAs between the last global load and the next shared store of the machine code."""
        version, variant = self._of(name)
        return order.work_between(
            [one.opcode for one in version.compiled(arch, variant).inner_loop])

    def registers(self, name: str = "", arch: str = "sm_90a") -> int:
        """Registers per thread."""
        version, variant = self._of(name)
        return version.compiled(arch, variant).resources.registers

    def warps(self, name: str = "", key: str = RECORDED_ON) -> int:
        """Warps that are resident on an SM of a GPU."""
        version, variant = self._of(name)
        gpu, chosen = gpus.GPUS[key], version.kernel.variant(variant)
        used = version.compiled(gpu.arch, variant).resources
        return occupancy(gpu, used.registers, used.shared_bytes, chosen.threads).warps


# What is not recorded of what `Numbers` gives; what is counted in the repository has no evidence.
_COUNTED = {"architectures", "mistakes"}
_EMULATED = {"count", "per_flop", "sum_error", "w"}
_MODELLED = {"clusters", "code", "on_sheet", "predicted", "rate", "registers", "stops_growing",
             "taken", "tiles_long", "warps", "work_between"}


def evidence(expression: str) -> str:
    """What a number with this expression rests on.

    Parameters
    ----------
    expression : str
        As `evaluate` takes it.

    Returns
    -------
    str
        Such as ``"recorded: NVIDIA H100 80GB HBM3"``, or ``"emulated; modelled"``.
    """
    found = {_rests_on(node.func.id, node)
             for node in ast.walk(ast.parse(f'f"""{{{expression}}}"""', mode="eval"))
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
             and hasattr(Numbers, node.func.id)}
    kinds = (f"recorded: {gpus.GPUS[RECORDED_ON].name}", "emulated", "modelled")
    return "; ".join(kind for kind in kinds if kind.partition(":")[0] in found)


def _rests_on(name: str, call: ast.Call) -> str:
    # At a size, sectors are those that were recorded.
    sized = len(call.args) > 1 or any(word.arg == "n" for word in call.keywords)
    if name in _EMULATED and not (name == "sectors" and sized):
        return "emulated"
    return "" if name in _COUNTED else "modelled" if name in _MODELLED else "recorded"


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
    names: dict[str, Callable[..., Any]] = {
        name: getattr(numbers, name) for name in dir(Numbers) if not name.startswith("_")}
    try:
        return str(eval(f'f"""{{{expression}}}"""', {"__builtins__": {
            "abs": abs, "len": len, "max": max, "min": min, "round": round, "sum": sum,
        }, "SIZE": SIZE, **names}))
    except records.NotYet:
        return NOT_YET
    except Exception as error:
        raise ValueError(f"{stem}: {expression!r} gives no number: {error}") from error
