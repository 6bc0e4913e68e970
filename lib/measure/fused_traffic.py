"""What ncu counts of one product with an epilogue: bytes of DRAM and instructions, of all launches.

``ncu`` runs this module, which launches each side that is named on its first copy of the operands,
behind the other copies, so that the caches hold what the products before left. A launch of
``cuda/busy.cu`` stands between two sides.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence

from msgspec import structs

from lib.kernels.epilogues import FusedProblem
from lib.kernels.fused import EPILOGUES
from lib.measure import bench, ncu
from lib.measure.fused_contest import PRODUCT, Contest, led
from lib.records.schema import FusedRow, Traffic
from lib.run import device

METRICS = {
    "dram_read_bytes": "dram__bytes_read.sum", "dram_write_bytes": "dram__bytes_write.sum",
    "instructions": "smsp__inst_executed.sum",
}
MARKER = "busy"
# Below so many seconds nothing is begun.
LEAST = 15.0


def counted(
    contests: Sequence[FusedRow], max_seconds: float, say: Callable[[str], None]
) -> list[FusedRow]:
    """The same contests, with the traffic of those that lead them, where it can be read.

    `contests`: of bias and GELU, or another of `lib.kernels.fused.EPILOGUES`. `max_seconds`:
    seconds that there are.
    """
    if max_seconds < LEAST:
        say("traffic is not measured: no time is left")
        return list(contests)
    places = [[place for place in led(row.sides) if row.sides[place].whose != PRODUCT]
              for row in contests]
    asked = [[row.epilogue, row.M, row.N, row.K, [row.sides[place].name for place in places_of]]
             for row, places_of in zip(contests, places, strict=True)]
    try:
        rows = ncu.profile(
            list(METRICS.values()), [json.dumps(asked)], cached=True, ranges=True,
            module="lib.measure.fused_traffic", max_seconds=max_seconds)
    except ncu.ProfilerMissing as missing:
        say(str(missing))
        return list(contests)
    found = iter(split(rows))
    made = []
    for row, places_of in zip(contests, places, strict=True):
        sides = list(row.sides)
        for place in places_of:
            sides[place] = structs.replace(sides[place], traffic=traffic(next(found, [])))
        made.append(structs.replace(row, sides=sides))
    return made


def split(rows: Sequence[dict[str, str]]) -> list[list[dict[str, str]]]:
    """The launches of each side, without the markers before them."""
    found: list[list[dict[str, str]]] = []
    for row in rows:
        if named(row) == MARKER:
            found.append([])
        elif found:
            found[-1].append(row)
    return found


def traffic(rows: Sequence[dict[str, str]]) -> Traffic | None:
    """The sum over launches; None where there are none, or a counter is missing."""
    sums = {}
    for name, metric in METRICS.items():
        values = [ncu.number(row.get(metric)) for row in rows]
        if not values or any(value is None for value in values):
            return None
        sums[name] = int(sum(value for value in values if value is not None))
    return Traffic(kernels=tuple(map(named, rows)), **sums)


def named(row: dict[str, str]) -> str:
    """A kernel's name, without what it returns, where it is declared, and its arguments."""
    bare = row["Kernel Name"].replace("(anonymous namespace)::", "")
    bare = bare.partition("<")[0].partition("(")[0].rpartition(" ")[2].rpartition("::")[2]
    return re.sub(r"[^\w.$]", "", bare) or "unnamed"


def main(given: Sequence[str]) -> int:
    """Launch what the argument names: what ncu looks at."""
    cp = device.cupy()
    for epilogue, M, N, K, names in json.loads(given[0]):
        found = Contest(FusedProblem(M, N, K, epilogue=EPILOGUES[epilogue][0]))
        for name in names:
            side = found.named(name)
            for index in (*range(1, len(found.copies)), 0):
                cp.cuda.get_current_stream().synchronize()
                if index == 0:
                    cp.cuda.runtime.profilerStart()
                    bench.keep_busy(1e-6)
                side.call(index)
            cp.cuda.get_current_stream().synchronize()
            cp.cuda.runtime.profilerStop()
        del found
        cp.get_default_memory_pool().free_all_blocks()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
