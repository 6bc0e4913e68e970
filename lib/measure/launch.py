"""Launch one kernel once, with nothing of ours around it: what a profiler looks at."""

from __future__ import annotations

from typing import Any

import numpy as np

from lib.kernels.spec import Kernel, Variant
from lib.measure import cublas, cublaslt
from lib.problem import Problem
from lib.run import device
from lib.run.runner import Loaded, prepare


def launch_once(
    ours: tuple[Kernel, Variant] | None, problem: Problem, ptx_arch: str | None = None,
    candidate: int | None = None,
) -> None:
    """Launch a kernel of the catalogue, or cuBLAS.

    `ours`: none for cuBLAS. `ptx_arch`: launch what this older architecture's PTX becomes on this
    GPU. `candidate`: of cuBLAS: which of cublasLt's candidates, counted from 0; its default if not
    given. Raises NoGpu if there is no GPU; ValueError if there is no such candidate.
    """
    cp = device.cupy()
    # For cuBLAS drawn on the host, so that no kernel but its own, of any name, runs on the device.
    operands: list[Any] = [None if matrix is None else cp.asarray(matrix)
                           for matrix in problem.inputs(0, cp if ours else np)]
    if ours is None and candidate is not None:
        offered = cublaslt.candidates(problem)
        if candidate >= len(offered):
            raise ValueError(f"cublasLt offers {len(offered)} candidates for {problem.shape}")
        offered[candidate].gemm(*operands)
    elif ours is None:
        cublas.gemm(problem, *operands)
    else:
        kernel, variant = ours
        # What a search chose is profiled by its own name; what a rule chooses, in its place.
        prepared = prepare(
            kernel, variant, problem, [tuple(operands)], exact=not variant.by_rule
        )
        Loaded(kernel, prepared, device.arch(kernel.needs(variant)), ptx_arch)(0)
    cp.cuda.get_current_stream().synchronize()
