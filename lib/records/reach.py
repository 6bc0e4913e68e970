"""How far the book comes, said once: the fastest of ours on a cube beside the best of cuBLAS, ±.

README, the first page, the pages on rivals and on choosing and the papers take their words and
numbers from here, so that they give one answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lib.kernels.catalogue import KERNELS
from lib.records import ladder, store
from lib.records.ladder import GPU as GPU
from lib.records.ladder import SIZE as SIZE
from lib.records.ladder import Step
from lib.records.schema import KernelRecord, Row

# 22's pair that prices programmatic launch, without it and with it, and the cubes it was timed on.
WITHOUT, WITH = "late", "unsplit"
PRICED = (512, 1024, 2048, 4096)
_PRICING = "22_few_tiles"


@dataclass(frozen=True)
class Reach:
    """The fastest of a group, ``"FP32"`` or ``"FP16"``, in the ladder's pass on a cube."""

    group: str
    step: Step

    @property
    def stem(self) -> str:
        """The version, or the rule."""
        return self.step.kernel.stem

    @property
    def row(self) -> Row:
        """What was timed of it."""
        return self.step.row

    @property
    def rival(self) -> float:
        """The best of cuBLAS, TFLOP/s: the median of all its turns in the pass."""
        return self.step.figure.tflops

    @property
    def share(self) -> float:
        """Of `rival`, 1.0 = as fast."""
        return self.step.share

    @property
    def noise(self) -> float:
        """How far `share` may be off."""
        return self.step.noise

    @property
    def verdict(self) -> str:
        """``"past"`` or ``"below"`` in short turns and sustained alike, else ``"level"``."""
        shares = [(self.share, self.noise)] + ([self.sustained] if self.row.sustained else [])
        if all(share - 1 > noise for share, noise in shares):
            return "past"
        return "below" if all(1 - share > noise for share, noise in shares) else "level"

    @property
    def sustained(self) -> tuple[float, float]:
        """The share of two seconds, each alone, and how far it may be off.

        Raises store.NotRecorded if no long run is recorded.
        """
        long = self.row.sustained
        if long is None:
            raise store.NotRecorded(f"no long run is recorded of {self.stem}: python -m lib record")
        return long.ratio, max(long.own.spread, long.cublas.spread)

    @property
    def programmatic(self) -> bool:
        """Whether its kernel is launched so that it begins while the one before it ends."""
        names = self.step.variant.candidates or (self.step.variant.name,)
        return any(self.step.kernel.variant(name).programmatic_launch for name in names)


def reach(group: str, gpu: str = GPU, size: int = SIZE) -> Reach:
    """The fastest of a group.

    Raises store.NotRecorded if there is no pass, or none of it as its source is today.
    """
    steps = [step for step in ladder.steps(ladder.load(gpu), size) if step.kernel.group == group
             and (step.row.out, step.row.b_layout) == ("float32", "row") and not step.stale]
    if not steps:
        raise store.NotYet(f"no version in {group} is recorded: python -m lib record --ladder")
    return Reach(group, max(steps, key=lambda step: step.row.tflops))


def lowest(one: Reach, gpu: str = GPU) -> Row:
    """Of all shapes that were recorded of it, the one with the least share."""
    return min(_rows(one.stem, gpu), key=lambda row: row.ratio)


def overlap(size: int, gpu: str = GPU) -> float:
    """What programmatic launch adds to the speed of launches in a row, by 22's pair, on a cube.

    Raises store.NotRecorded if the pair is not recorded there, or not on one board.
    """
    without, using = (next((row for row in _rows(_PRICING, gpu, name) if row.is_cube(size)), None)
                      for name in (WITHOUT, WITH))
    if without is None or using is None or without.chunk != using.chunk:
        raise store.NotRecorded(f"{_PRICING}'s {WITHOUT} and {WITH} are not of one run at {size:,}")
    return using.tflops / without.tflops - 1


def _rows(stem: str, gpu: str, name: str = "") -> Iterator[Row]:
    """What is recorded of a variant, the fastest if none is named, as its source is today."""
    record = store.load(KernelRecord, gpu, stem)
    name = name or KERNELS[stem].fastest.name
    stored = record.variants.get(name) if record else None
    today = store.current(KERNELS[stem], name, stored) if stored else None
    yield from today.bench if today else ()


def give_or_take(share: float, noise: float) -> str:
    """A share with how far it may be off, which `noise` is relative to: ``"105.2 ± 0.1%"``."""
    return f"{100 * share:.1f} ± {percent(share * noise)}%"


def percent(noise: float) -> str:
    """A noise in per cent with a decimal; never none."""
    return f"{max(100 * noise, 0.1):.1f}"


def at_lowest(row: Row) -> str:
    """A row's share and its shape: ``"84.3 ± 0.1% at 4,096×33×4,096"``."""
    return (f"{give_or_take(row.ratio, row.noise)} at "
            f"{'×'.join(f'{side:,}' for side in row.shape)}")


def short(one: Reach) -> str:
    """Of the best of cuBLAS, in a few words: ``"105.2 ± 0.1%"``, of turns of 5 ms.

    What is level names both runs: ``"level (100.3 ± 0.4% in turns of 5 ms, 99.1% sustained)"``.
    """
    brief = give_or_take(one.share, one.noise)
    if one.verdict != "level":
        return brief
    lasting = f", {give_or_take(*one.sustained)} sustained" if one.row.sustained else ""
    return f"level ({brief} in turns of 5 ms{lasting})"


def answer(gpu: str = GPU) -> str:
    """How far, at which turns, and where it doesn't hold: a paragraph, in Markdown.

    Raises store.NotRecorded if something of it is not recorded.
    """
    single, half = reach("FP32", gpu), reach("FP16", gpu)
    large = reach("FP16", gpu, 2 * SIZE)
    low = "; ".join(f"{one.group} {at_lowest(lowest(one, gpu))}" for one in (single, half))
    said = [
        f"At M = N = K = {SIZE:,} on one {gpu}, in turns of 5 ms, against the median of all turns "
        "of the best of cuBLAS: "
        f"**FP32** {_against(single)}; cuBLAS takes a kernel of sm_80 there. "
        f"**FP16** {_against(half)}.",
        f"It doesn't hold everywhere: at {2 * SIZE:,} FP16 has "
        f"{give_or_take(large.share, large.noise)}, and lowest of all recorded shapes, each "
        f"against cuBLAS's turns beside it, are {low}.",
    ]
    if half.programmatic:
        priced = ", ".join(f"{overlap(size, gpu):+.1%} at {size:,}" for size in PRICED)
        said.append(
            "FP16's kernels use programmatic launch: each may begin while the one before it ends. "
            f"For launches in a row that is worth {priced} (`{WITHOUT}` → `{WITH}` of {_PRICING}).")
    return " ".join(said)


def _against(one: Reach) -> str:
    """Speed, rival and share, in turns of 5 ms and sustained, and what they come to."""
    verdict = "" if one.verdict == "past" else f": {one.verdict}"
    return (f"{one.row.tflops:.1f} TFLOP/s against {one.rival:.1f}, "
            f"{give_or_take(one.share, one.noise)}; "
            f"sustained {give_or_take(*one.sustained)}{verdict}")
