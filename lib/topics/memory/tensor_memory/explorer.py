"""Step through what a block does to tensor memory."""

from __future__ import annotations

from matplotlib.figure import Figure

from lib.kernels.catalogue import find
from lib.plotting.frames import Control, Explorer
from lib.topics.memory.tensor_memory import figure, model

EVIDENCE = "emulated: sm_100a PTX, one block, steps of K as few as show it"


def tensor_memory(
    stem: str, variants: tuple[str, ...] = ("wide", "one_accumulator"), turns: int = 9
) -> Explorer:
    """What each column of tensor memory holds while a block walks through tiles.

    Parameters
    ----------
    stem : str
        A version whose sums lie in tensor memory.
    variants : tuple of str
    turns : int
        How many of the first are shown.
    """
    moments = {name: model.turning_points(model.followed(stem, name))[:turns]
               for name in variants}

    def frame(name: str, place: int, narrow: bool = False) -> Figure:
        found = moments[name]
        width = find(stem).variant(name).tile[1]
        return figure.draw(found[place], width, evidence=EVIDENCE,
                           narrow=narrow)

    return Explorer(
        [Control("Accumulators", [
            (str(find(stem).variant(name).constants["ACCUMULATORS"]), name) for name in variants]),
         Control("Turn", [(str(n + 1), n) for n in range(turns)], default=3, slider=True)],
        frame, "Tensor memory, turn by turn",
    )
