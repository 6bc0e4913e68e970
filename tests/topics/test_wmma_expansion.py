"""What ptxas makes of wmma, from the book's own kernels."""

from collections import Counter

import pytest

from lib.compiler.sass import Instruction
from lib.gpus import GPUS
from lib.kernels import catalogue as kernels
from lib.kernels.build import compile_kernel
from lib.topics.code.wmma_expansion.model import expansions, flops, tensor_cycles


def of(stem, arch):
    compiled = compile_kernel(kernels.find(stem), arch=arch)
    return expansions(compiled.ptx, compiled.sass)


@pytest.mark.parametrize(
    "arch, product, count", [("sm_75", "HMMA.1688.F32", 4), ("sm_90a", "HMMA.16816.F32", 2)]
)
def test_a_wmma_becomes_several_products_with_all_its_work(arch, product, count):
    found = of("10_wmma", arch)["mma"]
    assert found == {product: count}
    assert count * flops(product) == 2 * 16**3


def test_fragments_from_global_memory_are_four_loads_and_b_is_turned_by_the_lanes():
    found = of("10_wmma", "sm_75")
    assert found["load a, global"] == {"LDG.E": 4}
    assert found["load b, global"] == {"LDG.E": 4, "MOVM.16.MT88": 4}
    assert found["store d, global"] == {"STG.E.64": 4}


@pytest.mark.parametrize("arch, width, count", [("sm_75", 2, 2), ("sm_90a", 4, 1)])
def test_fragments_from_shared_memory_are_ldmatrix(arch, width, count):
    found = of("11_wmma_shared", arch)
    assert found["load a, shared"] == {f"LDSM.16.M88.{width}": count}
    assert found["load b, shared"] == {f"LDSM.16.MT88.{width}": count}


def test_two_of_a_kind_must_be_alike():
    product = "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%f1};"
    ptx = f".entry k() {{ {product}\n{product}\n}}"
    sass = [Instruction(0, "", "HMMA.1688.F32", 1), Instruction(16, "", "HMMA.16816.F32", 2)]
    with pytest.raises(ValueError, match="PTX line 2"):
        expansions(ptx, sass)
    assert expansions(ptx, sass[:1]) == {"mma": Counter({"HMMA.1688.F32": 1})}


def test_the_work_of_products_and_the_cycles_it_takes():
    assert flops("HMMA.1688.F32") == 2048 and flops("HMMA.16816.F32") == 4096
    with pytest.raises(ValueError, match="FFMA"):
        flops("FFMA")
    # A T4's eight tensor cores an SM do 64 multiply-adds a cycle each: 128 a sub-partition.
    assert tensor_cycles(GPUS["T4"], 2 * 16**3) == pytest.approx(32, rel=0.02)
