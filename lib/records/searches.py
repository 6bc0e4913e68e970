"""The recorded search of tiles that `lib.dispatch` is handed: what candidates took on which shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from lib.kernels.spec import Kernel, Variant
from lib.records import store as records
from lib.records.schema import Search, Searched, SearchRecord

# The GPU whose recorded search is followed, also on others: a search of their own is one command.
SEARCHED_ON = "H100"


def of(kernel: Kernel, variant: Variant) -> Sequence[Searched]:
    """The shapes on which a variant's candidates were timed.

    None where it has no candidates, or a model chooses among them, or nothing is recorded.
    """
    if variant.by_rule or not variant.candidates:
        return ()
    found = _searches().get(f"{kernel.stem}/{variant.name}")
    return found.rows if found else ()


def forget() -> None:
    """Let the search be read again: another one has been recorded."""
    _searches.cache_clear()


@lru_cache(maxsize=1)
def _searches() -> Mapping[str, Search]:
    record = records.load(SearchRecord, SEARCHED_ON)
    return record.searches if record else {}
