"""What sessions share: one request, one answer, both JSON; and a recording to step through."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from lib import ptx
from lib.kernels.spec import unknown
from lib.panel import render
from lib.panel.request import MAX_REGISTERS, Refused, message, whole
from lib.ptx.core.machine import WARP

Asked = Mapping[str, Any]


class Asking:
    """Answers requests by what they `do`; keeps the last recording."""

    default: Asked = {}  # what a request has that doesn't say otherwise
    answers: Mapping[str, Callable[[Any, Asked], render.Answer]] = {}  # methods by what is asked
    smaller = "a smaller shape"  # what to take where memory is short
    recording: render.Recording | None = None

    def ask(self, request: str) -> str:
        """Answer a request.

        Parameters
        ----------
        request : str
            JSON: ``do``, and what `default` has.

        Returns
        -------
        str
            JSON. A request that is refused, and a kernel that is stopped, have an answer too.
        """
        try:
            given = {**self.default, **message(request)}
            asked = str(given["do"])
            if asked not in self.answers:
                raise Refused(unknown("request", asked, self.answers))
            answer = self.answers[asked](self, given)
        except Refused as refused:
            answer = render.refused(str(refused))
        except ptx.Error as error:  # PTX of the reader's that can't be shown either
            answer = render.refused(f"{error}.")
        except MemoryError:
            answer = render.refused("That is more than the memory of this page holds: take "
                                    f"{self.smaller}.")
        return json.dumps(answer)

    def record(
        self, recorder: ptx.Recorder, launch: Callable[..., ptx.Launch], never: str, text: str,
        sources: Mapping[str, str] | None = None,
    ) -> render.Answer:
        """Launch with a recorder, and show its first moment.

        Raises
        ------
        Refused
            If it has none: with `never`, or with what stopped the kernel before.
        ptx.Error
            If nothing was launched.
        """
        launched, stopped = None, ""
        try:
            launched = launch(trace=False, recorder=recorder)
        except (ptx.LaunchError, ptx.ParseError, ptx.UnsupportedInstruction):
            raise
        except ptx.Error as error:
            stopped = str(error)
        if not recorder.moments:
            raise Refused(stopped or f"Warp {recorder.warp} of block {recorder.block} {never}.")
        self.recording = render.Recording(recorder, launched, stopped, text, sources)
        return self.step({})

    def step(self, given: Asked) -> render.Answer:
        """One moment of the recording.

        Raises
        ------
        Refused
            If nothing is recorded, or there is no such moment.
        """
        if self.recording is None:
            raise Refused("No warp is recorded yet: record one first.")
        at = whole(given, "at", 0, len(self.recording.recorder.moments) - 1)
        watched = str(given.get("registers", "")).split()[:MAX_REGISTERS]
        return render.moment(self.recording, at, watched)


def last(grid: Sequence[int], block: Sequence[int]) -> tuple[int, int]:
    """The last block of a launch, and the last warp of a block."""
    return prod(grid) - 1, -(-prod(block) // WARP) - 1
