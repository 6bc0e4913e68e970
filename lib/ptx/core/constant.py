"""Tables that are computed once and handed to everybody: nobody can write to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


def read_only(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function return arrays that can't be written to: what a cache keeps of it."""
    @wraps(function)
    def made(*arguments: P.args, **named: P.kwargs) -> R:
        result = function(*arguments, **named)
        _protect(result)
        return result

    return made


def _protect(value: Any) -> None:
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, tuple):
        for item in value:
            _protect(item)
    elif is_dataclass(value):
        for one in fields(value):
            _protect(getattr(value, one.name))
