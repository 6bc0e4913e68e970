"""Compile what a chapter's page carries: it stays behind when the rest goes to the browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from book.panel.mistakes import mistakes
from lib.dispatch.fit import forms
from lib.kernels.build import compile_kernel
from lib.kernels.spec import Kernel, Variant
from lib.panel import tasks
from lib.panel.bundle import HERE, Bundle, Instance
from lib.panel.session import Session
from lib.paths import ROOT
from lib.ptx.core.parser import with_files

MAX_VARIANTS = 4  # a click loads all of them


def offered(kernel: Kernel) -> list[Variant]:
    """The variants that a page offers.

    The first of those that the chapter shows, its exhibits, and what its tasks name.
    """
    shown: dict[str, Variant] = {}
    for variant in kernel.variants:
        shown.setdefault(kernel.expression(variant), variant)
    chosen = [*list(shown.values())[:MAX_VARIANTS], *kernel.exhibits]
    asked = (kernel.variant(name) for name in tasks.named(kernel.stem))
    return list({variant.name: variant for variant in (*chosen, *asked)}.values())


def bundle(kernel: Kernel) -> Bundle:
    """Compile a chapter's bundle.

    Of the first variant there is every form, so that it takes every shape; of the others there is
    the one that is named.
    """
    variants = offered(kernel)
    first = variants[0]
    chosen = [*forms(first), *([first.packing] if first.packing else []), *variants[1:]]
    instances = {}
    for variant in chosen:
        expression = kernel.expression(variant)
        if expression in instances:
            continue
        compiled = compile_kernel(kernel, variant, kernel.oldest(variants[0]))
        text = portable(compiled.ptx)
        instances[expression] = Instance(compiled.name, compiled.arch, text, compiled.merge)
    names = [variant.name for variant in variants]
    session = Session(Bundle(kernel.stem, names, instances))
    for variant in variants:
        expression = kernel.expression(variant)
        one = instances[expression]
        instances[expression] = replace(
            one, mistakes=mistakes(one.ptx, one.entry, session.executed(variant.name)))
    return Bundle(kernel.stem, names, instances)


def portable(ptx: str) -> str:
    """PTX whose files are named from the repository's folder, or as the toolkit's."""
    def name(file: str) -> str:
        path = Path(file)
        if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / ".venv"):
            return f"{HERE}{path.relative_to(ROOT).as_posix()}"
        return f"toolkit/{path.name}"

    return with_files(ptx, name)
