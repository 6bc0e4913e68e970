"""What became of the issue slots, and what warps waited for, by recorded counters."""

from __future__ import annotations

from collections.abc import Sequence

from lib.kernels.spec import parted
from lib.plotting.display import both, once_recorded
from lib.records import ladder
from lib.records import store as records
from lib.records.reader import RecordedRival
from lib.show.cycles import PARTS
from lib.topics.limits.issue_slots import figure as slots_figure
from lib.topics.limits.issue_slots import model as slots_of
from lib.topics.version import RECORDED_ON, Version, short_name


@once_recorded()
def draw(
    version: Version, *variants: str, above: Sequence[str] | None = None, rival: bool = False,
    size: int = 4096,
) -> None:
    """Draw the account of issue slots: of versions before, of cuBLAS and of some variants.

    Parameters
    ----------
    rival : bool
        Draw cuBLAS between them.
    """
    if above is None:
        above = [version.before.kernel.stem] if version.before else []
    bars = {}
    for one in above:
        stem, name = parted(one)
        page = version.of(stem)
        bars[f"{short_name(page.kernel)} {name or ''}".rstrip()] = account(page, name, size)
    if rival:
        cublas = RecordedRival(RECORDED_ON)
        bars["cuBLAS"] = slots_of.account(cublas.counters(size, "fp32"), cublas.record.gpu.sms)
    for variant in variants or (None,):
        label = f"{version.kernel.stem[:2]} {variant}" if variant else short_name(version.kernel)
        bars[label] = account(version, variant, size)
    evidence = f"{records.label(version.record)}, ncu, {size:,}³"
    both(slots_figure.draw, bars, evidence=evidence)


def account(version: Version, variant: str | None = None, size: int = 4096) -> slots_of.Account:
    """The account of the recorded run of a variant."""
    return slots_of.account(version.metrics(size, variant), version.record.gpu.sms)


def shares(version: Version, size: int = 4096) -> dict[str, float]:
    """Of all issue slots of a version's fastest kernel in the ladder's pass, by `PARTS`' names."""
    record = ladder.load(RECORDED_ON)
    entry = record.entries[f"{version.kernel.stem}/{version.kernel.fastest.name}"]
    metrics = next(one.metrics for one in entry.counters if one.M == one.N == one.K == size)
    found = slots_of.account(metrics, record.gpu.sms)
    parts = zip(PARTS, ("fma", "other", "empty", "idle"), strict=True)
    return {name: found.share(part) for (_, name), part in parts}
