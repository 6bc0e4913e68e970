"""Tables of the chapters on wmma: from the machine code, and from records."""


import pytest

from lib import chapter
from lib.chapter import Chapter
from lib.compiler.sass import executions
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE
from lib.problem import Problem
from lib.records import store as records
from lib.records.schema import MachineRecord
from lib.show.roofline import roofs_table


def test_the_roofs_of_every_recorded_machine_can_be_shown(shown):
    roofs_table()
    record = records.load(MachineRecord, chapter.RECORDED_ON)
    assert all((roof.method in shown[0]) is (name != "l2")  # which kernels pass: no roof
               for name, roof in record.roofs.named().items())


def machine_counts(version, trace, variant):
    """HMMA and LDSM that warps execute in a traced launch, by the records' names."""
    sass = version.compiled("sm_90a", variant).sass
    return {"hmma_instructions": executions(sass, trace.lines, "HMMA"),
            "ldmatrix_instructions": trace.matrix_counters()["ldmatrix_instructions"]}


@pytest.mark.parametrize("stem", ["10_wmma", "11_wmma_shared", "12_wmma_pipeline"])
def test_the_machine_s_products_and_matrix_loads_are_those_that_ncu_counted(stem):
    page = Chapter(stem)
    for variant in page.kernel.variants:
        done = page.run(Problem(256, 256, 256), variant.name, backend="emulator", arch="sm_90a")
        counted = page.version.metrics(256, variant.name)
        for key, value in machine_counts(page.version, done.launch.trace, variant.name).items():
            assert value == counted[key], (variant.name, key)


def test_a_compiler_s_fence_changes_no_instruction_of_12():
    kernel = CATALOGUE["12_wmma_pipeline"]
    variant = kernel.variant("products_first")
    text = kernel.file(variant).read_text(encoding="utf-8")
    assert text.count("        __syncwarp();") == 2

    def opcodes(fence):
        source = text.replace("        __syncwarp();", f"        {fence};")
        found = compile_kernel(kernel, variant, "sm_90a", source=source).inner_loop
        return [i.opcode for i in found]

    without = opcodes("")
    assert opcodes('asm volatile("" ::: "memory")') == without != opcodes("__syncwarp()")
