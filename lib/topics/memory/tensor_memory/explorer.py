"""Step through what a block does to tensor memory."""

from __future__ import annotations

from lib.kernels.catalogue import find
from lib.plotting.frames import Control, Explorer
from lib.show.scene import Scene
from lib.topics.memory.tensor_memory import figure, model

EVIDENCE = "emulated: sm_100a PTX, one block, steps of K as few as show it"
VARIANTS, TURNS = ("wide", "one_accumulator"), 9  # how many of the first are shown


def tensor_memory(stem: str) -> Explorer:
    """What each column of tensor memory holds while a block walks through tiles.

    Parameters
    ----------
    stem : str
        A version whose sums lie in tensor memory.
    """
    moments = {name: model.turning_points(model.followed(stem, name))[:TURNS]
               for name in VARIANTS}

    def frame(name: str, place: int) -> Scene:
        width = find(stem).variant(name).tile[1]
        return figure.draw(moments[name][place], width, evidence=EVIDENCE)

    return Explorer([
        Control.of("Accumulators", VARIANTS,
                   form=lambda name: str(find(stem).variant(name).constants["ACCUMULATORS"])),
        Control.of("Turn", range(TURNS), 3, lambda turn: str(turn + 1), slider=True),
    ], frame, "Tensor memory, turn by turn")
