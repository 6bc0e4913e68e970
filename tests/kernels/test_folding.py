"""What a card's lines fold: equal for every value that a name can have."""

import random

import pytest

from lib.kernels.folding import folded

SIGNS = {"*": lambda a, b: a * b, "/": lambda a, b: a // b, "%": lambda a, b: a % b}


def line(text, threads=256):
    return folded(text, threads).rstrip("\n")


def value(chain, number):
    """What a chain of products, quotients and remainders gives for a number, left to right."""
    name, *rest = chain.split()
    result = number if name == "i" else int(name)
    for sign, operand in zip(rest[::2], rest[1::2], strict=True):
        result = SIGNS[sign](result, int(operand))
    return result


@pytest.mark.parametrize("seed", range(40))
def test_a_chain_gives_what_it_gave(seed):
    draw = random.Random(seed)
    below = draw.choice([2, 4, 8, 16])
    chain = "i" + "".join(f" {draw.choice('*/%')} {draw.choice([1, 2, 4, 8, 32])}"
                          for _ in range(draw.randint(1, 4)))
    loop = f"for (int i = 0; i < {below}; ++i)"
    made = line(f"{loop} use({chain});")
    short = made.removeprefix(f"{loop} use(").removesuffix(");")
    assert len(short) <= len(chain)
    assert [value(short, i) for i in range(below)] == [value(chain, i) for i in range(below)]


@pytest.mark.parametrize("text, short", [
    ("const int am = threadIdx.x / 2 / 128 * 8;\nuse(am + k);", "use(k);"),
    ("int i = f();\nuse(i / 4);", "int i = f();\nuse(i / 4);"),  # whose bound nobody knows
    ("auto put = [&](int i) { use(i * 128 / 128 * 8); };",
     "auto put = [&](int i) { use(i * 8); };"),
    ("use(x * i * 4 / 4, -i / 2, (size_t)i * 8 / 4, i * 4 * n);",) * 2,  # bound to other things
    ("for (int i = 0; i < 4; ++i) {\n    const int k = i % 4;\n    a[k] = 0;\n}",
     "for (int i = 0; i < 4; ++i) {\n    a[i] = 0;\n}"),
    ("for (int i = 0; i < 1; ++i) {\n    const bool in = m < M && k < K;\n"
     "    load(&a[i * 4], in);\n}", "load(&a[0], m < M && k < K);"),
    ("const int row = f();\nfor (int i = 0; i < 1; ++i) {\n    const int row = g();\n"
     "    h(row + row);\n}",) * 2,  # a body's own name that is there already
])
def test_lines_are_folded_where_they_may_be(text, short):
    assert line(text) == short
