"""Lines of a version left out or changed, one at a time, and what the emulator says of each.

Each mistake is compiled and run once, with its race detector on, on the smallest problem that comes
round all rings; copies, loads and MMAs land as late as they may. No text of a report is typed here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from lib import ptx
from lib.kernels.catalogue import find
from lib.kernels.source import edited
from lib.ptx.core.hazards import Hazard
from lib.ptx.files import text_of
from lib.run.runner import run
from lib.show.display import table
from lib.show.version import Version


@dataclass(frozen=True)
class Mistake:
    """A line that is left out, or changed.

    Attributes
    ----------
    shown : str
        What is done to it, as Markdown.
    old, new : str
        The text of the source, and what stands there instead.
    """

    shown: str
    old: str
    new: str = ""


@dataclass(frozen=True)
class Verdict:
    """What the emulator says of a run.

    Attributes
    ----------
    says : str
        Of the first hazard or of the error, as Markdown; empty if it is clean.
    result : str
        ``"right"``, ``"wrong"``, or ``"none"`` with why.
    """

    says: str
    result: str


@dataclass(frozen=True)
class Planted:
    """The mistakes of a version.

    Attributes
    ----------
    variant : str
    shape : tuple of int
        M, N and K.
    mistakes : tuple of Mistake
    """

    variant: str
    shape: tuple[int, int, int]
    mistakes: tuple[Mistake, ...]


PLANTED: dict[str, Planted] = {
    # Three tiles for one block, so that the first accumulator is used again, and nine steps of K
    # for a ring of four stages.
    "27_tcgen05": Planted("wide", (128, 768, 192), (
        Mistake("`fence_after_sync` before the MMAs: out",
                "                fence_after_sync();  // behind both waits\n"),
        Mistake("`fence_before_sync`: out",
                "            fence_before_sync();\n            mbarrier_arrive(drained",
                "            mbarrier_arrive(drained"),
        Mistake("`tensor_free`: out",
                "    if (warp == STORERS) tensor_free<ACCUMULATORS * BN>(sums);\n"),
        Mistake("`tensor_wait`: out", "                    tensor_wait();\n"),
        Mistake("the first MMA adds, too: `true`", "step > 0 || k > 0)", "true)"),
        Mistake("wait for `filled`: out",
                "                mbarrier_wait(filled + 8 * ring.stage, ring.parity);\n"),
        Mistake("`tensor_commit(freed …)`: out",
                "                tensor_commit(freed + 8 * ring.stage);"),
        Mistake("loader: `parity ^ 1` → `parity`",
                "mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1)",
                "mbarrier_wait(freed + 8 * ring.stage, ring.parity)"),
        Mistake("descriptor: bit 46 out, as in WGMMA's", "of_a(a, k),", "of_a(a, k) ^ 1ull << 46,"),
    )),
    # Nine steps of K for a ring of six.
    "28_cta_pairs": Planted("in_turns", (256, 768, 192), (
        Mistake("`fence_after_sync` before the MMAs: out",
                "                fence_after_sync();  // behind both waits\n"),
        Mistake("the meeting before `pair_alloc`: out",
                "    cluster_barrier();  // the other block runs, and has its barriers\n"),
        Mistake("the meeting at the end: `__syncthreads()`",
                "    cluster_barrier();\n    if (warp == STORERS) pair_free",
                "    __syncthreads();\n    if (warp == STORERS) pair_free"),
        Mistake("the loader's last waits: out",
                "        for (int s = 0; s < STAGES; ++s, ring.next())\n"
                "            mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);\n"),
        Mistake("`drained` is made for 128 arrivals",
                "mbarrier_init(drained + 8 * i, 2 * 32 * STORERS)",
                "mbarrier_init(drained + 8 * i, 32 * STORERS)"),
        Mistake("the leader expects its own bytes alone", "2 * (A_BYTES + B_BYTES)",
                "A_BYTES + B_BYTES"),
        Mistake("TMA signals its own block's `filled`",
                "cluster_address(filled + 8 * ring.stage, LEADER)",
                "cluster_address(filled + 8 * ring.stage, rank)"),
        Mistake("the second block's loader doesn't wait for `freed`",
                "                mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);\n",
                "                if (rank == LEADER)\n"
                "                    mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);\n"),
    )),
}


@lru_cache(maxsize=64)
def verdict(stem: str, mistake: Mistake | None) -> Verdict:
    """Compile and run a version with a mistake, or as it is, and say what the emulator says."""
    kernel, planted = find(stem), PLANTED[stem]
    variant = kernel.variant(planted.variant)
    text = text_of(kernel.source)
    if mistake is not None:
        text = edited(text, mistake.old, mistake.new)
    try:
        done = run(kernel, variant.problem(*planted.shape), variant=variant, backend="emulator",
                   races=True, trace=False, exact=True, sms=variant.grid.cluster, source=text,
                   schedule="lowest", landing="late")
    except ptx.Deadlock:
        return Verdict("deadlock: no lane can run", "none: it hangs")
    except ptx.Error as error:
        return Verdict(_error(str(error)), "none: it stops")
    hazards = done.emulated.hazards
    return Verdict(_hazard(hazards[0]) if hazards else "",
                   "right" if done.verdict.ok else "wrong")


def _error(message: str) -> str:
    """What an error says behind the place, without the addresses."""
    return re.sub(r", (?:at|block) .*$", "", message.splitlines()[0].rsplit(": ", 1)[-1])


def _hazard(hazard: Hazard) -> str:
    """A hazard's kind, and the two instructions, or what the one does."""
    if hazard.first and hazard.second:
        return (f"{hazard.kind}: `{_short(hazard.first.opcode)}`, then "
                f"`{_short(hazard.second.opcode)}`")
    of = str(hazard.first or hazard.second)
    return f"{hazard.kind}: it {hazard.message.removeprefix(of).strip().split(': ')[0]}"


def _short(opcode: str) -> str:
    """What an instruction is called, without its modifiers: ``tcgen05.ld``."""
    parts = opcode.split(".")
    return ".".join(parts[:4] if opcode.startswith("cp.async.bulk.tensor") else parts[:2])


def left_out(version: Version) -> None:
    """Display each mistake of a version, what the emulator reports, and whether C is right."""
    stem = version.kernel.stem
    planted = PLANTED[stem]
    rows = [(one.shown, found.says or "nothing", found.result)
            for one in planted.mistakes for found in [verdict(stem, one)]]
    whole = verdict(stem, None)
    table(("left out or changed", "the emulator reports", "C"), rows,
          f"emulated: {planted.variant}, {'×'.join(map(str, planted.shape))}, one run each, what "
          f"is asynchronous as late as may be; unchanged: {whole.says or 'no hazard'}, C "
          f"{whole.result}")
