"""One figure of every kind, from data like the book's."""


from functools import partial

import numpy as np
import pytest
from matplotlib.text import Text
from msgspec import structs

from lib.gpus import GPUS, data_bytes_per_clock
from lib.records import schema, store
from lib.show import (
    accumulators,
    dots,
    ladder,
    operand,
    overlap,
    pipelines,
    roofline,
    signals,
    tiles,
    timeline,
)
from lib.show import bottleneck as busiest
from lib.show import fragment_maps as fragments
from lib.show import fragments as cards
from lib.show import issue_slots as slots
from lib.show import ldmatrix as matrix_loads
from lib.show import method as sm
from lib.show import occupancy_chart as occupancy
from lib.show.accumulators import InRegisters, InTensorMemory
from lib.show.coalescing import Access
from lib.show.display import collected
from lib.show.issue_slots import Account
from lib.show.ldmatrix import HalfTile
from lib.show.occupancy import occupancy as occupancy_of
from lib.show.operand import Tile
from lib.show.overlap import FORMULAS
from lib.show.overlap import overlap as order_of
from lib.show.roofline import Roofs, points
from lib.show.timeline import Shown
from lib.show.version import Version
from tests import built

RECORDED = "recorded: H100 80GB, 2026-11-21, 2048³"


def words_of(fig):
    """The texts on a figure."""
    return [text.get_text() for text in fig.findobj(Text)]


def strided(stride, first=0, bytes_per_lane=4, lanes=32):
    """The access in which lane x reads element ``first + x * stride`` of an array."""
    lane = np.arange(32)
    return Access((first + lane * stride) * bytes_per_lane, lane < lanes, bytes_per_lane)


def record(warps=8, blocks=2, iterations=6, tile_cycles=900):
    """A timeline record with made-up marks in the order that 02_shared_tile makes them."""
    rng = np.random.default_rng(0)
    found = []
    for block in range(blocks):
        clock = np.full(warps, 700.0 * block) + rng.integers(0, 200, warps)
        marks = [[] for _ in range(warps)]
        for _ in range(iterations):
            for phase, least in ((0, 40), (1, 400), (3, 60), (2, tile_cycles), (3, 30)):
                for warp in range(warps):
                    marks[warp].append([phase, int(clock[warp])])
                    clock[warp] += least + rng.integers(0, 80)
                if phase == 3:
                    clock[:] = clock.max()
        for warp in range(warps):
            marks[warp] += [[4, int(clock[warp])], [5, int(clock[warp]) + 150]]
        found.append({"block": 17 + block, "warps": marks})
    overview = [[i % 132, i // 264 * 90_000, i // 264 * 90_000 + 88_000] for i in range(512)]
    return {
        "events": ["load", "wait", "compute", "barrier", "store", "end"],
        "mark_cycles": 37.0, "seconds_with": 2.1e-3, "seconds_without": 1.9e-3,
        "warps": 32, "total_blocks": 4096, "blocks": found, "overview": overview,
    }


def timelines(count, narrow=False):
    versions = [
        Shown("02 shared tile", built.marks(record()), 1.98e9),
        Shown("05 strip", built.marks(record(tile_cycles=1500, blocks=1)), 1.98e9),
    ]
    return timeline.picture(versions[:count], evidence=RECORDED, window=(0, 5000),
                         narrow=narrow)


ROLES = (("consumers", 8), ("producer", 4))


def ring_record(steps=8, stages=4):
    """A timeline record with made-up marks in the order that 19_warp_specialization makes them."""
    starts = [1100 + 520 * i for i in range(steps)]  # of products, 520 cycles each
    producer, consumers = [], []
    for i in range(steps):
        asked = starts[i - stages] + 520 if i >= stages else 0
        producer += [[1, max(asked - 300, 0) + 40 * i], [0, asked + 17 + 40 * i]]
    producer.append([5, producer[-1][1] + 40])
    for warp in range(8):
        marks, at = [], warp
        for start in starts:
            marks += [[1, at], [2, start + 305 + warp]]
            at = start + 820 + warp
        consumers.append([*marks, [4, at], [5, at + 400 + 10 * warp]])
    return {
        "events": ["load", "wait", "compute", "barrier", "store", "end"],
        "mark_cycles": 30.0, "seconds_with": 1.1e-3, "seconds_without": 1e-3, "warps": 12,
        "total_blocks": 512, "blocks": [{"block": 3, "warps": [*consumers, producer]}],
        "overview": [[i % 132, i // 132 * 9000, i // 132 * 9000 + 8800] for i in range(512)],
    }


def timeline_with_roles(narrow=False):
    one = Shown("19 warp specialization", built.marks(ring_record()), 1.7e9, ROLES, 4)
    return timeline.picture([one], evidence=RECORDED, window=(0, 5300), narrow=narrow)


def roofs_of(dram, shared, ffma, tensor, **products):
    """Roofs by their numbers."""
    return Roofs({"L1/shared": shared, "DRAM": dram}, {"FFMA": ffma, "tensor": tensor, **products})


def sheet_roofs(gpu):
    """Roofs of a data sheet."""
    return roofs_of(gpu.dram_bytes_per_s, data_bytes_per_clock(gpu) * gpu.sms * gpu.clock_hz,
                    gpu.fp32_flops, gpu.tensor_fp16_flops)


def roof(narrow=False):
    roofs = roofs_of(3.02e12, 33e12, 65.2e12, 989e12)
    flop = 2.0 * 2048**3
    return roofline.picture(
        roofs,
        points("01 naive", flop, 2.71e-3, {"L1/shared": 43e9, "DRAM": 5e7})
        + points("02 shared tile", flop, 1.9e-3, {"L1/shared": 26e9, "DRAM": 5e7})
        + points("cuBLAS", flop, 0.377e-3, {"DRAM": 5e7}),
        current="02 shared tile", evidence=RECORDED, narrow=narrow,
    )


def dots_in_rows(narrow=False):
    return dots.draw(
        [dots.Row("FP32, 4,096", [("ours", 1.053), ("default", 0.99)], "09 tuned: 54.4 TFLOP/s"),
         dots.Row("FP16, 4,096", [("ours", 0.996), ("default", 0.94), ("public", 0.7)])],
        {"ours": dots.FULL, "default": dots.GREY, "public": dots.HOLLOW},
        title="Ours reaches 99.6% to 105.3%", evidence=RECORDED, same="the best", narrow=narrow)


def bars():
    return [
        ladder.Bar("01 naive", "FP32", 0.114, 5.82),
        ladder.Bar("06 vectorised", "FP32", 0.71, 36.3, stale=True),
        ladder.Bar("theirs", "FP32", 0.8, 40.0, ladder.PUBLIC),
        ladder.Bar("cuBLAS", "FP32", 1.0, 51.0, ladder.RIVAL),
        ladder.Bar("09 beyond", "FP32", 1.03, 52.9),
        ladder.Bar("11 wgmma", "FP16", 0.9995, 730.0),
    ]


TIMES = {
    "issue slots": 1.28e-3, "FMA pipe": 2.57e-4, "shared memory": 0.0, "L1 lines": 2.05e-3,
    "L1 bytes": 1.28e-3, "DRAM": 1.5e-5,
}


def close_roof(narrow=False):
    """Two versions of nearly one speed, and one whose memory levels are not recorded."""
    flop = 2.0 * 2048**3
    return roofline.picture(
        sheet_roofs(GPUS["H100"]),
        points("01 coalesced", flop, 2.74e-3, {"L1/shared": 43e9, "DRAM": 5e7})
        + points("02 tile32", flop, 2.3e-3, {"L1/shared": 56e9, "DRAM": 5e7})
        + points("01 swapped", flop, 35e-3, {"L1/shared": 286e9}),
        current="01 coalesced", evidence=RECORDED, narrow=narrow,
    )


def accounts():
    issued = dict.fromkeys(("fma", "tensor", "memory", "integer", "control"), 0.01)
    return slots.picture(
        {"06 vectorised": Account({**issued, "fma": 0.6, "memory": 0.07},
                                  {"long_scoreboard": 0.2, "barrier": 0.07}, 0.03),
         "cuBLAS": Account({**issued, "fma": 0.77}, {"short_scoreboard": 0.12, "wait": 0.05}, 0.02),
         "09 large": Account({**issued, "fma": 0.84}, {"dispatch_stall": 0.1, "drain": 0.01},
                             0.01)}, evidence=RECORDED)


def overlap_orders():
    return overlap.orders(
        [(form, FORMULAS[form], order_of(form, 400, 150, 500)) for form in ("staged", "roles")],
        cycles=3000)


def overlap_recorded():
    with collected() as figures:
        overlap.recorded_orders(
            Version("12_wmma_pipeline"), ("stores_first_alone", "products_first_alone"),
            {"at once": "stores first", "staged": "products first", "roles": "roles, modelled"})
    return figures[0]


SCENES = {
    "overlap, orders": lambda: overlap_orders(),
    "overlap, recorded": lambda: overlap_recorded(),
    "accumulators": lambda: accumulators.where_picture(
        ("20", InRegisters(2, 64, 256, 128)), ("27", InTensorMemory(2, 256)), (40, 300),
        title="The sums move out of the registers", evidence="modelled: x"),
    "atoms": lambda: accumulators.atoms_picture(
        Tile("tcgen05", rows=128), Tile("tcgen05", order="MN", rows=256, side="B"),
        title="The first MMA reads two atoms of each slab", evidence="modelled: x"),
    "ladder": lambda: ladder.picture(bars(), evidence=RECORDED),
    "slots": accounts,
    "busiest": lambda: busiest.picture(
        TIMES, 2.71e-3, evidence="modelled: H100 data sheet, emulated counters",
        note="DRAM: compulsory bytes"),
    "occupancy": lambda: occupancy.picture(
        {key: occupancy_of(GPUS[key], 40, 8192, 1024) for key in ("T4", "A100", "H100")}),
    "SM": lambda: sm.draw(GPUS["H100"]),
    "ldmatrix, swizzled": lambda: matrix_loads.draw(HalfTile(32, 0, True), "swizzled"),
    "ldmatrix, plain": lambda: matrix_loads.draw(HalfTile(64), "plain"),
    "registers": lambda: fragments.picture("mma.m16n8k16, FP16 or BF16", "modelled: x"),
    "operand": lambda: operand.draw(Tile(), 13, 5),
    "operand, MN": lambda: operand.draw(Tile("tcgen05", 2, "MN", "64"), 13, 5),
}

# Of the cards from 10 on.
SCENES |= {f"card {number}": draw for number, draw in enumerate((
    cards.fragment, partial(tiles.shared, (128, 128), (32, 64)),
    partial(pipelines.blocks_overlap, 687, 427, 132, 8), partial(tiles.vectors, (32, 64), (64, 64)),
    partial(cards.ldmatrix, 3), partial(pipelines.through_registers, 4),
    partial(pipelines.ring, 4), cards.wgmma, partial(signals.ring, 49152, 4),
    partial(signals.roles, 168, 40, 232), pipelines.tiles_in_turn, tiles.multicast), 10)}

BOTH = {  # in both layouts
    "dots": dots_in_rows, "roofline": roof, "roofline, close versions": close_roof,
    "timeline, roles": timeline_with_roles,
    "timeline, before and after": partial(timelines, 2),
}
FIGURES = {
    **BOTH, **{f"{name}, narrow": partial(draw, narrow=True) for name, draw in BOTH.items()},
    "timeline": lambda: timelines(1),
    "roofline, tensor": lambda: roofline.picture(
        roofs_of(3.02e12, 33e12, 65.2e12, 989e12, **{"mma.m16n8k8": 459e12, "wgmma": 800e12}),
        points("14 ldmatrix", 2.0 * 4096**3, 5e-4, {"L1/shared": 1.5e9, "DRAM": 2e8}),
        current="14 ldmatrix", peaks=("mma.m16n8k8", "tensor"), evidence=RECORDED,
    ),
}


def pytest_collection_modifyitems(items):
    """Mark the PNG of all but every sixth figure slow: a page shows SVG, as text; all are drawn."""
    taken = list(FIGURES)[::6]
    for item in items:
        if getattr(item, "originalname", "") == "test_png_and_image":
            if item.callspec.params["fig"] not in taken:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def drawn():
    """Every figure, drawn once, with its axis labels in their places."""
    made = {name: draw() for name, draw in FIGURES.items()}
    for fig in made.values():
        fig.canvas.draw()
    return made


@pytest.fixture(scope="session")
def scenes():
    """Every scene, made once."""
    return {name: draw() for name, draw in SCENES.items()}


@pytest.fixture(params=FIGURES)
def fig(request, drawn):
    """Each figure in turn."""
    return drawn[request.param]


@pytest.fixture
def machine_of():
    """A machine's record with other roofs, by name and in B/s or FLOP/s: a recorded one's rest."""
    recorded = store.load(schema.MachineRecord, "H100")

    def made(**values: float) -> schema.MachineRecord:
        roofs = schema.Roofs(**{
            name: schema.Roof(
                value=value, unit="B/s" if name in ("copy", "l2", "shared") else "FLOP/s",
                method="")
            for name, value in values.items()
        })
        return structs.replace(recorded, roofs=roofs)

    return made
