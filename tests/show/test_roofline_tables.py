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
from tests import built

RECORD = built.parsed({
    **built.head("10_wmma"), "date": "2026-11-21", "chunks": built.chunks(),
    "variants": {
        name: {
            **built.code(), "hash": "0" * 16, "launch": "0" * 16,
            "bench": [{**built.plain(built.row(2048)), "tflops": speed, "ratio": speed / 500}],
            "counters": [{"M": 2048, "N": 2048, "K": 2048, "metrics": {
                "l1_load_bytes": 4.29e9, "l2_bytes": 1.5e9, "dram_read_bytes": 0.02e9,
                "shared_wavefronts": 2048**3 / 512, "issue_active_percent": 31.4,
                "warps_active_percent": 48.6, "stall_long_scoreboard": 12.3,
                "stall_short_scoreboard": 0.4, "stall_mio_throttle": 0.0,
                "stall_lg_throttle": 1.0, "stall_barrier": 0.0, "stall_math_pipe_throttle": 0.1,
            }}],
        }
        for name, speed in (("one_fragment", 40.0), ("four_fragments", 70.0))
    },
})


@pytest.fixture
def recorded(monkeypatch):
    monkeypatch.setattr(records, "load", lambda *_: RECORD)


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
