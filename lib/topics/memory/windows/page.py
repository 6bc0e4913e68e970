"""The rows that an ldmatrix names, right and wrong, from the emulator."""

from __future__ import annotations

from collections.abc import Mapping

from lib import ptx
from lib.plotting.display import show
from lib.problem import Problem
from lib.topics.memory.accesses.model import name_of
from lib.topics.memory.windows import figure as windows_figure
from lib.topics.memory.windows import model as windows
from lib.topics.version import Version


def draw(
    version: Version, expressions: Mapping[str, str], array: str = "Bs", row_bytes: int = 272,
    step: int = 32,
) -> None:
    """Draw the rows that the first transposed ldmatrix names, right and wrong.

    The right variant's addresses are those of its trace. The wrong one's are those with which
    the emulator stopped it: they are not aligned.

    Parameters
    ----------
    expressions : mapping of str to str
        Variant or exhibit, and how the source writes its address; the right one first.
    array : str
        The tile's name in the source.
    row_bytes : int
        From one of its rows to the next.
    step : int
        K of the problem that is run.

    Raises
    ------
    ValueError
        If no lane of a variant that fails was at fault with its alignment.
    """
    panels, base = [], 0
    for name, expression in expressions.items():
        variant = version.kernel.variant(name)
        M, N = variant.tile
        try:
            done = version.run(Problem(M, N, step), name, backend="emulator", watch=(0, 0),
                            exact=True)
        except ptx.Misaligned as error:
            if error.addresses is None:
                raise ValueError(f"{name}: {error}") from error
            addresses = error.addresses[0, :32]
        else:
            base = next(a.base for a in done.emulated.shared if name_of(a) == array)
            trace = done.trace
            site = next(s for s in trace.sites if s.kind == "ldmatrix" and "trans" in s.opcode)
            addresses = trace.watched[site.line][0].addresses
        panels.append(windows_figure.Panel(name, expression,
                                           windows.windows(addresses, base, row_bytes)))
    show(windows_figure.draw(panels, evidence=f"emulated: {version.kernel.min_arch} PTX"))
