"""Tables and pictures of the asynchronous chapters, 16 to 18."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lib import gpus, predictions, tuning
from lib.figures import mix as mix_figure
from lib.figures import ring as ring_figure
from lib.figures import tma_swizzle as swizzle_figure
from lib.measure import records
from lib.measure.bench import HOT_ROUNDS
from lib.models import mix, pipe_account, ring
from lib.models import phases as phases_of
from lib.models.raster import Raster
from lib.models.tma_swizzle import Box, Descriptor, descriptor
from lib.pages.display import show, table
from lib.pages.version import RECORDED_ON, Version, rung

# What a trace counts under names that begin so, and what that is for people. The first that fits.
_MACHINES = {
    "cp.async.bulk.tensor.2d.shared": "boxes that TMA loads",
    "cp.async.bulk.tensor.2d.global": "boxes that TMA stores",
    "cp.async.ca": "copies by warps, cp.async", "cp.async.cg": "copies by warps, cp.async",
    "ldmatrix": "ldmatrix", "mma.sync": "products of a warp, mma.sync",
    "wgmma.mma_async": "products of a warpgroup, wgmma",
    "mbarrier.arrive": "arrivals on mbarriers", "bar.": "barriers of a block or a part of it",
    "st.shared": "stores to shared memory", "stmatrix": "stores to shared memory",
    "st.global": "stores of C by warps",
}
WARPS_OF_A_GROUP = 4


def buffers(copy: float, multiply: float, stages: int, tiles: int = 8) -> None:
    """Draw the model of a ring of buffers (`lib.models.ring`)."""
    show(ring_figure.draw(ring.ring(copy, multiply, stages, tiles)))


def swizzle(major: str = "K", chunk: int = 1) -> None:
    """Draw the 128-byte swizzle of a box, one chunk followed, and its descriptor.

    Parameters
    ----------
    major : {"K", "MN"}
        Which way the rows run.
    chunk : int
    """
    show(swizzle_figure.draw(Box(128, 16), chunk=chunk, descriptor=descriptor(1024, 128, major),
                             major=major))


def descriptors(step: int = 64, start: int = 1024) -> None:
    """Display the descriptors of one step's products, K-major and MN-major.

    Parameters
    ----------
    step : int
        K of a step.
    start : int
        Address of the tile.
    """
    def row(name: str, k: int, found: Descriptor) -> tuple[object, ...]:
        return (name, k, f"{found.start:,}", found.leading, f"{found.stride:,}", found.mode,
                f"`{found.bits:016x}`")

    rows = [
        row(name, k, descriptor(start, 128, major, k, step))
        for name, major in (("A, rows along K", "K"), ("B, rows along N", "MN"))
        for k in range(0, step, 16)
    ]
    table(("operand", "k", "start, B", "LBO, B", "SBO, B", "swizzle", "the 64 bits"), rows,
          f"modelled: PTX ISA 9.7.15.5, for a tile at address {start:,}")


class HopperPages(Version):
    """What a page of an asynchronous version shows beside the others' tables."""

    def machines(self, *variants: str, above: Sequence[str] = ()) -> None:
        """Display what a traced run asks of each machine: instructions of warps, by what they do.

        Parameters
        ----------
        *variants : str
            The first if none is named.
        above : sequence of str
            Versions to show before, as ``stem`` or ``stem/variant``.
        """
        columns = {
            row.name: row.page.asked(row.variant.name) for row in self.rows(variants, above)
        }
        names = dict.fromkeys(_MACHINES.values())
        rows = [
            (name, *(f"{column.get(name, 0):,}" for column in columns.values()))
            for name in names if any(column.get(name) for column in columns.values())
        ]
        table((f"at {self.problem.shape.replace('x', '×')}", *columns), rows,
              f"emulated: PTX of each, {self.problem.shape.replace('x', '×')}")

    def asked(self, variant: str | None = None) -> Mapping[str, int]:
        """Instructions of warps of the traced run by what they do; of a wgmma, the warpgroups'."""
        found: dict[str, int] = {}
        for opcode, (warps, _) in self.traced(variant).launch.trace.instructions.items():
            name = next((_MACHINES[head] for head in _MACHINES if opcode.startswith(head)), None)
            if name:
                each = WARPS_OF_A_GROUP if opcode.startswith("wgmma") else 1
                found[name] = found.get(name, 0) + warps // each
        return found

    def products_mix(self, arch: str = "sm_90a") -> None:
        """Draw what the inner loop issues for a thousand products of 16×8×16 of a warp, against
        the version before: their tensor instructions are of other sizes."""
        def of(version: Version) -> tuple[str, Mapping[str, float]]:
            loop = version.compiled(arch).inner_loop
            return rung(version.kernel), mix.per_thousand_products(i.opcode for i in loop)

        before = self.kernel.predecessor
        show(mix_figure.draw(
            of(self), before and of(type(self)(before.stem)), unit="products of 16×8×16",
            evidence=f"modelled: SASS of the inner loop, {arch}, NVRTC "
            f"{self.compiled(arch).toolkit}",
        ))

    def variants(self, *names: str) -> None:
        """Display what the variants are, and their tiles."""
        chosen = [self.kernel.variant(name) for name in names] or self.kernel.variants
        table(
            ("variant", "what it is", "tile", "threads"),
            [(v.name, v.meaning, f"{v.tile[0]}×{v.tile[1]}×{v.step}", v.threads) for v in chosen],
            "modelled: the catalogue",
        )

    def tensor_compare(self, size: int, *variants: str, above: Sequence[str] = ()) -> None:
        """Display recorded speed, traffic and clock of some variants side by side.

        Parameters
        ----------
        size : int
            M = N = K.
        *variants : str
            All of them if none is named.
        above : sequence of str
            Versions to show above, as ``stem`` or ``stem/variant``.
        """
        rows = []
        for one in self.rows(variants, above, every=True):
            row = one.page.recorded(size, one.variant.name)
            metrics = one.page.metrics(size, one.variant.name)
            rows.append((
                one.name, f"{row['tflops']:.1f}",
                f"{row['ratio']:.1%}", _said(metrics.get("tensor_pipe_percent"), ".0f", "%"),
                f"{metrics['l2_bytes'] / 1e9:.2f}", f"{metrics['dram_read_bytes'] / 1e9:.2f}",
                _said(row["sm_clock_mhz"], ",.0f"), _said(row.get("power_w"), ",.0f"),
            ))
        table(
            (f"at {size:,}", "TFLOP/s", "of cuBLAS", "tensor pipe busy", "GB through L2",
             "GB from DRAM", "SM clock, MHz", "W"),
            rows, f"{records.label(self.record)}; busy and bytes by ncu",
        )

    def how_it_ran(self, variant: str | None = None) -> None:
        """Display each recorded shape of a variant with clock, power and temperature.

        Where the series was short, of fewer samples than `bench.HOT_ROUNDS`, nothing is said of
        them: the sensors follow within tenths of a second, and it was over before.
        """
        name = self.kernel.variant(variant).name
        rows = []
        for row in self.record["variants"][name]["bench"]:
            short = row.get("rounds", HOT_ROUNDS) < HOT_ROUNDS
            rows.append((
                "×".join(f"{side:,}" for side in _shape(row)), f"{row['tflops']:.0f}",
                f"{row['cublas_tflops']:.0f}", f"{row['ratio']:.3f}", f"{row['spread']:.1%}",
                *("too short" if short else _said(row.get(key), ",.0f")
                  for key in ("sm_clock_mhz", "power_w", "temperature_c")),
            ))
        table(("M×N×K", "TFLOP/s", "cuBLAS", "ratio", "spread", "SM clock, MHz", "W", "°C"), rows,
              f"{records.label(self.record)}, {name}; clock, W and °C: medians while both ran")

    def layers(self, beside: str | None = None) -> None:
        """Display the cubes and the layers of public models: ratio, tile, mean and least.

        Parameters
        ----------
        beside : str, optional
            Key of another GPU, whose recorded ratios get a column of their own.

        Raises
        ------
        records.NotRecorded
            If there is no record of that GPU.
        """
        kept = [self.record]
        if beside is not None:
            other = records.load(beside, self.kernel.stem)
            if other is None:
                raise records.NotRecorded(
                    f"{self.kernel.stem} has no record of a {beside}: "
                    f"python -m lib record {self.kernel.stem}, on such a machine"
                )
            kept.append(other)
        ratios = [{_shape(row): row["ratio"] for row in self.layer_rows(record)} for record in kept]
        rows: list[tuple[str, ...]] = []
        for row in self.layer_rows():
            launched = self.launched(row)
            rows.append((
                "×".join(f"{side:,}" for side in _shape(row)), f"{row['tflops']:.0f}",
                f"{row['cublas_tflops']:.0f}",
                *(f"**{found[_shape(row)]:.3f}**" for found in ratios),
                launched.name if launched else "another",
            ))
        rows.append(("geometric mean; least", "", "", *(
            f"**{math.exp(sum(map(math.log, found.values())) / len(found)):.3f}**; "
            f"{min(found.values()):.3f}" for found in ratios), ""))
        names = [""] if len(kept) == 1 else [f", {record['gpu']['key']}" for record in kept]
        table(("M×N×K", "TFLOP/s", "cuBLAS", *(f"ratio{name}" for name in names), "launched"), rows,
              "; ".join(map(records.label, kept)))

    def layer_rows(self, record: Mapping[str, Any] | None = None) -> list[Mapping[str, float]]:
        """The rows of the first variant on cubes from 1,024 and on `tuning.LAYERS`.

        Parameters
        ----------
        record : mapping, optional
            Another GPU's record; the book's if not given.
        """
        kept = (record or self.record)["variants"][self.kernel.variants[0].name]["bench"]
        return [
            row for row in kept
            if row["M"] == row["N"] == row["K"] >= 1024 or _shape(row) in tuning.LAYERS
        ]

    def predicted(
        self, *variants: str, since: str = "", against: str | None = None, size: int = 4096
    ) -> None:
        """Display what was predicted of some variants, and what was measured.

        Parameters
        ----------
        *variants : str
            All that something was predicted of, if none is named.
        since : str
            Stem of the version whose first variant the steps begin at, each then against the one
            before it.
        against : str, optional
            Without `since`, the variant that each is compared with; the first if not given.
        size : int
            M = N = K.
        """
        guesses = predictions.PREDICTIONS[self.kernel.stem]
        first = type(self)(since).recorded(size) if since else self.recorded(size, against)
        base = first["ratio"]
        rows = []
        for name in variants or guesses:
            speed = self.recorded(size, name)["ratio"]
            rows.append((name, f"{guesses[name].gain:+.1%}", guesses[name].because,
                         f"**{speed / base - 1:+.1%}**"))
            base = speed if since else base
        other = "the step before" if since else self.kernel.variant(against).name
        table(("variant", "predicted", "because", "measured"), rows,
              f"{predictions.label()}; {records.label(self.record)}, {size:,}³; speed, in "
              f"% of cuBLAS in the same run, over that of {other}, less 1")

    def account(
        self, *variants: str, above: Sequence[str] = (), size: int = 4096
    ) -> None:
        """Display where the distance to the tensor cores' peak went, factor by factor.

        Parameters
        ----------
        *variants : str
            The first if none is named.
        above : sequence of str
            Versions to show above, as ``stem`` or ``stem/variant``.
        size : int
            M = N = K.
        """
        rows = []
        for one in self.rows(variants, above):
            row = one.page.recorded(size, one.variant.name)
            ours, rival = one.page.accounted(one.variant.name, size)
            rows.append((
                one.name, f"{row['tflops']:.0f}", _said(row["sm_clock_mhz"], ",.0f"),
                f"{ours.clock:.3f}", f"{ours.waves:.3f}", f"{ours.rest:.3f}", f"{ours.share:.3f}",
                f"**{ours.share / ours.clock:.3f}**", f"{rival.share / rival.clock:.3f}",
            ))
        table(
            (f"in turns, at {size:,}", "TFLOP/s", "MHz", "clock", "last wave", "the rest",
             "of the peak", "of the cycles' peak", "cuBLAS, of the same"),
            rows, f"{records.label(self.record)}; peak modelled: 4,096 FLOP a cycle and SM, "
            f"{gpus.GPUS[RECORDED_ON].clock_hz / 1e6:,.0f} MHz",
        )

    def accounted(
        self, variant: str | None = None, size: int = 4096
    ) -> tuple[pipe_account.Account, pipe_account.Account]:
        """Take the recorded speeds of a variant and of cuBLAS, in turns with it, apart.

        Both have the clock of both. Nothing is known of cuBLAS's waves: all is in its rest.
        """
        chosen, row = self.kernel.variant(variant), self.recorded(size, variant)
        launched = self.launched(row) or chosen
        sheet, sms = gpus.GPUS[RECORDED_ON], self.record["gpu"]["sms"]
        order = Raster(size, size, size, launched.tile, int(chosen.constants["GROUP"]),
                       launched.cluster, sms)
        clock = (row["sm_clock_mhz"] or sheet.clock_hz / 1e6) * 1e6
        ours, rival = (
            pipe_account.account(RECORDED_ON, sms, sheet.clock_hz, 1e12 * speed, clock, waves)
            for speed, waves in ((row["tflops"], order.full), (row["cublas_tflops"], 1.0))
        )
        return ours, rival

    def alone(self, *variants: str, above: Sequence[str] = (), size: int = 4096) -> None:
        """Display recorded speed, clock and power beside cuBLAS, and alone.

        Parameters
        ----------
        *variants : str
            The first if none is named.
        above : sequence of str
            Versions to show above, as ``stem`` or ``stem/variant``.
        size : int
            M = N = K.
        """
        rows = []
        for one in self.rows(variants, above):
            row = one.page.recorded(size, one.variant.name)
            alone = row.get("alone", {})
            rows.append((
                one.name, f"{row['ratio']:.3f}",
                f"{row['tflops']:.0f}", _said(row["sm_clock_mhz"], ",.0f"),
                _said(row.get("power_w"), ",.0f"), _said(alone.get("tflops"), ".0f"),
                _said(alone.get("sm_clock_mhz"), ",.0f"), _said(alone.get("power_w"), ",.0f"),
            ))
        table(
            (f"at {size:,}", "ratio", "TFLOP/s in turns", "MHz", "W", "TFLOP/s alone", "MHz", "W"),
            rows, f"{records.label(self.record)}; medians while the samples were taken",
        )

    def life(self, variant: str | None = None) -> dict[str, float]:
        """Cycles of the first warp's first tile: ``"start"``, ``"products"``, ``"store"``.

        From the recorded timeline: until its first product, until it has waited for the last one,
        and until it has stored.

        Raises
        ------
        ValueError
            If the marks don't reach to the end of a tile.
        """
        one = self._recorded_version(self.kernel.variant(variant))
        spans = [span for span in phases_of.phases(one.events, one.blocks[0][1]) if not span.warp]
        first = next(span for span in spans if span.event == "compute")
        stored = next((span for span in spans if span.event == "store"), None)
        if stored is None:
            raise ValueError(f"{self.kernel.stem}: the marks end before the first tile is stored")
        return {"start": first.start - spans[0].start, "products": stored.start - first.start,
                "store": stored.end - stored.start}

    def flops_a_busy_cycle(self, variant: str | None = None, size: int = 4096) -> float:
        """FLOP of an SM in a cycle in which its tensor pipe is busy, by the recorded counters."""
        found, sms = self.metrics(size, variant), self.record["gpu"]["sms"]
        busy = found["cycles"] * sms * found["tensor_pipe_percent"] / 100
        return 2.0 * size**3 / busy

    def speed_over(self, other: str, size: int = 4096) -> float:
        """Speed of the first variant over that of another version's, each over its own cuBLAS."""
        return self.recorded(size)["ratio"] / type(self)(other).recorded(size)["ratio"]

    def bytes_in_flight(self, variant: str | None = None) -> int:
        """Bytes that a block has asked for, at most, before it waits: all stages but one."""
        chosen = self.kernel.variant(variant)
        rows, columns = chosen.tile
        stages = int(chosen.constants["STAGES"])
        return (stages - 1) * (rows + columns) * chosen.step * 2


def _shape(row: Mapping[str, Any]) -> tuple[int, int, int]:
    return row["M"], row["N"], row["K"]


def _said(value: float | None, form: str, unit: str = "") -> str:
    return "not read" if value is None else f"{value:{form}}{unit}"
