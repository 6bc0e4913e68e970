"""The rule of Hopper's kernels, and which of its variants a problem is for."""

from __future__ import annotations

from lib.dispatch.fit import refusal
from lib.kernels.catalogue import RULES
from lib.kernels.spec import Variant
from lib.problem import Problem

RULE = RULES["hopper"]


def types_of(problem: Problem) -> Variant:
    """The rule's variant of a problem's types and layouts."""
    for variant in RULE.variants:
        if not refusal(variant, problem):
            return variant
    return RULE.variant("any_layout")
