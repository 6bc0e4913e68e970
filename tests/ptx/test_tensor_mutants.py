"""Every barrier, wait and commit of the tensor-core kernels, left out or weakened in turn.

Each mutant must be reported, raise, or give a wrong result under some landing. Of these kernels
none is equivalent to the original.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from lib import ptx

from .conftest import HERE, compile_kernels

SOURCE = str(HERE / "tensor.cu")
KERNELS = [("compute_75", "wmma_gemm"), ("compute_75", "mma_m16n8k8"), ("compute_80", "pipelined")]
MUTATIONS = {
    r"\bbar\.sync\s+0;": "",
    r"cp\.async\.commit_group;": "",
    r"cp\.async\.wait_group 1;": "cp.async.wait_group 2;",
    r"cp\.async\.wait_group (?=1;)": "// ",
}


def mutants(arch: str, name: str):
    """Yield the text of each mutant, and what was changed."""
    text = compile_kernels(arch, SOURCE)
    start = text.index(f".entry {name}(")
    end = text.index("\n}\n", start)
    for pattern, put in MUTATIONS.items():
        for match in re.finditer(pattern, text[start:end]):
            at = start + match.start()
            what = f"{match.group()} -> {put}, PTX line {text[:at].count(chr(10)) + 1}"
            yield what, text[:at] + put + text[start + match.end() :]


def verdict(text: str, name: str) -> str:
    """Run a mutant with race detection under both landings."""
    K = 256
    random = np.random.default_rng(0)
    a, b = (random.uniform(-1, 1, shape).astype(np.float16) for shape in ((64, K), (K, 64)))
    exact = a.astype(float) @ b.astype(float)
    found = []
    for landing in ("early", "late"):
        c = np.full((64, 64), np.nan, np.float32)
        try:
            function = ptx.Module(text).get_function(name)
            launch = function((1, 1), 128, (64, 64, K, a, b, c), races=True, landing=landing)
        except ptx.Error as error:
            found.append(f"{landing}: {type(error).__name__}")
            continue
        if any(hazard.kind == "race" for hazard in launch.hazards):
            found.append(f"{landing}: race")
        elif not np.allclose(c, exact, atol=1e-3):
            found.append(f"{landing}: wrong result")
    return ", ".join(found)


@pytest.mark.parametrize("arch, name", KERNELS)
def test_mutants(arch, name):
    table = {what: verdict(text, name) for what, text in mutants(arch, name)}
    for what, said in table.items():
        print(f"{name}: {what}: {said or 'nothing'}")
    assert table
    assert not [what for what, said in table.items() if not said]
