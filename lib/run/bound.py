"""A plan's launches, laid out once for a shape; a call puts the addresses of its matrices in.

Where a kernel takes a tensor map, the map is encoded once and the driver replaces its address
(cuTensorMapReplaceAddress, CUDA driver API): shape, strides and box stay.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Protocol

from lib.run import tensor_maps
from lib.run.placed import Mapped, Placed
from lib.run.prepared import ALPHA, BETA, Step


class Launchable(Protocol):
    """A launch with its arguments in memory (`lib.run.launching.Ready`)."""

    places: list[int]

    def __call__(self, stream: int) -> None: ...


class Bound:
    """The launches of a product, the last of which is the kernel's own; the others pack.

    Its arguments are changed by each call: one thread at a time may make one.

    `steps`: of matrices that are `Placed`. `launches`: the same launches, laid out.
    """

    def __init__(self, steps: Sequence[Step], launches: Sequence[Launchable]) -> None:
        self._launches = tuple(launches)
        self._pointers: list[tuple[Any, int, int]] = []
        # Where a map lies, whose it is, and the address that it has.
        self._maps: list[tuple[int, int, int, list[int]]] = []
        for step, launch in zip(steps, launches, strict=True):
            for place, value in zip(launch.places, step.arguments, strict=True):
                if isinstance(value, Placed):
                    cell = ctypes.c_uint64.from_address(place)
                    self._pointers.append((cell, value.source, value.offset))
                elif isinstance(value, Mapped):
                    array = value.array
                    self._maps.append((place, array.source, array.offset, [array.ptr]))
        if self._maps:
            self._replace = tensor_maps.address_replacer()
        places = launches[-1].places
        self._scalars = [ctypes.c_float.from_address(places[n]) for n in (ALPHA, BETA)]
        self._put = tuple(cell.value for cell in self._scalars)

    def __call__(
        self, stream: int, addresses: Sequence[int], alpha: float, beta: float
    ) -> None:
        """Enqueue the launches on a CUstream.

        `addresses`: where the plan's sources begin (`lib.run.placed.SOURCES`), aligned as it was
        made for. `alpha`, `beta`: rounded to FP32; what is larger than its largest number is
        infinite.
        """
        for cell, source, offset in self._pointers:
            cell.value = addresses[source] + offset
        for place, source, offset, last in self._maps:
            address = addresses[source] + offset
            if address != last[0]:  # asking the driver takes as long as ten comparisons
                if code := self._replace(place, address):
                    raise ValueError(tensor_maps.refused(code))
                last[0] = address
        if self._put != (alpha, beta):
            for cell, value in zip(self._scalars, (alpha, beta), strict=True):
                cell.value = value
            self._put = alpha, beta
        for launch in self._launches:
            launch(stream)
