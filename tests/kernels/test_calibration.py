"""The emulator against the calibration set recorded on a GPU: every pattern, every count."""

import shutil
from collections import Counter

import numpy as np
import pytest

from lib import ptx
from lib.compiler import merging as ties
from lib.gpus import ARCHITECTURES
from lib.measure import calibration
from lib.measure.patterns import MEMORY_BYTES, TILE_BYTES, patterns
from lib.ptx.count import banks
from lib.records import store as records
from lib.records.schema import CalibrationRecord
from lib.run import device

RECORD = records.load(CalibrationRecord, "H100")
PATTERNS = {pattern.name: pattern for pattern in patterns()}
WANTED = "python -m lib record calibration"

# What the emulator calls each recorded count.
PTX_COUNTERS = {
    "memory_l1_wavefronts_shared": "shared_wavefronts",
    "memory_l1_wavefronts_shared_ideal": "shared_wavefronts_ideal",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": "global_load_requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "global_load_sectors",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": "global_store_requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "global_store_sectors",
    "smsp__sass_inst_executed_op_shared_ld.sum": "shared_load_instructions",
    "smsp__sass_inst_executed_op_shared_st.sum": "shared_store_instructions",
    "smsp__sass_inst_executed_op_ldsm.sum": "ldmatrix_instructions",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum": "ldmatrix_wavefronts",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_stsm.sum": "stmatrix_wavefronts",
    "smsp__sass_inst_executed_op_ldgsts.sum": "copy_instructions",
    "smsp__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts.sum": "copy_requests",
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum": "copy_sectors",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum": "copy_wavefronts",
}



def recorded(name):
    """What a GPU counted for a pattern, by ncu's names; the test is skipped if nothing was."""
    if RECORD is None or name not in RECORD.patterns:
        pytest.skip(f"{name} was not recorded on an H100 yet: {WANTED}")
    stored = RECORD.patterns[name]
    wanted = PATTERNS[name].recorded(stored.counts)
    assert stored == wanted, f"recorded as another pattern: {WANTED}"
    return dict(zip(RECORD.metrics, stored.counts, strict=True))


def test_the_record_is_of_these_kernels():
    if RECORD is None:
        pytest.skip(f"the calibration set was not recorded on an H100 yet: {WANTED}")
    assert RECORD.hash == records.calibration_hash(), f"recorded with other kernels: {WANTED}"
    assert RECORD.patterns.keys() <= PATTERNS.keys()
    assert RECORD.metrics and PTX_COUNTERS.keys() <= set(RECORD.metrics)


def emulate(pattern, arch):
    """Run a pattern in the emulator."""
    made = calibration.compiled(pattern, arch)
    module = ptx.Module(made.ptx)
    module.get_global("pattern")[:] = calibration.constants(pattern).view(np.uint8)
    return module.get_function(made.name)(
        calibration.ONE_WARP.grid, calibration.ONE_WARP.block,
        (np.zeros(MEMORY_BYTES, np.uint8), np.zeros(32, np.uint32)), watch=(0, 0))


def agree(pattern, arch, counted):
    """The emulator's counts for a pattern, by ncu's names, are those that a GPU counted."""
    trace = emulate(pattern, arch).trace
    emulated = {**trace.counters(), **trace.matrix_counters()}
    expected = {metric: emulated[ours] for metric, ours in PTX_COUNTERS.items()}
    for kind, operation in (("load", "ld"), ("store", "st")):
        metric = f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{operation}.sum"
        expected[metric] = sum(
            site.wavefronts for site in trace.sites if (site.kind, site.space) == (kind, "shared")
        )
    assert expected == {metric: counted[metric] for metric in expected}, pattern.name


@pytest.mark.parametrize("name", PATTERNS)
def test_the_emulator_counts_what_the_gpu_counted(name):
    agree(PATTERNS[name], RECORD and RECORD.arch, recorded(name))


@pytest.mark.gpu
def test_the_emulator_counts_what_this_gpu_counts():
    if shutil.which("ncu") is None:
        pytest.skip("ncu is not installed")
    found = calibration.measure()
    for name, row in found.patterns.items():
        counted = dict(zip(found.metrics, row.counts, strict=True))
        agree(PATTERNS[name], device.arch(), counted)


LOADS = [name for name in PATTERNS if name.startswith("load<SHARED")]


@pytest.mark.parametrize("name", LOADS)
def test_the_documented_rule_is_that_of_the_l1_s_own_counter(name):
    """Nsight Compute's counter of the source leaves it where pairs of lanes share and conflict."""
    counted, pattern = recorded(name), PATTERNS[name]
    width = int(pattern.access.rstrip(">").split(", ")[1])
    found = banks.served(pattern.offsets[None], pattern.active[None], width)
    assert found[0] == counted["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"]


def test_the_set_is_wide_enough_and_within_bounds():
    kinds = Counter(pattern.access.partition("<")[0] for pattern in PATTERNS.values())
    assert len(PATTERNS) > 300 and min(kinds.values()) >= 2
    for pattern in PATTERNS.values():
        limit = MEMORY_BYTES if "GLOBAL" in pattern.access else TILE_BYTES
        assert pattern.offsets.min() >= 0 and pattern.offsets.max() + 16 <= limit, pattern.name
        assert pattern.sources.min() >= 0 and pattern.sources.max() + 16 <= MEMORY_BYTES
        assert pattern.offsets.shape == pattern.active.shape == pattern.sources.shape == (32,)
    text = calibration.SOURCE.read_text()
    assert f"TILE = {TILE_BYTES};" in text


FIRST = {pattern.access: pattern for pattern in reversed(PATTERNS.values())}


def on_each_architecture():
    """Each access on its architectures; of these one, in turn, and the others marked slow."""
    for place, (access, pattern) in enumerate(FIRST.items()):
        own = [arch for arch in ARCHITECTURES if arch >= pattern.min_arch]
        for arch in own:
            taken = arch == own[place % len(own)]
            yield pytest.param(access, arch, marks=() if taken else pytest.mark.slow)


@pytest.mark.parametrize("access, arch", [*on_each_architecture()])
def test_each_machine_access_runs_once_in_the_emulator(access, arch):
    """One warp runs straight through: its requests are the listing's instructions, wmma's too."""
    pattern = FIRST[access]
    launch = emulate(pattern, arch)
    listing = Counter(
        i.base for i in ties.machine_accesses(calibration.compiled(pattern, arch).sass)
    )
    requests = Counter()
    fill = 1 if "STS" in listing and not access.startswith("store") else 0
    for site in launch.trace.sites:
        machine = {
            ("load", "shared"): "LDS", ("store", "shared"): "STS", ("load", "global"): "LDG",
            ("store", "global"): "STG", ("ldmatrix", "shared"): "LDSM",
            ("stmatrix", "shared"): "STSM", ("copy", "shared"): "LDGSTS",
        }.get((site.kind, site.space))
        if machine:
            requests[machine] += site.requests
    if fill:  # the loop that writes the tile before it is read
        assert requests["STS"] == TILE_BYTES // 512
        requests["STS"] = fill
    assert requests == listing


def test_the_bytes_of_a_pattern_are_those_that_the_kernel_reads():
    pattern = PATTERNS["load<SHARED, 4>: random, half the lanes"]
    words = calibration.constants(pattern)
    assert np.array_equal(words[:32], pattern.offsets) and not words[32:64].any()
    assert [words[64] >> lane & 1 for lane in range(32)] == pattern.active.tolist()
