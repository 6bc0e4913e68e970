"""What a chapter shows of an epilogue: what it costs, what it saves, what it reached."""

from __future__ import annotations

from collections.abc import Callable

from lib.kernels.fused import EPILOGUE
from lib.plotting import style
from lib.plotting.columns import Column, compared, listed
from lib.plotting.display import once_recorded, table
from lib.plotting.markdown import NOT_YET
from lib.records import store as records
from lib.records.schema import FusedSide, Row
from lib.topics.columns import recorded
from lib.topics.compute.epilogue import model
from lib.topics.compute.epilogue.model import SHAPES, Shape

# What tables call a change, the instantiation that has it, and the one without it.
Change = tuple[str, str, str]
# Epilogues, and the instantiation that has no more than the one before.
PARTS: tuple[Change, ...] = (
    ("a bias", "bias", "plain"), ("ReLU", "bias_relu", "bias"), ("GELU, tanh", "bias_gelu", "bias"),
    ("the unit's tanh", "bias_gelu_unit", "bias"), ("GELU, erf", "bias_gelu_erf", "bias"),
    ("SiLU", "bias_silu", "bias"), ("a residual", "residual", "plain"),
    ("an amax", "amax", "plain"),
)
# What differs in one thing: how C leaves, when biases come, tiles, and what hides the rest.
OTHERS: tuple[Change, ...] = (
    ("C through shared memory, not from registers", "plain", "plain_unstaged"),
    ("the same, with bias and GELU", "bias_gelu", "bias_gelu_unstaged"),
    ("the same, with a residual", "residual", "residual_unstaged"),
    ("a lane's biases in registers before the products end", "bias_gelu_wide",
     "bias_gelu_wide_late"),
    ("tiles of 224 columns, not 256", "bias_gelu_224", "bias_gelu_wide"),
    ("bias and GELU, both warpgroups on one tile", "bias_gelu_wide", "plain_wide"),
)
# Cubes of the version's own record: K as on the layers, and half of it.
DEEP, HALF = 4096, 2048


def contests() -> None:
    """Display who took how long on the four layers, and what crossed DRAM: a column a layer."""
    compared("bias and GELU, BF16", [
        *(_speed(f"{name}, TFLOP/s", whose) for name, whose in (
            ("our product alone", "product"), ("**25, fused**", "fused"),
            ("25, fused, tanh by the hardware's unit", "unit"),
            ("the epilogue apart, behind our product", "apart"))),
        _speed("cublasLt, its product alone", "rival's product"),
        *(_speed(name, named=named) for name, named in (
            ("cublasLt, fused", "cublasLt fused"), ("PyTorch, operation by operation", "PyTorch"),
            ("PyTorch, its fused call", "PyTorch _addmm_activation"),
            ("`torch.compile`", "torch.compile"))),
        _times("fused, times the fastest rival's speed", "fused", "rival"),
        _times("fused, times our product's speed", "fused", "product"),
        Column("DRAM predicted, MB: fused; apart", lambda shape: "; ".join(
            f"{nbytes / 1e6:,.0f}" for traffic in (model.traffic(shape),)
            for nbytes in (traffic.fused, traffic.apart))),
        _each("DRAM recorded, MB: product alone; fused; apart", _megabytes,
              "product", "fused", "apart"),
        _each("mJ per product: fused; apart", _joules, "fused", "apart"),
        recorded("25's fastest here",
                 lambda shape: f"`{model.fastest(model.contest(shape), 'fused').variant}`",
                 absent=NOT_YET),
    ], [(style.sides(shape), shape) for shape in SHAPES],
        "predicted: modelled, each operand read and C written once, and apart the FP32 product "
        "both, none of it left in the L2; " + _label())


def parts() -> None:
    """Display each part of an epilogue alone: predicted beside recorded, a row a part."""
    listed([
        _change("one thing more"), Column("time predicted", _predicted, "+.1%"),
        *_changed("recorded"), *map(_on_cube, (DEEP, HALF)),
    ], (*PARTS, OTHERS[-1]), "predicted: modelled, K = 4,096; in brackets: less than both timings' "
       "spreads together; " + _label())


def counts() -> None:
    """Display what each part of an epilogue executes, and how long it takes by that at least."""
    listed([
        _change("one thing more"),
        Column("special functions per element", lambda one: _cost(one).special, ".1f"),
        Column("PTX instructions per element", lambda one: _cost(one).instructions, ".1f"),
        Column("cycles per tile, at least",
               lambda one: _cost(one).cycles(model.tile_of(one[1])), ",.0f"),
    ], (*PARTS, OTHERS[-1]), "emulated; cycles: modelled")


def staged() -> None:
    """Display the pairs of how C leaves, when biases come and tiles, as recorded."""
    listed([_change("one thing changed"), *_changed("time")], OTHERS, _label())


def choices() -> None:
    """Display which products with an epilogue `lib.gemm` fuses, and why: a row a problem."""
    rows = [(style.sides(shape), name, "fused" if found.variant else "apart", found.reason)
            for shape, name in model.ASKED
            for found in (model.choice(shape, name),)]
    table(("M×N×K", "epilogue", "", "why"), rows, "modelled: the rule's costs (`lib.dispatch`)")


@once_recorded()
def every(shape: Shape = model.LARGE) -> None:
    """Display all that was timed on a layer."""
    row = model.contest(shape)
    listed([
        Column("who", lambda side: side.name),
        Column("TFLOP/s", lambda side: side.tflops, ",.1f"),
        Column("µs", lambda side: side.seconds * 1e6, ",.1f"),
        Column("spread", lambda side: side.spread, ".1%"),
        Column("MHz", lambda side: side.clock.mhz if side.clock else None, ",.0f", absent=""),
        Column("mJ", _joules), Column("DRAM, MB", _megabytes),
        Column("error", lambda side: side.error, ".1e", absent=""),
    ], row.sides, f"{_label()}; {style.sides(shape)}, {row.epilogue}")


def _speed(head: str, *whose: str, named: str = "") -> Column[Shape]:
    return recorded(
        head, lambda shape: model.fastest(model.contest(shape), *whose, named=named).tflops,
        ",.0f", absent=NOT_YET)


def _times(head: str, ours: str, whose: str) -> Column[Shape]:
    """The speed of one over that of another."""
    def ratio(shape: Shape) -> float:
        row = model.contest(shape)
        return model.fastest(row, whose).seconds / model.fastest(row, ours).seconds

    return recorded(head, ratio, ".3f", absent=NOT_YET)


def _each(head: str, cell: Callable[[FusedSide], str], *whose: str) -> Column[Shape]:
    """What is said of the fastest of each, such as of the fused kernel and the epilogue apart."""
    return recorded(head, lambda shape: "; ".join(
        cell(model.fastest(model.contest(shape), one)) for one in whose), absent=NOT_YET)


def _megabytes(side: FusedSide) -> str:
    found = side.traffic
    return f"{(found.dram_read_bytes + found.dram_write_bytes) / 1e6:,.0f}" if found else NOT_YET


def _joules(side: FusedSide) -> str:
    return f"{side.steady.joules * 1e3:,.2f}" if side.steady else NOT_YET


def _cost(one: Change) -> model.Cost:
    _, variant, over = one
    return model.cost(variant, over)


def _predicted(one: Change) -> float:
    """How much longer it takes by the model, of which nothing shows where products hide it."""
    _, variant, over = one
    hidden = EPILOGUE.variant(variant).schedule.ping_pong
    depth = model.LARGE[2]
    if hidden and model.least_hidden(variant, over) <= depth:
        return 0.0
    return model.exposed(variant, over, depth)


def _change(head: str) -> Column[Change]:
    return Column(head, lambda one: f"**{one[0]}**: `{one[2]}` → `{one[1]}`")


def _changed(head: str) -> list[Column[Change]]:
    """How much longer the changed one takes, in turns, on each of two layers."""
    def at(shape: Shape) -> Column[Change]:
        def longer(one: Change) -> str:
            _, variant, over = one
            row = model.parts(shape)
            return _longer(model.part(row, variant), model.part(row, over))

        return recorded(f"{head}, {style.sides(shape)}", longer, absent=NOT_YET)

    return [at(shape) for shape in (model.LARGE, model.FLAT)]


def _on_cube(side: int) -> Column[Change]:
    """How much longer the changed one takes on a cube."""
    return recorded(f"{side:,}³", lambda one: _longer(
        model.cube(one[1], side), model.cube(one[2], side)), absent=NOT_YET)


def _longer(after: FusedSide | Row, before: FusedSide | Row) -> str:
    """How much longer one takes; in brackets if that is less than both spreads."""
    found = after.seconds / before.seconds - 1
    return f"({found:+.1%})" if abs(found) < after.spread + before.spread else f"{found:+.1%}"


def _label() -> str:
    try:
        return records.label(model.recorded())
    except records.NotRecorded:
        return f"{NOT_YET}: `{model.COMMAND}`"
