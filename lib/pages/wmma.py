"""Tables of the chapters on wmma: what it becomes and costs, what moves, what warps wait for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lib import gpus, ptx
from lib.measure import records
from lib.models import expansion
from lib.models import slots as slots_of
from lib.models.occupancy import occupancy
from lib.pages.display import table
from lib.pages.version import RECORDED_ON, Version
from lib.problem import ITEM_BYTES, Problem
from lib.sass import executions

# What a wmma of PTX is called on a page, in the order of its work.
_STEPS = {
    "load a": "`wmma.load` of A", "load b": "`wmma.load` of B", "load c": "`wmma.load` of C",
    "mma": "`wmma.mma`", "store d": "`wmma.store`",
}
_SPACES = {"global": " (global memory)", "shared": " (shared memory)", "": ""}
# Counters that emulator and ncu both have, and what they are called on a page.
_COUNTED = {
    "global_load_requests": "global load requests", "global_load_sectors": "global load sectors",
    "global_store_requests": "global store requests",
    "global_store_sectors": "global store sectors", "shared_store_instructions": "STS",
    "ldmatrix_instructions": "LDSM",
    "shared_wavefronts": "wavefronts of shared memory", "hmma_instructions": "HMMA",
}
# Multiply-adds of a warp's FMA, by which accesses are counted in all chapters.
WARP = 32


class TensorTables(Version):
    """What a page of a tensor-core version shows as tables beside those of all pages."""

    def expansion(self, *archs: str) -> None:
        """Display which machine instructions one wmma of each kind becomes.

        Parameters
        ----------
        *archs : str
            The oldest and the newest that the kernel is compiled for, if none is named.
        """
        archs = archs or (self.kernel.min_arch, "sm_90a")
        columns = [expansion.expansions(one.ptx, one.sass) for one in map(self.compiled, archs)]
        rows = []
        for step, name in _STEPS.items():
            for space, where in _SPACES.items():
                key = f"{step}, {space}" if space else step
                if key in columns[0]:
                    rows.append((name + where, *(_listed(found[key]) for found in columns)))
        table(
            ("in PTX", *archs), rows,
            f"modelled: SASS of NVRTC {self.compiled(archs[0]).toolkit}, by the PTX line that each "
            "instruction came from; addresses left out",
        )

    def products(self) -> None:
        """Display what a 16×16×16 product costs each GPU: instructions, and tensor-core cycles."""
        rows = []
        for arch, key in gpus.ARCHITECTURES.items():
            gpu, compiled = gpus.GPUS[key], self.compiled(arch)
            found = expansion.expansions(compiled.ptx, compiled.sass)["mma"]
            (opcode, count), = found.items()
            each = expansion.flops(opcode)
            cycles = expansion.tensor_cycles(gpu, count * each)
            peak = gpu.tensor_fp16_flops / gpu.fp32_flops
            rows.append((f"{key} ({arch})", _listed(found), f"{each:,}", f"{cycles:.0f}",
                         f"{peak:.1f}×"))
        table(
            ("GPU", "one 16×16×16 product is", "FLOP each", "cycles of a sub-partition",
             "peak over FP32's"),
            rows, "modelled: SASS, and the peaks of the data sheets; dense FP16, sums in FP32",
        )

    def agreement(self, *variants: str, size: int = 256) -> None:
        """Display what the emulator counts of a launch beside what ncu counted on the GPU.

        Parameters
        ----------
        *variants : str
            All of them if none is named.
        size : int
            M = N = K, of those whose counters are recorded.
        """
        names = variants or tuple(v.name for v in self.kernel.variants)
        arch = gpus.GPUS[RECORDED_ON].arch
        columns = []
        for name in names:
            done = self.run(Problem(size, size, size), name, backend="emulator", arch=arch)
            trace = done.launch.trace
            columns += [{**trace.counters(), **self.machine_counts(trace, name)},
                        self.metrics(size, name)]
        rows = [
            (_COUNTED[key], *(f"{column[key]:,.0f}" for column in columns)) for key in _COUNTED
        ]
        head = (f"at {size}×{size}×{size}",
                *(f"{name}, {who}" for name in names for who in ("emulated", "ncu")))
        table(head, rows, f"emulated: {arch} PTX; {records.label(self.record)}")

    def machine_counts(self, trace: ptx.Trace, variant: str) -> dict[str, int]:
        """HMMA and LDSM that warps execute in a traced launch, by the records' names."""
        compiled = self.compiled(gpus.GPUS[RECORDED_ON].arch, variant)
        return {
            "hmma_instructions": executions(compiled.sass, trace.lines, "HMMA"),
            "ldmatrix_instructions": trace.matrix_counters()["ldmatrix_instructions"],
        }

    def traffic(self, size: int, *variants: str, above: Sequence[str] = ()) -> None:
        """Display recorded speed and traffic, level by level, a row a variant.

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
            found = one.page.metrics(size, one.variant.name)
            row = one.page.recorded(size, one.variant.name)
            rows.append((
                one.name, f"{row['tflops']:.1f}",
                f"{row['ratio']:.1%}", f"{found['l1_load_bytes'] / 1e9:.2f}",
                f"{found['l2_bytes'] / 1e9:.2f}", f"{found['dram_read_bytes'] / 1e9:.2f}",
                f"{WARP * found['shared_wavefronts'] / size**3:.3f}",
                f"{found['issue_active_percent']:.0f}%",
            ))
        table(
            (f"at {size:,}", "TFLOP/s", "of cuBLAS", "GB of loads from L1", "GB through L2",
             "GB from DRAM", "wavefronts for 32 multiply-adds", "issue slots used"),
            rows, f"{records.label(self.record)}, ncu",
        )

    def under_way(self, *variants: str, gpu: str = RECORDED_ON) -> None:
        """Display how many bytes the loads of a step have under way, of a block and on an SM.

        Parameters
        ----------
        *variants : str
        gpu : str
            Key of the data sheet; its own machine code says how many blocks fit.
        """
        sheet, rows = gpus.GPUS[gpu], []
        for name in variants:
            variant, used = self.kernel.variant(name), self.compiled(sheet.arch, name).resources
            fit = occupancy(sheet, used.registers, used.shared_bytes, variant.threads)
            nbytes = sum(variant.tile) * variant.step * ITEM_BYTES[variant.dtype]
            rows.append((name, variant.threads, fit.blocks, f"{nbytes:,}",
                         f"**{fit.blocks * nbytes:,}**"))
        table(("", "threads a block", "blocks on an SM", "bytes under way, a block", "an SM"), rows,
              f"modelled: CUDA's occupancy rules, for {sheet.key} ({sheet.arch})")

    def stalls(self, size: int, *variants: str, above: Sequence[str] = ()) -> None:
        """Display what the warps' time is spent waiting for, a row a variant.

        Parameters
        ----------
        size : int
            M = N = K.
        *variants : str
            All of them if none is named.
        above : sequence of str
            Versions to show above, as ``stem`` or ``stem/variant``.
        """
        names = {
            "stall_long_scoreboard": "global memory", "stall_short_scoreboard": "shared memory",
            "stall_mio_throttle": "queue of shared memory", "stall_lg_throttle": "queue of loads",
            "stall_barrier": "barrier",
        }
        rows = []
        for one in self.rows(variants, above, every=True):
            found = one.page.metrics(size, one.variant.name)
            shares = slots_of.warp_time(found, gpus.GPUS[RECORDED_ON].warps_per_sm)
            rows.append((
                one.name, *(f"{shares[key]:.0%}" for key in names),
                f"{found['warps_active_percent']:.0f}%", f"{found['issue_active_percent']:.0f}%",
            ))
        table(
            ("warps' time spent waiting for", *names.values(), "warp slots filled",
             "issue slots used"),
            rows, f"{records.label(self.record)}, ncu, n = {size:,}; the rest: issuing, fixed "
            "latencies, waiting for a turn",
        )


def _listed(counts: Counter[str]) -> str:
    return " + ".join(f"{count} `{opcode}`" for opcode, count in sorted(counts.items()))
