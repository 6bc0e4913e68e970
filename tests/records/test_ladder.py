"""The ladder's pass: one figure of cuBLAS per problem, versions that rise, side steps."""

import statistics

from msgspec import structs

from lib.kernels.catalogue import KERNELS
from lib.measure import ladder as pass_
from lib.measure.ladder import SIZE, SIZES, Progress
from lib.measure.peers import PEERS
from lib.records import ladder, scoreboard
from lib.records.schema import Chunk

RECORD = ladder.load()
STEPS = {step.kernel.stem: step for step in ladder.steps(RECORD)}


def test_all_of_it_is_of_one_board():
    assert len({chunk.board for chunk in RECORD.chunks.values()}) == 1
    boards = {row.board for entry in RECORD.entries.values() for row in (*entry.bench, *entry.late)}
    boards |= {row.board for peer in RECORD.peers.values() for row in peer.rows}
    assert boards == {chunk.board for chunk in RECORD.chunks.values()}


def test_cublas_has_one_figure_per_problem_the_median_of_all_its_turns():
    figures = ladder.figures(RECORD)
    turns = [row.cublas_tflops for entry in RECORD.entries.values()
             for row in (*entry.bench, *entry.late)
             if (row.M, row.dtype, row.out) == (SIZE, "float32", "float32")]
    turns += [row.cublas_tflops for row in RECORD.peers["siboehm"].rows if row.M == SIZE]
    figure = figures[SIZE, "float32", "float32", "row", ""]
    assert figure.tflops == statistics.median(turns)
    assert all(figure.spread <= ladder.STEADY for figure in figures.values())
    assert len({step.figure for step in STEPS.values() if step.kernel.group == "FP32"}) == 1


def test_the_ladder_only_rises_but_for_side_steps():
    for group in ("FP32", "FP16"):
        climbing = [step for step in STEPS.values() if step.kernel.group == group and not step.side
                 and step.row.out == "float32"]
        speeds = [step.row.tflops for step in climbing]
        assert speeds == sorted(speeds) and len(speeds) > 8
    assert STEPS["12_wmma_pipeline"].side and STEPS["22_few_tiles"].elsewhere


def test_what_gains_less_than_the_noise_is_a_side_step():
    before = STEPS["08_warp_tile"]
    for gain, side in ((0.002, True), (0.02, False), (-0.1, True)):
        row = structs.replace(before.row, tflops=before.row.tflops * (1 + gain), spread=0.005)
        step = ladder.Step(KERNELS["09_fp32_limit"], before.variant, row, before.figure, before,
                           False)
        assert step.side == side
        assert (scoreboard.gain(step) == "side step") == side


def test_an_entry_of_other_source_is_stale():
    name = "01_naive/coalesced"
    other = structs.replace(RECORD.entries[name], hash="0" * 16)
    changed = structs.replace(RECORD, entries={**RECORD.entries, name: other})
    before, after = ({step.kernel.stem for step in ladder.steps(record) if step.stale}
                     for record in (RECORD, changed))
    assert after - before == {"01_naive"}
    # What is printed of none of them: made for other shapes.
    assert all(step.elsewhere for step in STEPS.values() if step.stale)


def test_every_version_s_fastest_kernel_takes_part_and_both_sides_of_its_pairs():
    entries = {entry.name: entry for entry in pass_.entries()}
    assert {name for name, entry in entries.items() if not entry.side} == {
        f"{stem}/{kernel.fastest.name}" for stem, kernel in KERNELS.items()
        if kernel.min_arch != "sm_100a"}
    for entry in entries.values():
        for pair in entry.kernel.pairs if not entry.side else ():
            if entry.name in (pair.first, pair.second):
                other = {pair.first, pair.second} - {entry.name}
                assert all(name in entries or KERNELS[name.partition("/")[0]].variant(
                    name.partition("/")[2]).problem(SIZE, SIZE, SIZE) != entry.problem(SIZE)
                    for name in other)
    sizes = {size: sum(len(players) for problem, players in pass_._contests(
        [*entries.values()]) if problem.M == size) for size in SIZES}
    assert sizes[SIZE] == len(entries) and sizes[2048] == sizes[8192] < sizes[SIZE]


def test_a_public_kernel_takes_part_in_each_type():
    met = {(name, problem.dtype) for problem, _ in pass_._contests(pass_.entries())
           for name in pass_.PUBLIC if pass_.solves(PEERS[name], problem)}
    assert {name for name, _ in met} == set(pass_.PUBLIC)
    assert {dtype for _, dtype in met} == {"float32", "float16", "bfloat16", "float8_e4m3fn"}


def test_a_pass_is_taken_up_on_its_own_board_and_commit_alone(tmp_path):
    file, where = tmp_path / "pass.jsonl", next(iter(RECORD.chunks.values()))
    assert isinstance(where, Chunk)
    entry = RECORD.entries["20_persistent/staged"]
    begun, name = Progress(file, where), "20_persistent/staged"
    begun.keep("chunk", where, "one")
    begun.keep("row", entry.bench[1], name, "4096x4096x4096")
    begun.keep("late", entry.late[1], name, "4096x4096x4096")
    begun.keep("counters", entry.counters[0], name)
    whole = file.read_bytes()
    file.write_bytes(whole + b'["row","20_per')  # ended in the middle of a line
    again = Progress(file, where)
    assert file.read_bytes() == whole and again.found == begun.found
    assert again.of("row", name) == entry.bench[1:2] and not again.of("row", "01_naive/swapped")
    for changed in ({"board": "f" * 16}, {"revision": "0123456789ab"}):
        begun = Progress(file, structs.replace(where, **changed))
        assert not any(begun.found.values())
