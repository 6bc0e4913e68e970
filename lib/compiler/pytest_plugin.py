"""A pytest plugin: kernels on NumPy arrays in a test suite, without a GPU, held to budgets.

It does nothing until a test asks for the fixture ``emulate``:

    def test_scale(emulate):
        scale = emulate("scale.cu", "scale<float>", budgets=["sectors_per_request < 5"])
        x = numpy.arange(1000, dtype=numpy.float32)
        scale(4, 256, (x, numpy.float32(3), 1000))
        assert (x == 3 * numpy.arange(1000)).all()

Each launch looks for races, and the test fails with a report if there is a hazard or a budget is
overrun. A relative path is looked for beside the test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lib import ptx
    from lib.compiler.budgets import Budget


class Emulated:
    """A kernel that fails its test when a launch of it is suspicious or costs too much."""

    def __init__(self, kernel: Any, budgets: Sequence[Budget], allow: Sequence[str]) -> None:
        self.kernel, self.budgets, self.allow = kernel, tuple(budgets), tuple(allow)

    def __call__(
        self, grid: Any, block: Any, args: Sequence[Any], shared_mem: int = 0, **options: Any
    ) -> ptx.Launch:
        """Launch it; see `ptx.Function` for the options. Races are looked for."""
        from lib.compiler.budgets import broken

        options.setdefault("races", True)
        launch = self.kernel(grid, block, args, shared_mem, **options)
        found = [hazard for hazard in launch.hazards if hazard.kind not in self.allow]
        said = broken(launch, self.budgets)
        if found or launch.errors or said:
            __tracebackhide__ = True
            pytest.fail("\n".join([*said, str(launch)]), pytrace=False)
        return launch


@pytest.fixture
def emulate(request: pytest.FixtureRequest) -> Callable[..., Emulated]:
    """``emulate(file, kernel=None, arch="sm_80", options=(), allow=(), budgets=())``: a kernel.

    `file` is a .cu or .ptx; `kernel` its name, or a template's with its arguments (not needed where
    there is one). `allow` names kinds of hazard that are no failure. Budgets are such as
    ``"sectors_per_request < 5"`` or ``"bank_conflicts == 0"``, of any counter.
    """
    # Loaded here: in a project that doesn't ask for the fixture nothing is.
    from lib.compiler.budgets import parse
    from lib.compiler.raw_module import open_kernel

    def load(
        file: str | Path, kernel: str | None = None, arch: str = "sm_80",
        options: Sequence[str] = (), allow: Sequence[str] = (),
        budgets: Sequence[str] = (),
    ) -> Emulated:
        limits = parse(budgets)
        path = Path(file)
        neighbour = request.path.parent / path
        _, found = open_kernel(kernel, path=neighbour if neighbour.is_file() else path, arch=arch,
                               options=options)
        return Emulated(found, limits, allow)

    return load
