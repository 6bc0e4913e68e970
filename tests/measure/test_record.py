"""What is measured for records, in which order, and that a run goes on with what the files lack.

Measuring is made up, and the clock is.
"""

import datetime
import math
import os
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import convert, structs

from lib.__main__ import main
from lib.kernels.catalogue import KERNELS, named
from lib.kernels.shapes import timed
from lib.measure import bench, cublas, ladder, record, tasks
from lib.measure.energy import sustained
from lib.measure.probe import Interval, Sample
from lib.problem.scales import Operands, numbers
from lib.records import schema
from lib.records import store as records
from lib.records.launched import launch_hash
from lib.records.schema import Counters, KernelRecord, MachineRecord, Pair, Variant
from tests import built, played
from tests.built import BOARD, CHUNK, GPU, NAIVE
from tests.tables import cases


def every_task(*names):
    return tasks.tasks(names, lambda kernel, variant: True)


def test_everything_is_measured_once():
    found = every_task()
    names = [task.name for task in found]
    assert len(names) == len(set(names))
    rows = [(task.stem, variant, task.shape) for task in found if task.kind == tasks.BENCH
            for variant in task.variants if task.stem in KERNELS]
    assert sorted(rows) == sorted(
        (kernel.stem, variant.name, shape) for kernel in KERNELS.values()
        for variant in kernel.measured for shape in timed(kernel, variant))
    for kind in (tasks.COUNTERS, tasks.TIMELINE):
        assert {one.stem for one in found if one.kind == kind} >= set(KERNELS)
    assert {one.kind for one in found} == {
        tasks.BENCH, tasks.COUNTERS, tasks.TIMELINE, *tasks.OTHERS} - {schema.CUBLAS}


def test_what_a_page_shows_first_comes_first():
    found = every_task()
    assert [task.kind for task in found[:2]] == [schema.MACHINE, schema.SEARCH]
    place = {}
    for index, task in enumerate(found):
        key = (task.kind, task.shape) if task.stem in KERNELS else task.stem
        place.setdefault(key, index)
    cubes = [place[tasks.BENCH, (size,) * 3] for size in (4096, 2048, 8192, 1024, 512)]
    assert cubes == sorted(cubes)
    assert place[tasks.BENCH, (4096,) * 3] < place[tasks.COUNTERS, None] < cubes[1]
    # Every version has its first row before any has its second.
    first = [task.stem for task in found if task.shape == (4096,) * 3 and task.stem in KERNELS]
    assert first == list(KERNELS)
    # What is left out first: shapes that are no cubes, then the smallest cubes.
    assert found[-1].shape and len(set(found[-1].shape)) > 1
    assert place[tasks.BENCH, (1000,) * 3] > max(cubes)


def test_which_versions_are_looked_at_thoroughly():
    def at(size, depth):
        return {stem for stem, kernel in KERNELS.items()
                if tasks.depth(kernel, (size,) * 3) == depth}

    hopper = {stem for stem, kernel in KERNELS.items() if kernel.min_arch == "sm_90a"}
    blackwell = {stem for stem, kernel in KERNELS.items() if kernel.min_arch == "sm_100a"}
    last = {"09_fp32_limit", "15_turing_limit", "16_cp_async", "26_fp8",
            max(hopper), max(blackwell)}
    assert at(4096, tasks.THOROUGH) == last | hopper
    assert at(4096, tasks.JOULES) == set(KERNELS) - last - hopper
    assert at(8192, tasks.THOROUGH) == last and not at(8192, tasks.JOULES)
    assert at(2048, "") == set(KERNELS)
    assert tasks.depth(KERNELS["09_fp32_limit"], (4096, 33, 4096)) == ""


def test_an_older_gpu_measures_what_it_runs():
    found = tasks.tasks(list(KERNELS), lambda kernel, variant: kernel.min_arch == "sm_75")
    assert {"15_turing_limit"} <= {task.stem for task in found}
    assert "16_cp_async" not in {task.stem for task in found}


def test_one_variant_is_measured_beside_its_pair():
    found = every_task("09_fp32_limit/turning")
    benches = [task for task in found if task.kind == tasks.BENCH]
    assert {task.variants for task in found} == {("turning",)}
    names = [v.name for v in KERNELS["09_fp32_limit"].variants]
    assert {task.pair for task in benches} == {names[names.index("turning") - 1]}
    assert {task.kind for task in found} == {tasks.BENCH, tasks.COUNTERS, tasks.TIMELINE}
    naive = KERNELS["01_naive"]
    assert tasks.pair(naive, naive.variants[0]) is naive.variants[1]
    clusters = KERNELS["21_clusters"]  # its pair, and not the one before it
    assert tasks.pair(clusters, clusters.variant("unclustered")) is clusters.variant("wide")
    unpaired = clusters.variant("bf16_column")
    place = clusters.measured.index(unpaired)
    assert tasks.pair(clusters, unpaired) is clusters.measured[place - 1]


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """An H100 that takes as long as was expected; `asked` says what it was asked for."""
    # Its chunks begin now, and no record is older than its chunks.
    today = datetime.date.today().isoformat()
    head = structs.replace(built.parsed(built.record()), date=today)
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    monkeypatch.setattr(record.device, "cupy", lambda: None)
    monkeypatch.setattr(record.device, "name", lambda: GPU["name"])
    monkeypatch.setattr(record.device, "runs", lambda kernel, variant: True)
    monkeypatch.setattr(record.sensors, "nvml", lambda: None)
    monkeypatch.setattr(record.sensors, "board", lambda: BOARD)
    monkeypatch.setattr(record.sensors, "driver", lambda: "580.1")
    monkeypatch.setattr(record.revision, "revision", lambda: "abc")
    monkeypatch.setattr(record, "provenance", lambda stem: structs.replace(
        head, kernel=stem, revision=record.revision.revision()))
    asked, clock = [], SimpleNamespace(time=0.0)
    monkeypatch.setattr(record.time, "monotonic", lambda: clock.time)

    def measure(task, chunk, stored):
        asked.append(task.name)
        clock.time += 1.0
        kernel = KERNELS.get(task.stem)
        if task.kind == schema.MACHINE:
            machine = built.machine()
            for roof in machine["roofs"].values():
                roof["clock"] = built.clock(1.0, 1900.0)
            return built.parsed(machine).roofs
        if task.kind == tasks.COUNTERS:
            counters = (Counters(M=256, N=256, K=256, metrics={"cycles": 1000}),)
            return {name: record.Counted(counters=counters) for name in task.variants}
        if task.kind == tasks.TIMELINE:
            return {variant.name: convert(built.timeline(kernel.hash(variant, marks=True)),
                                          schema.Timeline)
                    for variant in map(kernel.variant, task.variants)}
        row = timed_as(task.shape, chunk, deep=bool(task.depth))
        pair = Pair(variant=task.pair, ratio=row.ratio, seconds=row.seconds, spread=row.spread,
                    tflops=row.tflops, cublas_seconds=row.cublas_seconds) if task.pair else None
        return {variant.name: Variant(
            bench=(structs.replace(
                row, pair=pair, dtype=variant.dtype, out=variant.out, b_layout=variant.b_layout,
                instantiation=kernel.expression(variant)),),
            counters=(), hash=kernel.hash(variant),
            launch=launch_hash(kernel, variant), **built.code(),
        ) for variant in map(kernel.variant, task.variants)}

    quick = tasks.quick
    monkeypatch.setattr(tasks, "quick", lambda runs: quick(runs)[:9])
    monkeypatch.setattr(record, "measure", measure)
    return SimpleNamespace(asked=asked, folder=tmp_path / "h100")


def timed_as(shape, chunk, deep=False):
    """A row whose times give 5 TFLOP/s, cuBLAS's 10; with a sustained run if it is `deep`."""
    flops = 2.0 * math.prod(shape)
    every = built.row(1, flops / 5e12, flops / 10e12, flops / 10e12)
    row = built.plain(every) | ({"sustained": every["sustained"]} if deep else {})
    row = built.of_shape(row | dict(zip("MNK", shape, strict=True)), flops / 2)
    return built.parsed_row(row | {"chunk": chunk})


def test_a_run_that_is_stopped_says_that_nothing_is_lost(gpu, monkeypatch, capsys):
    measure = record.measure

    def stopped(task, chunk, stored):
        if len(gpu.asked) == 2:
            raise KeyboardInterrupt
        return measure(task, chunk, stored)

    monkeypatch.setattr(record, "measure", stopped)
    assert main(["record", "01_naive"]) == 130
    said = capsys.readouterr()
    assert said.err.splitlines()[-1].startswith("stopped; what was measured is in the records")
    assert records.load(KernelRecord, "H100", "01_naive").variants["coalesced"].bench
    monkeypatch.setattr(record, "measure", measure)
    assert main(["record", "01_naive"]) == 0
    assert len(gpu.asked) == len(set(gpu.asked)) == len(every_task("01_naive"))
    assert str(gpu.folder / "01_naive.json") in capsys.readouterr().out


def test_each_run_goes_on_where_time_ended_the_one_before(gpu):
    first = record.record(["01_naive", "machine"], max_seconds=2.5)
    assert [name.split()[0] for name in gpu.asked] == ["machine", "bench", "counters"]
    assert {path.stem for path in first.files} == {"01_naive", "machine"} and first.left
    runs = 1
    while record.record(["01_naive", "machine"], max_seconds=2.5).left:
        runs += 1
    assert runs > 2 and len(gpu.asked) == len(set(gpu.asked))
    made = records.load(KernelRecord, "H100", "01_naive")
    assert set(made.variants) == {v.name for v in NAIVE.variants}
    rows = made.variants["coalesced"].bench
    shapes = [row.shape for row in rows]
    assert shapes[:5] == [(size,) * 3 for size in (512, 1024, 2048, 4096, 8192)]
    assert sorted(shapes) == sorted(timed(NAIVE, NAIVE.variants[0]))
    assert made.variants["swapped"].counters and made.variants["swapped"].timeline
    assert {row.chunk for row in rows} <= set(made.chunks)
    assert {chunk.board for chunk in made.chunks.values()} == {BOARD}
    assert records.load(MachineRecord, "H100").roofs
    assert {row.rival for row in records.rows()} == {"best"}


def test_what_is_missing_is_said_without_a_gpu(gpu, monkeypatch, capsys):
    finished("01_naive")
    gpu.asked.clear()
    assert main(["record", "01_naive", "--plan", "--gpu", "H100"]) == 0
    assert capsys.readouterr().out == "H100: nothing is missing or stale\n"
    monkeypatch.setattr(record.device, "available", lambda: False)
    assert main(["record", "01_naive", "machine", "--plan", "--gpu", "H200"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "machine" and lines[1].startswith("bench 01_naive 4096x4096x4096")
    assert lines[-1].startswith(f"H200: {len(every_task('01_naive', 'machine'))} tasks")
    assert main(["record", "--plan"]) == 2 and not gpu.asked
    assert "--gpu H200" in capsys.readouterr().err


def finished(*names, **options):
    """All of some names, measured."""
    done = record.record(list(names), max_seconds=1e6, **options)
    assert not done.left
    return done


def test_what_a_record_has_is_not_measured_again(gpu, monkeypatch, capsys):
    finished("01_naive")
    before, whole = list(gpu.asked), records.load(KernelRecord, "H100", "01_naive")
    gpu.asked.clear()
    assert main(["record", "01_naive"]) == 0 and gpu.asked == []
    assert "nothing is missing or stale; --whole" in capsys.readouterr().out
    finished("01_naive", whole=True)  # all of it is of this commit
    assert gpu.asked == []
    monkeypatch.setattr(record.revision, "revision", lambda: "abd")
    assert record.record(["01_naive"], max_seconds=2.5, whole=True).left
    assert record.usable("01_naive", "H100", whole=True).variants
    finished("01_naive", whole=True)
    assert sorted(gpu.asked) == sorted(before)
    assert records.load(KernelRecord, "H100", "01_naive").variants.keys() == whole.variants.keys()


@pytest.mark.parametrize("lost, again", [
    ("counters", {"counters"}), ("timeline", {"timeline"}), ("row", {"bench 2048"}),
    ("clock", {"bench 2048"}), ("sustained", {"bench 4096"}), ("chunk", {"bench 2048"}),
    ("source", {"everything"}),
])
def test_only_what_is_missing_is_measured_and_the_rest_stays(gpu, lost, again):
    """Of one variant of 01; a task is of all variants, which are compared."""
    finished("01_naive")
    every = set(gpu.asked)
    stored = records.load(KernelRecord, "H100", "01_naive")
    one = stored.variants["coalesced"]
    chunks_ = dict(stored.chunks)
    (name,) = chunks_
    other = "20261101T000000-" + BOARD[:4]
    chunks_[other] = structs.replace(
        chunks_[name], started="2026-11-01T00:00:00Z")

    def spoilt(row):
        if row.shape == (4096,) * 3 and lost == "sustained":
            return structs.replace(row, sustained=None)
        if row.shape != (2048,) * 3:
            return row
        changes = {"clock": {"cublas_clock": None}, "chunk": {"chunk": other}}
        return structs.replace(row, **changes.get(lost, {}))

    bench_ = tuple(spoilt(row) for row in one.bench
                   if lost != "row" or row.shape != (2048,) * 3)
    one = structs.replace(
        one, bench=bench_, counters=() if lost == "counters" else one.counters,
        timeline=None if lost == "timeline" else one.timeline,
        hash="0" * 16 if lost == "source" else one.hash)
    used = {row.chunk for v in [one, stored.variants["swapped"]] for row in v.bench}
    records.write(structs.replace(
        stored, variants=stored.variants | {"coalesced": one},
        chunks={name: chunk for name, chunk in chunks_.items() if name in used}))
    gpu.asked.clear()
    finished("01_naive")
    wanted = {name for name in every if "everything" in again or any(
        name.startswith(f"{kind} 01_naive {size and 'x'.join([size] * 3)}")
        for kind, _, size in (what.partition(" ") for what in again))}
    assert set(gpu.asked) == wanted and len(gpu.asked) == len(wanted)
    after = records.load(KernelRecord, "H100", "01_naive")
    for name, variant in after.variants.items():
        assert variant.counters and variant.timeline
        assert [row.shape for row in variant.bench] == [
            row.shape for row in stored.variants[name].bench]
    rows = [row for variant in after.variants.values() for row in variant.bench]
    assert {row.chunk for row in rows} == set(after.chunks)


def test_a_draft_lies_apart_and_searches_for_nothing(gpu, monkeypatch, tmp_path):
    """A search decides what is launched of the kernels that pages show."""
    monkeypatch.setattr(record, "DRAFTS", tmp_path / "drafts")
    monkeypatch.setattr(record.revision, "revision", lambda: "abc-dirty")
    names = ["machine", "search", "01_naive"]
    record.record(names, max_seconds=3.0, draft=True)
    done = record.record(names, max_seconds=1e6, draft=True)
    assert len(gpu.asked) == len(set(gpu.asked)) and not done.left
    assert {file.parent for file in done.files} == {tmp_path / "drafts" / "h100"}
    assert "search" not in gpu.asked and not gpu.folder.exists()
    assert list(records.every()) == []


def test_a_second_gpu_is_recorded_on_the_headline_sizes(gpu):
    asked = ["01_naive", "08_warp_tile"]
    record.record(asked, max_seconds=1e-3, headline=True)
    while record.record(asked, max_seconds=3.0, headline=True).left:
        pass
    assert {name.split()[0] for name in gpu.asked} == {tasks.BENCH}
    assert {name.split()[2] for name in gpu.asked} == {"4096x4096x4096", "8192x8192x8192"}
    for stem in asked:
        made = records.load(KernelRecord, "H100", stem)
        assert made.variants.keys() == {v.name for v in KERNELS[stem].variants}
        shapes = [row.shape for row in
                  made.variants[KERNELS[stem].variants[0].name].bench]
        assert shapes == [(4096,) * 3, (8192,) * 3]


def test_cublas_by_itself_is_timed_on_the_headline_sizes_too():
    found = tasks.tasks(["cublas"], lambda kernel, variant: True, headline=True)
    assert {task.shape for task in found} == {(4096,) * 3, (8192,) * 3}
    assert {task.variants for task in found} == {(name,) for name in cublas.PROBLEMS}


def test_the_headline_sizes_of_nothing_are_refused(gpu):
    with pytest.raises(ValueError, match="headline sizes are of versions and cublas"):
        record.record(["machine"], headline=True)


def test_a_variant_is_added_to_its_record_with_its_pair_beside_it(gpu):
    finished("01_naive")
    before = records.load(KernelRecord, "H100", "01_naive")
    gpu.asked.clear()
    record.record(["01_naive/swapped"], max_seconds=2.5)
    finished("01_naive/swapped")
    assert len(gpu.asked) == len(set(gpu.asked))
    after = records.load(KernelRecord, "H100", "01_naive")
    assert all("swapped" in name and "coalesced" not in name for name in gpu.asked)
    assert after.variants["coalesced"] == before.variants["coalesced"]
    row = after.variants["swapped"].bench[0]
    assert row.pair.variant == "coalesced" and row.chunk in after.chunks
    assert before.variants["coalesced"].bench[0].chunk in after.chunks


def test_a_variant_is_not_added_to_a_record_that_is_not_there(gpu):
    with pytest.raises(ValueError, match="there is none: python -m lib record 01_naive"):
        record.record(["01_naive/swapped"])
    assert gpu.asked == []


def test_a_reader_s_own_record_is_one_file_beside_the_others(gpu):
    done = record.record_quick(max_seconds=60.0)
    assert [path.name for path in done.files] == ["quick.json"]
    assert os.listdir(gpu.folder) == ["quick.json"]
    rows = records.rows()
    assert {row.kernel for row in rows} <= set(KERNELS) and len(rows) > 5
    assert {row.variant for row in rows if row.kernel == "01_naive"} == {"coalesced"}
    assert not any(row.stale for row in rows)
    # The version's own record, where there is one, is the better one.
    built.write(built.record(rows=[built.by_default(built.row())]))
    naive = [row for row in records.rows() if row.kernel == "01_naive"]
    assert {row.rival for row in naive} == {"default"}


def test_a_gpu_without_a_data_sheet_has_a_record_too(gpu, monkeypatch):
    name = "NVIDIA GeForce RTX 4090"
    head = record.provenance("quick")
    other = structs.replace(head.gpu, key="RTX-4090", name=name)
    monkeypatch.setattr(record.device, "name", lambda: name)
    monkeypatch.setattr(record, "provenance",
                        lambda stem: structs.replace(head, kernel=stem, gpu=other))
    (file,) = record.record_quick(max_seconds=60.0).files
    assert file.parent.name == "rtx-4090"
    assert {row.gpu for row in records.rows()} == {"RTX-4090"}
    assert {row.kernel for row in records.rows()} == {name.split()[1] for name in gpu.asked}


def test_a_record_that_can_t_be_made_leaves_the_old_one(gpu, monkeypatch):
    monkeypatch.setattr(record, "measure", lambda *_: None)
    assert record.record(["calibration"], max_seconds=60.0).files == ()
    assert not (gpu.folder / "calibration.json").exists()


def test_a_record_of_one_task_stays_while_it_is_of_today_s_source(monkeypatch):
    stored = records.load(schema.CalibrationRecord, "H100")
    for code, usable in ((records.calibration_hash(), True), ("0" * 16, False)):
        changed = structs.replace(stored, hash=code)
        monkeypatch.setattr(record.records, "load", lambda *_, changed=changed: changed)
        assert (record.usable("calibration", "H100") is changed) == usable


def test_a_refused_record_costs_no_other_one(gpu, monkeypatch):
    write = records.write

    def refusing(made, root=None):
        if made.kernel == "01_naive":
            raise records.RecordError("01_naive: too fast")
        return write(made, root)

    monkeypatch.setattr(records, "write", refusing)
    with pytest.raises(records.RecordError, match="01_naive: too fast"):
        record.record(["01_naive", "machine"], max_seconds=1e6)
    assert records.load(MachineRecord, "H100").roofs


def test_counters_that_can_t_be_read_are_skipped_and_the_record_says_so(monkeypatch, tmp_path,
                                                                        capsys):
    def refuse(*_, **__):
        raise record.counters.ProfilerMissing(record.counters.ncu.FORBIDDEN)

    monkeypatch.setattr(record.counters, "of_variants", refuse)
    task = next(one for one in every_task("01_naive") if one.kind == tasks.COUNTERS)
    made = record.measure(task, "c", None)
    assert set(made) == {"coalesced", "swapped"}
    reason = made["coalesced"].missing
    assert "run as root" in reason and "NVreg_RestrictProfilingToAdminUsers=0" in reason
    assert capsys.readouterr().err.startswith("skipped: the driver lets only administrators")


@cases("""
given            | said
--minutes 0      | a run lasts up to 60
--minutes nan    | a run lasts up to 60
--quick 01_naive | --quick takes no names
machine/fast     | machine has no variants
01_naive/none    | unknown variant 'none'
""")
def test_bad_input_is_one_line(given, said, capsys):
    assert main(["record", *given.split()]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


class Played:
    """A player on the played GPU; its result was looked at before, in the emulator."""

    def __init__(self, call, copies):
        pass

    def once(self):
        return 1e-8

    def take(self, launches):
        return Sample(1e-8, launches, Interval(17.55 * launches, 10.0 * launches, 132), 32.0)

    def keep(self, seconds):
        BOARD_HERE.pass_time(seconds, 650.0)
        return self.take(round(seconds / 1e-8))


BOARD_HERE = played.Board(100.0)


def held(ours, rival, counter, flops):
    """Both kept running on the played board, in its time."""
    return sustained(ours, rival, BOARD_HERE, flops, 2.0, BOARD_HERE.meter, Hot, BOARD_HERE.now,
                     BOARD_HERE.pass_time)


class Hot:
    """Sensors of a GPU that is hot."""

    temperature_c = 60.0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def throttle(self):
        return ("power cap",)


@pytest.fixture
def played_h100(monkeypatch, tmp_path):
    """An H100 whose kernels the emulator runs, with cuBLAS, cublasLt, sensors and ncu made up."""
    def product(problem, A, B, C, *scales):
        assert problem.epilogue is None  # what cuBLAS has is the product alone
        if scales:  # of whole matrices, which are laid out for cublasLt as they are
            A, B = numbers(problem.scaling, Operands(A, B, C, *scales))
        elif problem.b_layout == "column":
            B = B.T
        C[...] = A.astype("float32") @ B.astype("float32")

    def profile(metrics, command, kernel=None, cached=False):
        shapes = command[command.index("--shape") + 1].split("+")
        names = command[1].partition("/")[2].split(",")
        counted = {name: "10" if "pct" in name else "1e13" for name in metrics}
        return [counted | {"Kernel Name": kernel} for _ in names for _ in shapes]

    played.play(played.H100, monkeypatch.setattr)
    monkeypatch.setattr(bench, "copies_of", lambda problem, cp, name: [
        bench.inputs.draw(problem, name, 0, np)] * 2)
    monkeypatch.setattr(bench, "KernelPlayer", Played)
    monkeypatch.setattr(bench, "Sampler", Hot)
    monkeypatch.setattr(bench, "board", lambda: BOARD)
    monkeypatch.setattr(bench, "nvml", lambda: SimpleNamespace(joules=lambda: 1.0))
    monkeypatch.setattr(bench, "sustained", held)
    monkeypatch.setattr(bench.cublas, "gemm", product)
    monkeypatch.setattr(bench.cublaslt, "candidates", lambda problem, *first: [SimpleNamespace(
        gemm=lambda *operands: product(problem, *operands), place=0,
        about=bench.cublaslt.About(66, "128x128", None, None, 1), workspace_bytes=0)])
    for name in ("kernels", "default_kernels"):
        monkeypatch.setattr(bench.cublaslt, name, lambda *_: ("gemm",))
    monkeypatch.setattr(record.counters.ncu, "profile", profile)
    monkeypatch.setattr(record.counters, "asked", lambda: record.counters.ALL)
    monkeypatch.setattr(tasks, "HEADLINE", (32,))


@pytest.mark.parametrize("stem", ["01_naive", "10_wmma", "23_stream_k"])
def test_what_is_really_measured_of_a_version_makes_a_record(stem, played_h100, tmp_path):
    """The whole way, but for the GPU: benchmarks, older code, counters, a timeline, the file."""
    kernel = KERNELS[stem]
    names = tuple(variant.name for variant in kernel.variants[:2])
    head = built.parsed(built.record(stem))
    made = None
    for kind, shape in ((tasks.BENCH, (32, 32, 32)), (tasks.COUNTERS, None),
                        (tasks.TIMELINE, None)):
        task = tasks.Task(kind, stem, names, shape, names[1] if shape else "",
                          tasks.depth(kernel, shape) if shape else "")
        made = record.merged(head, made, task, record.measure(task, CHUNK, made), head.chunks)
    file = records.write(made, tmp_path)
    stored = records.read(file).variants[names[0]]
    (row,) = stored.bench
    assert row.rival.best.tile == "128x128" and row.throttle == ("power cap",)
    assert row.pair.variant == names[1] and row.temperature_c == 60.0
    # Each with its own speed, clock and cycles: burst, and sustained with its power.
    burst, steady = row, row.sustained.own
    for one in (burst, steady, row.pair, row.rival.default, row.sustained.cublas):
        assert one.clock.mhz == pytest.approx(1755.0)
        assert one.clock.cycles == pytest.approx(1755e6 * one.seconds)
    assert row.cublas_clock.sms == 132 and len(burst.clock.series_mhz) == 5
    assert steady.watts == pytest.approx(650.0) and len(steady.clock.series_mhz) == 2
    assert row.joules == (steady.joules, row.sustained.cublas.joules)
    assert len(row.series) == 5
    thorough = tasks.depth(kernel, (32,) * 3) == tasks.THOROUGH
    assert bool(row.turns) == thorough
    if thorough:
        assert [turn.milliseconds for turn in row.turns] == [5, 50, 500]
        assert all(turn.clock and turn.cublas_clock for turn in row.turns)
        assert [one.inputs for one in row.other_inputs] == [
            "normal", "small integers", "zeros"]
    assert set(stored.ptx) == set(kernel.ptx_archs)
    assert [one.M for one in stored.counters][:4] == [256, 1024, 2048, 4096]
    assert stored.timeline.blocks


def test_a_pass_over_products_with_scales_an_epilogue_and_neither_makes_a_ladder(
        played_h100, monkeypatch, tmp_path):
    """The whole way of ``record --ladder``, but for the GPU; what there is isn't measured again."""
    names = ("01_naive/coalesced", "01_naive/swapped", "25_epilogue/bias_gelu", "26_fp8/tensor")
    head = built.parsed(built.record())
    for what, value in (
            ("SIZES", (32, 64)), ("SIZE", 32), ("SHAPE", "32x32x32"), ("DRAFTS", tmp_path),
            ("entries", lambda runs: [ladder.Entry(*named(one), side="swapped" in one)
                                      for one in names]),
            ("chunk_here", lambda: (CHUNK, head.chunks[CHUNK])), ("_libraries", lambda *_: {}),
            ("provenance", lambda stem: structs.replace(head, kernel=stem))):
        monkeypatch.setattr(ladder, what, value)
    monkeypatch.setattr(ladder.counters, "of_several", lambda names, shape: [
        {"cycles": 1000} for _ in names])
    said = []
    file, warnings = ladder.record({}, said.append, tmp_path)
    made = records.read(file)
    assert set(made.entries) == set(names) and not warnings
    assert {name: [row.M for row in entry.bench] for name, entry in made.entries.items()} == {
        name: [32] if "swapped" in name else [32, 64] for name in names}
    for name, entry in made.entries.items():  # 25 and 26 begin while the launch before them ends
        assert bool(entry.late) == (name[:2] in ("25", "26"))
        assert bool(entry.counters) == ("swapped" not in name)
    scaled, fused = (made.entries[name].bench[0] for name in (names[3], names[2]))
    assert (scaled.scaling, scaled.dtype, fused.out) == ("tensor", "float8_e4m3fn", "bfloat16")
    assert fused.other_inputs and fused.sustained and len(fused.turns) == 3
    monkeypatch.setattr(ladder.bench, "Contest", None)
    again, _ = ladder.record({}, said.append, tmp_path)
    assert records.read(again).entries == made.entries


def test_copies_that_come_first_are_timed_by_themselves(played_h100, monkeypatch):
    kernel = KERNELS["24_any_row"]
    packed, taken = kernel.variant("packed"), []

    class Enqueued(Played):
        """Notes which launches a sample is of."""

        def __init__(self, call, copies):
            self.call = call

        def once(self):
            taken.append(getattr(self.call, "__name__", type(self.call).__name__))
            return super().once()

    monkeypatch.setattr(bench, "KernelPlayer", Enqueued)
    row = bench.Contest(packed.problem(33, 57, 75)).row(kernel, packed, samples=5)
    assert row.packing and row.packing.seconds == row.seconds and taken.count("copy_operands") == 1
    taken.clear()
    row = bench.Contest(packed.problem(64, 64, 64)).row(kernel, packed, samples=5)
    assert row.packing is None and "copy_operands" not in taken


def test_launches_that_would_take_long_are_not_profiled():
    task = tasks.Task(tasks.COUNTERS, "01_naive", ("coalesced", "swapped"))
    rows = {name: [built.parsed_row(built.row(*one)) for one in timed] for name, timed in {
        "coalesced": [(512, 1e-3), (4096, 0.02)], "swapped": [(4096, 0.3)]}.items()}
    assert record._by_sizes(task, rows) == {
        (256, 1024, 2048, 4096, 8192): ["coalesced"],  # 8,192 in 0.16 s, 16,384 in 1.3
        (256, 1024, 2048, 4096): ["swapped"],
    }
    assert record._by_sizes(task, {}) == {
        (256, 1024, 2048, 4096, 8192, 16384): ["coalesced", "swapped"]}


def test_what_is_really_measured_of_cublas_makes_a_record(played_h100, tmp_path, monkeypatch):
    def profile(metrics, command, kernel=None):
        shapes = command[command.index("--shape") + 1].split("+")
        launch = {name: "10" if "pct" in name else "1e13" for name in metrics}
        return [launch | {"Kernel Name": name} for _ in shapes
                for name in ("void busy<(int)1>(unsigned long long)", "gemm", "reduce")]

    monkeypatch.setattr(record.counters.ncu, "profile", profile)
    head = structs.replace(built.parsed(built.record()), kernel="cublas")
    made = None
    for kind, shape in ((tasks.BENCH, (32, 32, 32)), (tasks.COUNTERS, None)):
        for name in record.cublas.PROBLEMS:
            task = tasks.Task(kind, "cublas", (name,), shape)
            made = record.merged(head, made, task, record.measure(task, CHUNK, made), head.chunks)
    stored = records.read(records.write(made, tmp_path))
    assert set(stored.variants) == set(record.cublas.PROBLEMS)
    one = stored.variants["fp16_out"]
    assert one.bench[0].ratio == 1.0 and one.counters[0].metrics["cycles"] == 2e13
