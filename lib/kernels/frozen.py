"""Values that nobody can change, so that everybody may be handed the same one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn


class FrozenDict(dict[Any, Any]):
    """A mapping that nobody can change. It prints as a dict does."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("what everybody is handed can't be changed: make another of it, by "
                        "msgspec.structs.replace or dataclasses.replace")

    __setitem__ = __delitem__ = __ior__ = update = _refuse
    clear = pop = popitem = setdefault = _refuse

    def __reduce__(self) -> tuple[type, tuple[dict[Any, Any]]]:
        return FrozenDict, (dict(self),)


# One object, so that a part without anything there is known to have its default.
EMPTY: Final[Mapping[Any, Any]] = FrozenDict()


def frozen(value: Any) -> Any:
    """A value whose lists are tuples and whose dicts can't be changed, at any depth."""
    if isinstance(value, dict):
        return FrozenDict((key, frozen(item)) for key, item in value.items()) or EMPTY
    return tuple(map(frozen, value)) if isinstance(value, list) else value
