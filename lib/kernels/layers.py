"""Products that people run: layers of public models for so many tokens, and random shapes.

A rule is fitted to some of them and judged by others, divided before anything is fitted: models,
numbers of tokens and random shapes are held out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from lib.kernels.hopper import BF16_COLUMN
from lib.problem import Problem

# Of each model the outputs and inputs of its layers: queries, keys and values together, the output
# of attention, gates and values of the feed-forward part together, and the way back.
Layers = tuple[tuple[int, int], ...]


def _decoder(width: int, attention: int, keys: int, inner: int) -> Layers:
    """Layers of a decoder: its width, that of all heads, of keys and values each, and inside."""
    return ((attention + 2 * keys, width), (width, attention), (2 * inner, width), (width, inner))


# What rules are fitted to, by the models' published configurations. DeepSeek-V3's are its
# projections to and from the latent vectors, the output, an expert.
FIRST: dict[str, Layers] = {
    "Llama 3 8B": _decoder(4096, 4096, 1024, 14336),
    "Qwen 2.5 7B": _decoder(3584, 3584, 512, 18944),
    "DeepSeek-V3": ((2112, 7168), (24576, 1536), (7168, 16384), (4096, 7168), (7168, 2048)),
    "GPT-2 medium": ((3072, 1024), (1024, 1024), (4096, 1024), (1024, 4096)),
}
FITTED: dict[str, Layers] = {
    **FIRST,
    "Llama 3 70B": _decoder(8192, 8192, 1024, 28672),
    "Qwen 2.5 32B": _decoder(5120, 5120, 1024, 27648),
    "Gemma 2 9B": _decoder(3584, 4096, 2048, 14336),
    "Mistral Small 24B": _decoder(5120, 4096, 1024, 32768),
}
HELD_OUT: dict[str, Layers] = {
    "Gemma 3 27B": _decoder(5376, 4096, 2048, 21504),
    "Yi 34B": _decoder(7168, 7168, 1024, 20480),
    "Qwen 3 4B": _decoder(2560, 4096, 1024, 9728),
    "GPT-2 XL": ((4800, 1600), (1600, 1600), (6400, 1600), (1600, 6400)),
}
TOKENS = (1, 8, 64, 512, 4096)
# Other numbers of tokens of the first models: those that a rule is fitted to, and those held out.
FITTED_TOKENS, HELD_OUT_TOKENS = (24, 1024), (40, 2048)
# Random shapes: how many of each seed, and the seeds that they are drawn from.
RANDOM = 24
FITTED_SEEDS, HELD_OUT_SEEDS = (35, 53), (71,)


class Asked(NamedTuple):
    """A product, and where it comes from: ``"Llama 3 8B, 64 tokens"``, or ``"random"``."""

    problem: Problem
    of: str


def products(held_out: bool) -> list[Asked]:
    """The products that a rule is fitted to, or those that are held out, each once."""
    if held_out:
        found = [*_layers(HELD_OUT, TOKENS), *_layers(FIRST, HELD_OUT_TOKENS)]
        known = {one.problem for one in products(held_out=False)}
    else:
        found = [*_layers(FITTED, TOKENS), *_layers(FIRST, FITTED_TOKENS)]
        known = set()
    for seed in HELD_OUT_SEEDS if held_out else FITTED_SEEDS:
        found += randomly(seed)
    every: dict[Problem, Asked] = {}
    for one in found:
        if one.problem not in known:
            every.setdefault(one.problem, one)
    return list(every.values())


def _layers(models: dict[str, Layers], tokens: tuple[int, ...]) -> Iterator[Asked]:
    for count in tokens:
        for model, layers in models.items():
            for N, K in layers:
                yield Asked(Problem(count, N, K, **BF16_COLUMN), f"{model}, {count} tokens")


def randomly(seed: int, count: int = RANDOM) -> list[Asked]:
    """Random products of FP16 by rows, C in FP32: sides log-uniform, any, or multiples of 8 or 64.

    Every fourth has a K under 64, and every fourth a long one with little C.
    """
    drawn = random.Random(seed)

    def side(least: int, greatest: int, unit: int) -> int:
        size: float = least * (greatest / least) ** drawn.random()
        return max(round(size / unit), 1) * unit

    found = []
    for number in range(count):
        unit = (1, 8, 64)[number // 4 % 3]
        if number % 4 == 0:
            sizes = side(16, 8192, unit), side(16, 8192, unit), side(4, 63, min(unit, 8))
        elif number % 4 == 1:
            sizes = side(8, 512, unit), side(8, 512, unit), side(4096, 32768, unit)
        else:
            sizes = side(8, 8192, unit), side(8, 8192, unit), side(64, 8192, unit)
        found.append(Asked(Problem(*sizes, dtype="float16"), "random"))
    return found
