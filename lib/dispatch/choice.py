"""A candidate that was chosen for a shape."""

from __future__ import annotations

from typing import NamedTuple


class Choice(NamedTuple):
    """The name of the variant that suits a shape, and why."""

    name: str
    reason: str
