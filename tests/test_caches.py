"""What caches hand to everybody can't be changed by anybody."""

import ctypes
import dataclasses
import functools
import gc
import importlib
import inspect
import pkgutil
import types
from pathlib import Path

import numpy as np
import pytest
from msgspec import Struct, structs

import lib
from lib import ptx
from lib.compiler.compiled import Compiled
from lib.compiler.raw_module import Kernel, RawModule
from lib.dispatch import parts
from lib.kernels.catalogue import KERNELS
from lib.kernels.frozen import FrozenDict
from lib.measure import patterns
from lib.problem import Epilogue
from lib.ptx.core.rounding import to_float32
from lib.ptx.core.syntax import Program
from lib.ptx.launch import Code
from lib.records import searches, store
from lib.records.schema import KernelRecord
from lib.run.runner import Run
from lib.show import fragment_maps as fragments
from lib.show import zoo
from lib.show.version import Version
from tests import built

PLAIN = (str, bytes, int, float, complex, bool, type(None), Path, np.generic, np.dtype)
# What is shared for its size, or stands for something outside Python: of these nobody is handed a
# part to change.
OPAQUE = (types.ModuleType, types.FunctionType, type, ctypes.CDLL, ptx.Trace, ptx.Module, Program,
          Code, Compiled, Kernel, RawModule, Run)


def changeable(value, place="", seen=None):
    """Where a value can be changed: a line for each list, dict, set or array that can be written.
    """
    seen = set() if seen is None else seen
    if isinstance(value, PLAIN) or isinstance(value, OPAQUE) or id(value) in seen:
        return
    seen.add(id(value))
    inside = []
    if isinstance(value, np.ndarray):
        if value.flags.writeable:
            yield place
    elif isinstance(value, FrozenDict | types.MappingProxyType):
        inside = [(f"{place}[{key!r}]", item) for key, item in value.items()]
    elif isinstance(value, tuple | frozenset):
        inside = [(f"{place}[{number}]", item) for number, item in enumerate(value)]
    elif isinstance(value, Struct) and value.__struct_config__.frozen:
        inside = [(f"{place}.{name}", item) for name, item in structs.asdict(value).items()]
    elif dataclasses.is_dataclass(value) and value.__dataclass_params__.frozen:
        inside = [(f"{place}.{name}", item) for name, item in vars(value).items()]
    else:
        yield f"{place}: {type(value).__name__}"
    for where, item in inside:
        yield from changeable(item, where, seen)


def caches():
    """Every cached function of lib, by name."""
    for name in [info.name for info in pkgutil.walk_packages(lib.__path__, "lib.")]:
        if name not in ("lib.__main__", "lib.torch"):
            module = importlib.import_module(name)
            for found in vars(module).values():
                if (isinstance(found, functools._lru_cache_wrapper)
                        and found.__wrapped__.__module__ == name):
                    yield f"{name}.{found.__name__}", found


def held(cache):
    """What a cache holds, as Python's garbage collector is told: a dict of results, or, of a
    bounded one, each link's key, result and type in a row.
    """
    referents = gc.get_referents(cache)
    for place, value in enumerate(referents):
        if isinstance(value, type) and value.__name__ == "_lru_list_elem":
            if type(referents[place - 1]) is not object:  # what parts named arguments in a key
                yield referents[place - 1]
        elif type(value) is dict and value is not cache.__dict__:
            yield from (one for one in value.values() if type(one).__name__ != "_lru_list_elem")


@pytest.fixture(scope="module")
def used():
    """Caches that have been asked for something."""
    list(store.every())
    searches.of(KERNELS["15_turing_limit"], KERNELS["15_turing_limit"].variants[0])
    Version("01_naive").traced()
    to_float32(np.zeros(1, np.uint8), "e4m3")
    fragments.maps()
    patterns.patterns()
    parts.candidates(Epilogue(), "float16", "float16", "row")
    zoo.compiled(zoo.specimens()[0], cured=True)
    found = dict(caches())
    for cache in found.values():
        parameters = inspect.signature(cache).parameters.values()
        if (all(one.default is not one.empty for one in parameters)
                and cache.__module__.startswith(("lib.show", "lib.compiler"))):
            cache()
    return found


def test_what_every_cache_holds_can_t_be_changed(used):
    values = [(name, value) for name, cache in used.items() for value in held(cache)]
    assert sum(isinstance(value, KernelRecord) for _, value in values) > 20
    assert len({name for name, _ in values}) > 15
    # What has been decoded of a program lies beside it, and grows with what is launched of it.
    assert {place for name, value in values for place in changeable(value, name)} <= {
        "lib.ptx.launch._read[1]: dict"}


def test_a_record_refuses_each_way_to_change_it(tmp_path):
    record = store.read(built.write(built.record(), tmp_path))
    variant = record.variants["coalesced"]
    for change in (lambda: record.variants.update(other=variant),
                   lambda: record.variants.pop("coalesced"), record.variants.clear,
                   lambda: record.variants.setdefault("other", variant),
                   lambda: record.variants.__ior__({}), record.chunks.popitem,
                   lambda: record.variants.__setitem__("coalesced", variant),
                   lambda: record.variants.__delitem__("coalesced"),
                   lambda: variant.bench.__setitem__(0, variant.bench[0])):
        with pytest.raises((TypeError, AttributeError)):
            change()
    with pytest.raises(AttributeError):
        record.kernel = "02_shared_tile"
    made = structs.replace(variant, bench=list(variant.bench), ptx={})
    assert made == variant and not list(changeable(made))
