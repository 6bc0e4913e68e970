"""What a chapter shows of scales: which of them a step takes, and how they may lie."""

from __future__ import annotations

from lib.plotting.display import show, table
from lib.problem import with_scales
from lib.topics.compute.scales import figure, model
from lib.topics.version import Version

# A product of two tiles by two and three steps, and what of it is in colour.
PROBLEM, TILE, STEP = (256, 256, 384), (1, 0), 1


def draw(version: Version, variant: str | None = None) -> None:
    """Draw the scales that one step of an instantiation's tile takes."""
    chosen = version.kernel.variant(variant)
    found = model.step(with_scales(*PROBLEM), chosen.tile, TILE, STEP)
    M, N, K = PROBLEM
    show(figure.draw(
        found, evidence=f"modelled: {chosen.name}'s tile, {M}×{N}×{K}, scales by blocks"))


def layouts(M: int = 4096, N: int = 4096, K: int = 7168) -> None:
    """Display how many scales there are of each kind, and how far apart they may lie."""
    rows: list[tuple[object, ...]] = []
    for name, meaning in (("tensor", "one for A, one for B"),
                          ("vector", "one per row of A, one per column of B"),
                          ("blocks", "A: per row and 128 of K; B: per 128×128")):
        of_a, of_b = with_scales(M, N, K, scaling=name).shapes_of_scales
        rows.append((name, meaning, f"{of_a[0]:,}×{of_a[1]:,}", f"{of_b[0]:,}×{of_b[1]:,}",
                     "once, at the end" if name != "blocks" else "each 128 of K"))
    table(("scales by", "which", "scales of A", "scales of B", "multiplied"), rows,
          f"modelled: {M:,}×{N:,}×{K:,}")


def verdicts(version: Version, text: str) -> None:
    """Print whether a changed kernel is right, by what its scales differ in.

    Parameters
    ----------
    text : str
        The whole .cu file, changed; the first variant, scaled by blocks, is run.
    """
    variant = version.kernel.variants[0]
    problem = variant.problem(66, 128, 640)
    found = []
    for kind in model.KINDS:
        done = version.run(problem, variant.name, backend="emulator", trace=False, races=True,
                           sms=1, source=text, given=model.scaled_by(problem, kind))
        wrong = "wrong" if not done.verdict.ok else "right"
        found.append(f"{kind}: {'hazards' if done.emulated.hazards else wrong}")
    print("scales", "; ".join(found))
