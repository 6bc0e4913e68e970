"""Hardware counters, read by Nsight Compute (ncu) in a subprocess that launches one kernel once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import Kernel, Variant, parted
from lib.measure import cublas, ncu
from lib.measure.ncu import ProfilerMissing
from lib.problem import Problem
from lib.records.schema import CUBLAS, Rival
from lib.run import device

__all__ = ["ALL", "EMULATED", "HARDWARE", "MATRIX", "ProfilerMissing", "counters", "parse"]

# The emulator's counters by the name that `trace --json` gives them, and ncu's name for each.
EMULATED = {
    "global_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_load_instructions": "smsp__sass_inst_executed_op_shared_ld.sum",
    "shared_store_instructions": "smsp__sass_inst_executed_op_shared_st.sum",
    "shared_wavefronts": "memory_l1_wavefronts_shared",
    "shared_wavefronts_ideal": "memory_l1_wavefronts_shared_ideal",
    "ffma_thread_instructions": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
}

# The same for tensor cores and what feeds them; what `Trace.matrix_counters` has of them.
MATRIX = {
    "ldmatrix_instructions": "smsp__inst_executed_op_ldsm.sum",
    "stmatrix_instructions": "smsp__inst_executed_op_stsm.sum",
    "copy_instructions": "smsp__inst_executed_op_ldgsts.sum",
    "hmma_instructions": "smsp__inst_executed_pipe_tensor_op_hmma.sum",
    "gmma_instructions": "smsp__inst_executed_pipe_tensor_op_gmma.sum",
}

# What no emulator can count: traffic below the L1, time, and how full the units were, of elapsed
# cycles or of those of an SM at work. `lib.show` puts them together.
HARDWARE = {
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "l2_bytes": "lts__t_bytes.sum",
    "l1_load_bytes": "l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum",
    "warps_active_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "issue_active_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "fma_pipe_percent": "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    "tensor_pipe_percent": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "lsu_pipe_percent": "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed",
    "l1_data_percent": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "l1_wavefronts": "l1tex__data_pipe_lsu_wavefronts.sum",
    "instructions": "smsp__inst_executed.sum",
    "cycles": "sm__cycles_elapsed.max",
    "nanoseconds": "gpu__time_duration.sum",
    # Warps in a state per instruction issued: the cycles that warps wait for it, all added up, per
    # instruction issued.
    **{
        f"stall_{reason}":
            f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
        for reason in ("long_scoreboard", "short_scoreboard", "barrier", "mio_throttle",
                       "lg_throttle", "math_pipe_throttle", "wait", "not_selected",
                       "dispatch_stall", "gmma")
    },
}

# For the account of issue slots: warp instructions by the pipe that takes them, cycles in which an
# instruction was issued, and the reasons to wait that are not among `HARDWARE`'s. Names differ from
# one generation to the next: those that this ncu doesn't list for this GPU are not asked for.
ISSUE = {
    **{f"pipe_{pipe}": f"smsp__inst_executed_pipe_{pipe}.sum"
       for pipe in ("adu", "alu", "cbu", "fma", "fmaheavy", "fmalite", "fp16", "lsu", "tensor",
                    "uniform", "xu")},
    "issue_active_cycles": "smsp__issue_active.sum",
    "active_cycles": "smsp__cycles_active.sum",
    **{
        f"stall_{reason}":
            f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
        for reason in ("branch_resolving", "drain", "imc_miss", "membar", "misc",
                       "no_instruction", "selected", "sleeping", "tex_throttle")
    },
}

ALL = {**EMULATED, **MATRIX, **HARDWARE}
Shape = tuple[int, int, int]
# Stands between the products of cuBLAS that are profiled together: ``cuda/busy.cu``.
MARKER = "busy"
CYCLES = {name: HARDWARE[name] for name in ("cycles", "nanoseconds")}


@lru_cache(maxsize=1)
def asked() -> Mapping[str, str]:
    """What is asked of ncu on this GPU: `ALL`, and what of `ISSUE` it lists.

    Raises ProfilerMissing if ncu is missing.
    """
    known = ncu.available()
    return MappingProxyType(ALL | {name: metric for name, metric in ISSUE.items()
                                   if metric.partition(".")[0] in known})


def counters(
    stem: str, variant: str | None, shapes: Sequence[Shape],
    alpha: float = 1.0, beta: float = 0.0, ptx_arch: str | None = None,
    metrics: Mapping[str, str] | None = None, candidates: Sequence[int | None] = (),
) -> list[dict[str, float]]:
    """Profile one launch on each shape of a kernel of the catalogue, or of cuBLAS.

    `stem`: the kernel's, or ``"cublas"``. `variant`: name of an instantiation, or of one of
    cuBLAS's problems. `shapes`: M, N and K. `ptx_arch`: the kernel is this older architecture's
    PTX, assembled for this GPU. `metrics`: ncu's names, by ours; `asked` if not given.
    `candidates`: of cuBLAS: which of cublasLt's candidates on each shape; its default where None,
    or where none are given. Returns for each shape, by the names of `metrics`. What this ncu or GPU
    doesn't know is left out. Raises NoGpu if there is no GPU; ProfilerMissing if ncu is missing,
    the driver refuses it the counters, or it saw other launches.
    """
    device.cupy()
    if not shapes:
        return []
    metrics = asked() if metrics is None else metrics
    if stem == CUBLAS:
        seen = _of_cublas(variant, shapes, alpha, beta, metrics, candidates)
    else:
        seen = [[row] for row in _launches(
            f"{stem}/{variant}" if variant else stem, shapes, metrics, alpha, beta, ptx_arch)]
    if len(seen) != len(shapes):
        raise ProfilerMissing(f"ncu saw {len(seen)} launches of {stem}, not {len(shapes)}")
    return [parse(rows, metrics) for rows in seen]


def of_variants(
    stem: str, variants: Sequence[str], shapes: Sequence[Shape], ptx_arch: str | None = None
) -> dict[str, list[dict[str, float]]]:
    """Profile several variants of a kernel under one ncu, whose start takes longer than a launch.

    Returns by variant, what `counters` returns. Raises NoGpu, ProfilerMissing as `counters` does.
    """
    if stem == CUBLAS:
        return {name: counters(stem, name, shapes) for name in variants}
    device.cupy()
    metrics = asked()
    seen = _launches(f"{stem}/{','.join(variants)}", shapes, metrics, ptx_arch=ptx_arch)
    if len(seen) != len(variants) * len(shapes):
        raise ProfilerMissing(
            f"ncu saw {len(seen)} launches of {stem}, not {len(variants) * len(shapes)}")
    rows = iter(seen)
    return {name: [parse([next(rows)], metrics) for _ in shapes] for name in variants}


def of_several(names: Sequence[str], shape: Shape) -> list[dict[str, float]]:
    """Profile one launch of each of some kernels, ``VERSION/VARIANT``, under one ncu.

    Raises NoGpu, ProfilerMissing as `counters` does.
    """
    device.cupy()
    metrics = asked()
    seen = _launches("+".join(names), [shape], metrics)
    if len(seen) != len(names):
        raise ProfilerMissing(f"ncu saw {len(seen)} launches, not {len(names)}")
    return [parse([row], metrics) for row in seen]


@dataclass(frozen=True)
class Cycles:
    """SM cycles of one launch of a kernel and of its rival."""

    cycles: float
    cublas_cycles: float


@dataclass(frozen=True)
class NotCounted:
    """Why counters can't be read."""

    why_not: str


def cycles(
    kernel: Kernel, variant: Variant, problem: Problem, rival: Rival,
    ptx_arch: str | None = None,
) -> Cycles | NotCounted:
    """SM cycles of one launch of a kernel and of its rival, by ncu."""
    shape = (problem.M, problem.N, problem.K)
    candidate = rival.best.place if rival.best and rival.fastest is rival.best else None
    name = cublas.name_of(problem)
    try:
        (own,) = counters(kernel.stem, variant.name, [shape], problem.alpha, problem.beta,
                          ptx_arch, CYCLES)
        (other,) = counters(CUBLAS, name, [shape], problem.alpha, problem.beta, None, CYCLES,
                            [candidate])
    except ProfilerMissing as error:
        return NotCounted(f"cycles are not read: {error}")
    return Cycles(own["cycles"], other["cycles"])


def _launches(
    names: str, shapes: Sequence[Shape], metrics: Mapping[str, str], alpha: float = 1.0,
    beta: float = 0.0, ptx_arch: str | None = None,
) -> list[dict[str, str]]:
    """What ncu saw of ``python -m lib launch``: a row a launch, variant by variant.

    `names`: as that command takes them, several with + between.
    """
    functions = [function for name in names.split("+")
                 for function in KERNELS[parted(name)[0]].functions]
    return ncu.profile(
        list(metrics.values()),
        [*_launch(names, shapes, alpha, beta), *(["--ptx-arch", ptx_arch] if ptx_arch else [])],
        f"regex:^({'|'.join(dict.fromkeys(functions))})$")


def _of_cublas(
    variant: str | None, shapes: Sequence[Shape], alpha: float, beta: float,
    metrics: Mapping[str, str], candidates: Sequence[int | None],
) -> list[list[dict[str, str]]]:
    """The launches of each shape.

    It may split one product into several kernels, of any name. So a kernel of ours is launched
    before each product, and all behind it is its own.
    """
    places = [str(-1 if place is None else place) for place in candidates]
    return split(ncu.profile(list(metrics.values()), [
        *_launch(f"{CUBLAS}/{variant}" if variant else CUBLAS, shapes, alpha, beta),
        *([f"--candidate={','.join(places)}"] if places else []), "--apart",
    ]))


def _launch(names: str, shapes: Sequence[Shape], alpha: float, beta: float) -> list[str]:
    """The words of the command."""
    return ["launch", names, "--shape", "+".join("x".join(map(str, shape)) for shape in shapes),
            "--alpha", repr(alpha), "--beta", repr(beta)]


def split(rows: Iterable[dict[str, str]]) -> list[list[dict[str, str]]]:
    """The launches behind each `MARKER`, without it."""
    seen: list[list[dict[str, str]]] = []
    for row in rows:
        if MARKER in row["Kernel Name"]:
            seen.append([])
        elif seen:
            seen[-1].append(row)
    return seen


def parse(rows: list[dict[str, str]], metrics: Mapping[str, str]) -> dict[str, float]:
    """Add up the launches that ncu saw.

    Sums (``.sum`` metrics and wavefronts) and cycles add up over the launches; percentages and
    ratios are those of the longest launch.
    """
    duration = metrics.get("nanoseconds", "")
    longest = max(range(len(rows)), key=lambda at: ncu.number(rows[at].get(duration)) or 0.0)
    found: dict[str, float] = {}
    for key, metric in metrics.items():
        values = [value for row in rows if (value := ncu.number(row.get(metric))) is not None]
        if len(values) < len(rows):
            continue
        added = metric.endswith((".sum", "cycles_elapsed.max")) or metric.startswith("memory_")
        found[key] = sum(values) if added else values[longest]
    return found
