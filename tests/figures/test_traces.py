"""Panels from emulated launches of the book's kernels."""

import pytest

from lib import kernels, runner
from lib.figures import banks, coalescing, traces
from lib.problem import Problem


def launch(name, variant=None, watch=(1, 3)):
    kernel = kernels.find(name)
    chosen = next((v for v in kernel.variants if v.name == variant), None)
    return runner.run(
        kernel, Problem(64, 64, 64), variant=chosen, backend="emulator", arch="sm_75", watch=watch
    ).launch


def test_naive_has_a_load_of_each_operand_and_a_store():
    panels = traces.coalescing_panels(launch("01_naive", "coalesced"))
    assert [(p.array, p.kind, len(p.found.sectors)) for p in panels] == [
        ("A", "load", 1), ("B", "load", 4), ("C", "store", 4),
    ]
    assert [p.label for p in panels] == ["A[row * K + k]", "B[k * N + col]", "C[row * N + col]"]
    assert panels[0].where.startswith("01_naive.cu:")
    swapped = traces.coalescing_panels(launch("01_naive", "swapped"))
    assert [len(p.found.sectors) for p in swapped] == [32, 1, 32]
    fig = coalescing.draw(
        [coalescing.Group("coalesced", panels), coalescing.Group("swapped", swapped)],
        evidence="emulated: sm_75 PTX",
    )
    assert fig.finding == "Swapped: 33 sectors to load what coalesced loads with 5"


def test_shared_tile_has_no_conflict():
    emulated = launch("02_shared_tile")
    panels = traces.bank_panels(emulated, {"As": range(4096), "Bs": range(4096, 8192)})
    assert {(p.label.split("[")[0], p.kind) for p in panels} == {
        ("As", "store"), ("Bs", "store"), ("As", "load"), ("Bs", "load"),
    }
    assert [p.kind for p in panels] == ["store", "store", "load", "load"]
    fig = banks.draw(panels, evidence="emulated: sm_75 PTX")
    assert fig.finding.startswith("No bank conflict")
    with pytest.raises(ValueError, match="none of As"):
        traces.bank_panels(emulated, {"As": range(4096)})


def test_later_iterations_can_be_shown():
    emulated = launch("02_shared_tile")
    here, later = (traces.coalescing_panels(emulated, first=i)[0].found.sectors for i in (0, 1))
    assert later[0] - here[0] == 128  # the next tile of A: 32 floats on


def test_a_launch_that_watched_nobody_is_an_error():
    with pytest.raises(ValueError, match="watch"):
        traces.coalescing_panels(launch("01_naive", "coalesced", watch=None))
