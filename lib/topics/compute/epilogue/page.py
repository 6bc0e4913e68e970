"""What a chapter shows of an epilogue: what it costs, what it saves, what it reached."""

from __future__ import annotations

from collections.abc import Callable

from lib.kernels.fused import EPILOGUE
from lib.plotting import dots, style
from lib.plotting.display import both, once_recorded, table
from lib.plotting.markdown import NOT_YET
from lib.records import store as records
from lib.records.schema import FusedRow, FusedSide
from lib.topics.compute.epilogue import figure, model
from lib.topics.compute.epilogue.model import SHAPES, Shape

# Epilogues as tables call them, and the instantiation that has no more than the one before.
PARTS = (
    ("a bias", "bias", "plain"), ("ReLU", "bias_relu", "bias"), ("GELU, tanh", "bias_gelu", "bias"),
    ("the unit's tanh", "bias_gelu_unit", "bias"), ("GELU, erf", "bias_gelu_erf", "bias"),
    ("SiLU", "bias_silu", "bias"), ("a residual", "residual", "plain"),
    ("an amax", "amax", "plain"),
)
# What differs in one thing: how C leaves, when biases come, tiles, and what hides the rest.
OTHERS = (
    ("C through shared memory, not from registers", "plain", "plain_unstaged"),
    ("the same, with bias and GELU", "bias_gelu", "bias_gelu_unstaged"),
    ("the same, with a residual", "residual", "residual_unstaged"),
    ("a lane's biases in registers before the products end", "bias_gelu_wide",
     "bias_gelu_wide_late"),
    ("tiles of 224 columns, not 256", "bias_gelu_224", "bias_gelu_wide"),
    ("bias and GELU, both warpgroups on one tile", "bias_gelu_wide", "plain_wide"),
)
_DEPTHS = (256, 1024)


def fits() -> None:
    """Draw the least cycles of each epilogue for a tile beside the products that may hide them."""
    tile = model.tile_of("plain")
    bars = []
    for name, variant, over in PARTS:
        found = model.cost(variant, over)
        by_special = found.special / model.SPECIAL_PER_CYCLE > (
            found.instructions / model.WARP / model.SCHEDULERS)
        bars.append(figure.Bar(name, found.cycles(tile),
                               "special functions" if by_special else "issue slots"))
    loops = [(K, model.loop_cycles(tile, K)) for K in _DEPTHS]
    evidence = f"modelled: {tile[0]}×{tile[1]}, sm_90a PTX emulated"
    both(figure.draw, bars, loops, evidence=evidence)


def contests() -> None:
    """Display who took how long on the four layers, and what crossed DRAM: a column a layer."""
    rows: list[tuple[object, ...]] = []

    def line(name: str, cell: Callable[[FusedRow], str]) -> None:
        rows.append((name, *(_cell(cell, shape) for shape in SHAPES)))

    for name, whose in (("our product alone", "product"), ("**25, fused**", "fused"),
                        ("25, fused, tanh by the hardware's unit", "unit"),
                        ("the epilogue apart, behind our product", "apart")):
        line(f"{name}, TFLOP/s", _tflops(whose))
    line("cublasLt, its product alone", _tflops("rival's product"))
    for name, named in (("cublasLt, fused", "cublasLt fused"),
                        ("PyTorch, operation by operation", "PyTorch"),
                        ("PyTorch, its fused call", "PyTorch _addmm_activation"),
                        ("`torch.compile`", "torch.compile")):
        line(name, _tflops(named=named))
    line("fused, times the fastest rival's speed", lambda row: _of(row, "rival"))
    line("fused by the unit's tanh, times the fastest rival's speed",
         lambda row: _of(row, "rival", "unit"))
    line("fused, times our product's speed", lambda row: _of(row, "product"))
    rows.append(("DRAM at least, MB: fused; apart", *(
        f"{model.traffic(shape).fused / 1e6:,.0f}; {model.traffic(shape).apart / 1e6:,.0f}"
        for shape in SHAPES)))
    line("DRAM recorded, MB: fused; apart", lambda row: "; ".join(
        _megabytes(model.fastest(row, whose)) for whose in ("fused", "apart")))
    line("mJ per product: fused; apart", lambda row: "; ".join(
        _joules(model.fastest(row, whose)) for whose in ("fused", "apart")))
    rows.append(("`lib.gemm` takes", *(
        "one kernel" if model.choice(shape).variant else "two kernels" for shape in SHAPES)))
    table(("bias and GELU, BF16", *map(style.sides, SHAPES)), rows,
          "at least: each operand read once, C written, modelled; " + _label())


def parts() -> None:
    """Display each part of an epilogue alone: predicted beside recorded, a row a part."""
    rows: list[tuple[object, ...]] = []
    for name, variant, over in (*PARTS, OTHERS[-1]):
        found, tile = model.cost(variant, over), model.tile_of(variant)
        hidden = EPILOGUE.variant(variant).schedule.ping_pong
        depth = model.LARGE[2]
        predicted = 0.0 if hidden and model.least_hidden(variant, over) <= depth else (
            model.exposed(variant, over, depth))
        rows.append((
            f"**{name}**: `{over}` → `{variant}`", f"{found.special:.1f}",
            f"{found.instructions:.1f}", f"{found.cycles(tile):,.0f}", f"{predicted:+.1%}",
            *(_changed(variant, over, shape) for shape in (model.LARGE, model.FLAT))))
    table(("one thing more", "special functions per element", "PTX instructions per element",
           "cycles per tile, at least", "time predicted",
           *(f"recorded, {style.sides(shape)}" for shape in (model.LARGE, model.FLAT))), rows,
          "per element and predicted: emulated and modelled; " + _label())


def staged() -> None:
    """Display the pairs of how C leaves, when biases come and tiles, as recorded."""
    rows: list[tuple[object, ...]] = []
    for name, variant, over in OTHERS:
        rows.append((f"**{name}**: `{over}` → `{variant}`", *(
            _changed(variant, over, shape) for shape in (model.LARGE, model.FLAT))))
    table(("one thing changed", *(f"time, {style.sides(shape)}" for shape in (
        model.LARGE, model.FLAT))), rows, _label())


def choices() -> None:
    """Display which products with an epilogue `lib.gemm` fuses, and why: a row a problem."""
    rows = [(style.sides(shape), name, "fused" if found.variant else "apart", found.reason)
            for shape, name in model.ASKED
            for found in (model.choice(shape, name),)]
    table(("M×N×K", "epilogue", "", "why"), rows, "modelled: the rule's costs (`lib.dispatch`)")


@once_recorded()
def drawn() -> None:
    """Draw each part's time over that of the product alone, staged and from registers."""
    kinds = {"through shared memory": dots.FULL, "from registers": dots.RING,
             "both warpgroups on one tile": dots.GREY}
    rows = []
    for shape in (model.LARGE, model.FLAT):
        row = model.parts(shape)
        plain = model.part(row, "plain").seconds
        wide = model.part(row, "plain_wide").seconds
        for name, variants in (
            ("product", {"from registers": ("plain_unstaged", plain)}),
            ("bias and GELU", {"through shared memory": ("bias_gelu", plain),
                               "from registers": ("bias_gelu_unstaged", plain),
                               "both warpgroups on one tile": ("bias_gelu_wide", wide)}),
            ("residual", {"through shared memory": ("residual", plain),
                          "from registers": ("residual_unstaged", plain)}),
            ("GELU by erf", {"through shared memory": ("bias_gelu_erf", plain)}),
            ("amax", {"through shared memory": ("amax", plain)}),
        ):
            rows.append(dots.Row(f"{name}, M = {shape[0]:,}", [
                (kind, model.part(row, variant).seconds / base)
                for kind, (variant, base) in variants.items()]))
    worst = max((value for row in rows for _, value in row.dots))
    title = f"An epilogue takes up to {worst - 1:.1%} of its product's time"
    both(dots.draw, rows, kinds, title=title, evidence=_label(),
         same="time of the product alone, stored alike or in the same tiles")


@once_recorded()
def every(shape: Shape = model.LARGE) -> None:
    """Display all that was timed on a layer."""
    row = model.contest(shape)
    table(("who", "TFLOP/s", "µs", "spread", "MHz", "mJ", "DRAM, MB", "error"),
          [(side.name, f"{side.tflops:,.1f}", f"{side.seconds * 1e6:,.1f}", f"{side.spread:.1%}",
            f"{side.clock.mhz:,.0f}" if side.clock else "", _joules(side), _megabytes(side),
            "" if side.error is None else f"{side.error:.1e}") for side in row.sides],
          f"{_label()}; {style.sides(shape)}, {row.epilogue}")


def _cell(cell: Callable[[FusedRow], str], shape: Shape) -> str:
    try:
        return cell(model.contest(shape))
    except records.NotRecorded:
        return NOT_YET


def _tflops(*whose: str, named: str = "") -> Callable[[FusedRow], str]:
    return lambda row: f"{model.fastest(row, *whose, named=named).tflops:,.0f}"


def _of(row: FusedRow, whose: str, ours: str = "fused") -> str:
    ratio = model.fastest(row, whose).seconds / model.fastest(row, ours).seconds
    return f"{ratio:.3f}"


def _megabytes(side: FusedSide) -> str:
    found = side.traffic
    return f"{(found.dram_read_bytes + found.dram_write_bytes) / 1e6:,.0f}" if found else NOT_YET


def _joules(side: FusedSide) -> str:
    return f"{side.steady.joules * 1e3:,.2f}" if side.steady else NOT_YET


def _changed(variant: str, over: str, shape: Shape) -> str:
    """How much longer one takes than another, in turns."""
    try:
        row = model.parts(shape)
        return f"{model.part(row, variant).seconds / model.part(row, over).seconds - 1:+.1%}"
    except records.NotRecorded:
        return NOT_YET


def _label() -> str:
    try:
        return records.label(model.recorded())
    except records.NotRecorded:
        return f"{NOT_YET}: `{model.COMMAND}`"
