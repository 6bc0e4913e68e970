"""The kernels that the page "Try your own kernel" brings along, compiled when the book is built.

Each is a request as a link holds it (`lib.panel.trial.DEFAULT`): the first variant of each kernel
version, the bug that its exercise asks to mend, each mistake of the zoo, and what Triton and
numba-cuda compiled.
"""

from __future__ import annotations

import html
import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from book.panel import exercises
from book.panel.bundler import portable
from book.runtime_files import gzipped
from lib import ptx
from lib.compiler.signature import Type
from lib.dispatch.plan import plan
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import find
from lib.kernels.spec import Kernel, Variant
from lib.panel import form
from lib.panel.bundle import loads
from lib.paths import ROOT
from lib.problem import Problem
from lib.ptx.files import bytes_of, text_of
from lib.run.prepared import Step, lay_out
from lib.show.zoo import SETTINGS, Specimen, compiled, found, specimens

FOREIGN = ROOT / "tests" / "compiler" / "python_kernels"
FIRST = "missing_barrier"  # what the page shows before a click
NAMES = ("M", "N", "K", "alpha", "A", "B", "beta", "C")
SIDE = 128
# Types that NumPy lacks as words of the others: the bits of numbers from 0.25 to 1.
_BITS = {"bfloat16": "uint16", "uint8": "uint8"}
_FILLS = {"bfloat16": "16000..16255", "uint8": "40..56"}
_COMPILERS = {
    "triton_softmax_sm_75": dict(
        title="Triton: softmax of rows", grid=[64], shared=16,
        args=["out=float32[64,500]:nan", "x=float32[64,500]:normal", "stride=int32:500",
              "n=int32:500", "scratch=null", "profile=null"],
        expect="out = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)"),
    "triton_racing_sm_80": dict(
        title="Triton: a sum of blocks that race", grid=[8], shared=16,
        args=["x=float32[1024]:integers", "total=float32[1]:zeros", "n=int32:1024", "scratch=null",
              "profile=null"],
        expect="total = x.sum()"),
    "numba_saxpy_sm_80": dict(title="numba-cuda: saxpy", grid=[4], args=None, expect=""),
}


def examples(bundles: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """All examples; `bundles` has the text of each kernel version's bundle by its stem."""
    yield from map(_mistake, specimens())
    yield from (_version(stem, text) for stem, text in bundles.items())
    yield from filter(None, map(_bug, bundles))
    yield from (_foreign(name, **about) for name, about in _COMPILERS.items())


def _mistake(specimen: Specimen) -> dict[str, Any]:
    kernel = compiled(specimen, False)
    said = found(specimen)
    setting = next((one for one in SETTINGS
                    if f"{one['schedule']}, {one['landing']}" == said.setting), SETTINGS[0])
    text = text_of(specimen.path)
    headers = [name for name in ("asm.cuh", "cluster.cuh", "pair.cuh", "tcgen05.cuh")
               if f'"{name}"' in text]
    files = [specimen.path, *(specimen.path.parent / name for name in headers)]
    return {
        "group": "Mistakes", "name": specimen.name, "title": specimen.mistake,
        "ptx": portable(kernel.text), "kernel": kernel.name,
        "sources": {path.name: text_of(path) for path in files},
        "plain": specimen.name, "args": _labelled(specimen.words, kernel.signature),
        "grid": [specimen.grid], "block": [specimen.block],
        "shared": specimen.shared, "strict": True, **setting, "merge": _merge(kernel.merge),
    }


def _labelled(words: Sequence[str], signature: Sequence[Type]) -> list[str]:
    """Arguments with the names that the source has for them."""
    return [word if "=" in word or not kind.label else f"{kind.label}={word}"
            for word, kind in zip(words, signature, strict=True)]


def _merge(merge: Mapping[int, Any] | None) -> dict[int, Any] | None:
    return merge and {line: wide and tuple(wide) for line, wide in merge.items()}


def _version(stem: str, text: str) -> dict[str, Any]:
    kernel = find(stem)
    variant = kernel.variants[0]
    problem = variant.problem(SIDE, SIDE, SIDE)
    step = _step(kernel, variant, problem)
    file = kernel.file(step.variant)
    instance = loads(text).instances[kernel.expression(step.variant)]
    product = "A @ B.T" if problem.b_layout == "column" else "A @ B"
    numbers = problem.dtype in ("float32", "float16") and problem.out in ("float32", "float16")
    return {
        "group": "The book's kernels", "name": stem, "title": f"{stem[:2]} {kernel.title}",
        "ptx": portable(instance.ptx), "kernel": instance.entry,
        "sources": {file.name: text_of(file)},
        "expect": f"C = {product}" if numbers else "", "merge": _merge(instance.merge),
        **_launch(kernel, step),
    }


def _bug(stem: str) -> dict[str, Any] | None:
    """The bug that a chapter's exercise asks to mend."""
    bug = exercises.bug(stem)
    if bug is None:
        return None
    kernel = find(stem)
    step = _step(kernel, bug.variant, bug.problem, bug.sms)
    made = compile_kernel(kernel, step.variant, kernel.oldest(bug.variant), source=bug.text,
                          ptx_only=True)
    return {
        "group": "Bugs to mend", "name": exercises.name(stem),
        "title": f"{stem[:2]} {kernel.title}", "ptx": portable(made.ptx), "kernel": made.name,
        "sources": {kernel.file(step.variant).name: bug.text}, "expect": "", "merge": None,
        **_launch(kernel, step), **bug.options,
    }


def _step(kernel: Kernel, variant: Variant, problem: Problem, sms: int | None = None) -> Step:
    """The launch that makes a product."""
    chosen = plan(kernel, variant, problem, sms=sms, exact=True)
    matrices = tuple(None if one is None else np.asarray(one) for one in problem.inputs())
    return lay_out(chosen, problem, [matrices])[0][-1]


def _launch(kernel: Kernel, step: Step) -> dict[str, Any]:
    names = [*NAMES, *(f"p{i}" for i in range(len(NAMES), len(step.arguments)))]
    return {
        "plain": kernel.function, "template": kernel.expression(step.variant),
        "args": [f"{name}={_word(name, value, step.arguments[7])}"
                 for name, value in zip(names, step.arguments, strict=True)],
        "grid": list(step.launch.grid), "block": list(step.launch.block),
        "shared": step.launch.shared_bytes,
    }


def _word(name: str, value: Any, C: Any) -> str:
    """An argument of a launch in words, with a filling in place of what it holds."""
    if isinstance(value, ptx.TensorMap):
        box = ",".join(map(str, value.box))
        array = value.array
        inner = "C" if array is C or np.shares_memory(array, C) else _array(name, array)
        return f"map[{box}]:{inner}:{value.swizzle}"
    if isinstance(value, np.ndarray) and value.ndim:
        return _array(name, value)
    if isinstance(value, np.void):
        return f"bytes:{value.tobytes().hex()}"
    return f"{value.dtype}:{value:g}"


def _array(name: str, array: np.ndarray) -> str:
    kind = array.dtype.name
    shape = ",".join(map(str, array.shape))
    if name == "C":
        fill = "nan" if array.dtype.kind == "f" else "zeros"
    elif array.dtype.kind == "i" or name not in "AB" and kind == "float32" and array.ndim == 1:
        fill = "zeros" if array.dtype.kind == "i" else "nan"  # as workspace is before a launch
    else:
        fill = _FILLS.get(kind, "uniform")
    return f"{_BITS.get(kind, kind)}[{shape}]:{fill}"


def _foreign(name: str, title: str, grid: list[int], args: list[str] | None, expect: str,
             shared: int = 0) -> dict[str, Any]:
    text = lzma.decompress(bytes_of(FOREIGN / f"{name}.ptx.xz")).decode()
    first = form.kernels(ptx.Module(text).program)[0]
    return {"group": "Other compilers", "name": name, "title": title, "ptx": text,
            "kernel": first["name"], "plain": first["plain"], "sources": {},
            "args": args or first["args"], "grid": grid, "block": first["block"],
            "shared": shared, "expect": expect, "merge": None}


def write(target: Path, bundles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Write each example to a file, packed, and return all of them."""
    target.mkdir(parents=True, exist_ok=True)
    every = list(examples(bundles))
    for one in every:
        data = json.dumps(one, separators=(",", ":")).encode()
        (target / f"{one['name']}.json.gzip").write_bytes(gzipped(data))
    return every


def options(every: list[dict[str, Any]]) -> str:
    """The examples as a list to choose from."""
    groups: dict[str, list[str]] = {}
    for one in every:
        groups.setdefault(one["group"], []).append(
            f'<option id="example={one["name"]}" value="{one["name"]}">'
            f"{html.escape(_title(one))}</option>")
    return "".join(f'<optgroup label="{html.escape(name)}">{"".join(rows)}</optgroup>'
                   for name, rows in groups.items())


def _title(one: Mapping[str, Any]) -> str:
    short = one["title"] if len(one["title"]) < 90 else f"{one['title'][:88]}…"
    return short if one["group"] != "Mistakes" else f"{one['name']}: {short}"
