"""Pictures of the tensor-core and asynchronous chapters, beside those that all pages draw."""

from __future__ import annotations

from collections.abc import Mapping

from lib import gpus, ptx, saturation
from lib.explorers.frames import Explorer
from lib.explorers.saturated import saturated
from lib.figures import box as box_figure
from lib.figures import busiest as busiest_figure
from lib.figures import fragments as fragments_figure
from lib.figures import matrix_loads as matrix_loads_figure
from lib.figures import ring as ring_figure
from lib.figures import style
from lib.figures import vectors as vectors_figure
from lib.figures import windows as windows_figure
from lib.models import box, busiest, fragments, ring, windows
from lib.models.accesses import name_of
from lib.models.matrix_loads import MatrixLoad
from lib.models.occupancy import occupancy
from lib.models.vectors import Step
from lib.pages.display import show
from lib.pages.version import TIMED, Version
from lib.problem import ITEM_BYTES, Problem


def fragment(instruction: str, operand: str, lane: int = 5) -> None:
    """Draw which lane holds which element (`lib.models.fragments`)."""
    show(fragments_figure.draw(fragments.held(instruction, operand), lane=lane))


def matrix_load(load: MatrixLoad, layout: str = "", lane: int = 5) -> None:
    """Draw one ldmatrix: who names which row, who gets what, which banks (`models.matrix_loads`).
    """
    show(matrix_loads_figure.draw(load, lane=lane, layout=layout))


class TensorPictures(Version):
    """What a page of a tensor-core version draws beside the others' pictures."""

    def windows(
        self, expressions: Mapping[str, str], array: str = "Bs", row_bytes: int = 272,
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
            variant = self.kernel.variant(name)
            M, N = variant.tile
            try:
                done = self.run(Problem(M, N, step), name, backend="emulator", watch=(0, 0),
                                exact=True)
            except ptx.Misaligned as error:
                if error.addresses is None:
                    raise ValueError(f"{name}: {error}") from error
                addresses = error.addresses[0, :32]
            else:
                base = next(a.base for a in done.launch.shared if name_of(a) == array)
                trace = done.launch.trace
                site = next(s for s in trace.sites if s.kind == "ldmatrix" and "trans" in s.opcode)
                addresses = trace.watched[site.line][0].addresses
            panels.append(windows_figure.Panel(
                name, expression, windows.windows(addresses, base, row_bytes)
            ))
        show(windows_figure.draw(panels, evidence=f"emulated: {self.kernel.min_arch} PTX"))

    def ring(self, variant: str | None = None, cycles: float | None = None) -> None:
        """Draw the ring of stages as the marks of the timeline tell it.

        Parameters
        ----------
        variant : str, optional
        cycles : float, optional
            How much of it to draw; as far as the marks reach if not given.

        Raises
        ------
        ValueError
            If the variant has no ring.
        """
        chosen = self.kernel.variant(variant)
        if not chosen.stages:
            raise ValueError(f"{self.kernel.stem}, {chosen.name}: no ring between producer and "
                             "consumers that its marks could tell")
        one = self._version(chosen)
        warps, workers = one.blocks[0][1], chosen.roles[0][1]
        found = ring.from_marks(one.events, warps[workers], warps[:workers], chosen.stages)
        show(ring_figure.draw(found, end=cycles, landed=False,
                              evidence=f"{self._timed_on([chosen.name])}, {TIMED:,}³"))

    def box(self, matrix: str = "A", size: int = 4096, variant: str | None = None) -> None:
        """Draw the rows of a tensor map's box as sectors of global memory.

        Parameters
        ----------
        matrix : {"A", "B", "C"}
            Of those that the kernel takes through tensor maps.
        size : int
            M = N = K.
        variant : str, optional
        """
        chosen = self.kernel.variant(variant)
        rows, columns = chosen.boxes[matrix]
        item = ITEM_BYTES[chosen.out if matrix == "C" else chosen.dtype]
        found = box.box(rows, columns * item, size * item)
        show(box_figure.draw(found, name=matrix,
                             evidence="modelled: sectors of a tensor map's box"))

    def saturates(
        self, key: str = "T4", variant: str | None = None, size: int = 4096,
        l2_bytes_per_s: float | None = None, lines: bool = False,
    ) -> None:
        """Draw the least time that each unit of a GPU would need for this version.

        Parameters
        ----------
        key : str
            Data sheet.
        variant : str, optional
        size : int
            M = N = K: a multiple of the tile.
        l2_bytes_per_s : float, optional
            A measured bandwidth. No data sheet gives one; without it the figure says what the L2
            would have to deliver.
        lines : bool
            Count the lines that the L1 looks up, instead of the fewest that requests and sectors
            allow; of kernels whose warps all access alike.
        """
        times, l2_bytes = self.unit_times(key, variant, size, l2_bytes_per_s, lines)
        note = ""
        if l2_bytes_per_s is None:
            need = style.quantity(busiest.l2_needed(l2_bytes, times), "B/s")
            note = f"the L2 must deliver {need} not to be longer"
        show(busiest_figure.draw(
            times, evidence=f"modelled: {key} rates × emulated counters, {size:,}³",
            notes={"DRAM": "compulsory bytes"}, note=note,
        ))

    def unit_times(
        self, key: str = "T4", variant: str | None = None, size: int = 4096,
        l2_bytes_per_s: float | None = None, lines: bool = False,
    ) -> tuple[dict[str, float], int]:
        """Return the least seconds of each unit, and the bytes asked of the L2 (`saturates`).

        Counters are emulated (`lib.saturation`).

        Raises
        ------
        ValueError
            If tiles don't divide the problem.
        """
        return saturation.unit_times(
            self.kernel.stem, self.kernel.variant(variant).name, gpus.find(key), size,
            l2_bytes_per_s, lines,
        )

    def saturated(self, *variants: str, key: str = "T4") -> Explorer:
        """Return an explorer of `saturates` over variants, all if none is named, and sizes."""
        gpu, tiles = gpus.find(key), {}
        for name in variants or tuple(v.name for v in self.kernel.variants):
            variant, used = self.kernel.variant(name), self.compiled(gpu.arch, name).resources
            fit = occupancy(gpu, used.registers, used.shared_bytes, variant.threads)
            tiles[name] = (*variant.tile, variant.step, fit.blocks)
        return saturated(lambda name, n: self.unit_times(key, name, n), tiles, gpu)

    def vectors(self, variant: str | None = None) -> None:
        """Draw which lanes of a block have a vector of A and of B to load in a step."""
        chosen = self.kernel.variant(variant)
        step = Step(*chosen.tile, chosen.step, chosen.threads, chosen.constants["VEC"])
        show(vectors_figure.draw(step))
