"""The claims ledger: what the two source texts assert, and what the evidence says.

Ids beginning with D are from the double-buffering tutorial, with W from the worklog
(``lessup2026doublebuffer`` and ``danepham2026worklog`` in ``chapters/references.bib``). The table
is ``claims.toml``; its lines are Python, in the names of `lib.claims.evidence`.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lib.claims import evidence, history
from lib.claims.evidence import Missing
from lib.gpus import data_bytes_per_clock
from lib.ptx.files import text_of
from lib.records.sweeps import gain, intensity, tile_of
from lib.show.bottleneck import longest
from lib.show.double_buffer import period
from lib.show.markdown import markdown as table

REPRODUCED = "reproduced"
CONTRADICTED = "contradicted"
NOT_TESTABLE = "not testable here"
NOT_YET = "not yet judged"
VERDICTS = (REPRODUCED, CONTRADICTED, NOT_TESTABLE, NOT_YET)
KINDS = ("measured", "recorded", "emulated", "modelled", "reported")
SOURCES = {"D": "lessup2026doublebuffer", "W": "danepham2026worklog"}
# The worklog's claims are of this GPU, the tutorial's of a laptop's that nobody is asked for.
CLAIMED_OF, FOLDER = "T4", "results/t4/"
# What the table's lines may name.
NAMES: Mapping[str, Any] = {
    "__builtins__": {each.__name__: each for each in (
        abs, all, any, dict, int, len, list, map, max, min, range, set, sorted, sum, tuple, zip)},
    **{name: value for name, value in vars(evidence).items()
       if getattr(value, "__module__", "") == evidence.__name__},
    **{each.__name__: each for each in (
        data_bytes_per_clock, gain, intensity, longest, period, tile_of)},
    "TENSOR_CORES_PER_SM": evidence.TENSOR_CORES_PER_SM, "history": history,
    "isclose": math.isclose, "log2": math.log2,
}


@dataclass(frozen=True)
class Claim:
    """One thing that a source asserts, and how it is judged."""

    id: str  # ``D`` or ``W`` and a number
    chapter: str  # stem of the chapter that it is about
    claim: str  # in our words
    verdict: str  # the sentence, with figures in braces
    evidence: tuple[str, ...]  # its kinds, out of `KINDS`
    where: str  # where in the repository, or in which publication, the evidence is
    holds: str = ""  # whether it is reproduced
    kind: str = ""  # the verdict, where no figure decides it
    figures: Mapping[str, str] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """Citation key of the text that makes the claim."""
        return SOURCES[self.id[0]]


@dataclass(frozen=True)
class Verdict:
    """What the evidence says about a claim."""

    claim: Claim
    kind: str  # one of `VERDICTS`
    sentence: str  # why, with the numbers


def _read(text: str) -> tuple[Claim, ...]:
    return tuple(Claim(**{
        "id": name, **row, **{key: " ".join(row[key].split()) for key in ("claim", "verdict",
                                                                        "where")}})
        for name, row in tomllib.loads(text).items())


CLAIMS = _read(text_of(Path(__file__).with_name("claims.toml")))


def judged(claim: Claim, given: Mapping[str, Any] | None = None) -> Verdict:
    """Judge a claim by its figures, of which some may be given in place of the evidence's.

    One that misses a record is not yet judged; the sentence says what is missing.
    """
    names = dict(NAMES)
    try:
        for name, line in claim.figures.items():
            names[name] = given[name] if given and name in given else _value(line, names)
        kind = claim.kind or (REPRODUCED if _value(claim.holds, names) else CONTRADICTED)
        return Verdict(claim, kind, _value(f'f"""{claim.verdict}"""', names))
    except Missing as missing:
        return Verdict(claim, NOT_YET, f"Not recorded yet: {missing.args[0]}.")


def _value(line: str, names: dict[str, Any]) -> Any:
    return eval(" ".join(line.split()), names)


def verdicts(chapter: str | None = None) -> list[Verdict]:
    """Every claim's verdict, or those of one chapter."""
    return [judged(claim) for claim in CLAIMS if chapter in (None, claim.chapter)]


def markdown(chapter: str | None = None) -> str:
    """Claims and verdicts as a Markdown table, those of one chapter or all; the judged ones first.

    Three columns, so that it can be read on a phone.
    """
    cells = []
    for one in sorted(verdicts(chapter), key=lambda one: one.kind == NOT_YET):
        text = f"**{one.kind}**. {one.sentence}"
        if one.kind != NOT_YET:
            text += f" *{', '.join(one.claim.evidence)}*: {one.claim.where}"
        cells.append((one.claim.id, *(
            words.replace("|", "\\|") for words in (one.claim.claim, text))))
    return table(("id", "the claim", "the verdict, and its evidence"), cells)


def summary() -> str:
    """How many claims have each verdict, and which a record of a T4 would settle, in Markdown."""
    found = verdicts()
    kinds = [one.kind for one in found]
    counted = ", ".join(f"**{kinds.count(kind)}** {kind}" for kind in VERDICTS)
    text = f"Of {len(kinds)} claims: {counted}."
    if names := [one.claim.id for one in waiting(found)]:
        text += (
            f"\n\n{len(names)} of them are about a {CLAIMED_OF} and judged by what another GPU "
            f"measured: {', '.join(names)}. They wait for a {CLAIMED_OF}'s own record, which "
            "`python -m lib record` makes there."
        )
    return text


def waiting(found: Iterable[Verdict]) -> list[Verdict]:
    """Claims about a T4 that were judged by the records of other GPUs."""
    return [one for one in found if one.claim.id.startswith("W") and one.kind != NOT_YET
            and "recorded" in one.claim.evidence and FOLDER not in one.claim.where]
