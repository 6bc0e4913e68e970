"""What the asynchronous chapters show: counts of the trace, and tables made from a record."""


import pytest
from msgspec import structs

from lib import chapter
from lib.chapter import Chapter
from lib.kernels.shapes import LAYERS
from lib.records import store as records
from lib.records.schema import Trials
from lib.records.store import HOT_ROUNDS
from lib.show.shapes import trials
from tests import built
from tests.pages import cells


def recorded(stem, speed=lambda name, shape: 600.0):
    """A page with a made-up record: every variant on cubes, the first one on layers too."""
    page = Chapter(stem)
    variants = {}
    for variant in page.kernel.variants:
        shapes = [(n, n, n) for n in (1024, 2048, 4096)]
        if variant is page.kernel.variants[0]:
            shapes = dict.fromkeys((*shapes, *LAYERS))  # one layer is a cube
        variants[variant.name] = {**built.code(), "hash": "0" * 16, "launch": "0" * 16, "bench": [
            {**built.plain(built.row()), "M": M, "N": N, "K": K, "rounds": HOT_ROUNDS,
             "tflops": speed(variant.name, (M, N, K)), "seconds": 1e-3,
             "cublas_tflops": 500.0, "ratio": speed(variant.name, (M, N, K)) / 500.0,
             "spread": 0.01, "instantiation": page.kernel.expression(variant),
             "temperature_c": None}
            for M, N, K in shapes
        ], "counters": [
            {"M": n, "N": n, "K": n, "metrics": {"l2_bytes": 1e9, "dram_read_bytes": 2e8}}
            for n in (2048, 4096)
        ]}
    head = built.head(stem) | {"date": "2026-11-21"}
    head["gpu"]["name"] = "NVIDIA H100"
    page.version.reader.__dict__["record"] = built.parsed(
        head | {"variants": variants, "chunks": built.chunks()})
    return page


def changed(page, variant, place=slice(None), **fields):
    """Let rows of a made-up record say otherwise: what a field's function gives of each."""
    rows = list(page.version.record.variants[variant].bench)
    rows[place] = [structs.replace(row, **{name: of(row) for name, of in fields.items()})
                   for row in rows[place]]
    built.let_bench(page.version, variant, rows)


def test_what_is_missing_is_said_in_the_cell(shown, monkeypatch):
    monkeypatch.setattr(records, "load", lambda *_, **__: None)
    Chapter("17_wgmma").speed()
    assert "python -m lib record 17_wgmma" in shown[0] and "Not recorded yet" in shown[0]
    with pytest.raises(ValueError), chapter.once_recorded():
        raise ValueError("other errors are not swallowed")


def test_trials_stand_beside_the_rule_s_choice(shown):
    page = recorded("hopper")
    trials(page.version)
    assert "has no trials: python -m lib record hopper" in shown[-1]
    kernel = page.kernel
    rows = page.version.record.variants["tuned"].bench
    other = kernel.expression(kernel.variant("21_clusters/ping_pong"))
    changed(page, "tuned", trials=lambda row: Trials(
        of=8, ratio=2 * row.ratio, instantiation=other,
        seconds=1e-3, spread=0.01, tflops=1.0, cublas_seconds=1e-3, cublas_spread=0.01,
        cublas_tflops=1.0))
    trials(page.version)
    found = list(cells(shown[-1]))
    assert len(found) == len(rows) + 1  # the means behind the shapes
    assert [one.partition(" ± ")[0] for one in found[0][1:3]] == ["1.200", "**2.400**"]
    assert found[0][3].endswith("<br>21_clusters/ping_pong")
    assert found[-1][:3] == [
        f"`tuned`, {len(rows)} shapes: geometric mean; least", "1.200; 1.200",
        "**2.400; 2.400**"]
