"""What the tests of kernels share: the shapes and scalars that every version must get right."""

import inspect
import math
from functools import wraps
from itertools import combinations, groupby, product
from pathlib import Path
from types import SimpleNamespace

import pytest

from lib.compiler import arch as targets
from lib.gpus import ARCHITECTURES
from lib.kernels.catalogue import CATALOGUE, OWN
from lib.problem import ITEM_BYTES, Problem
from lib.ptx.core.errors import Error
from lib.run import runner
from tools.mutation import BUILD, Table, until_a_hazard

# Square, ragged on each side, one wide, and the ends of K.
SHAPES = (
    (64, 64, 64), (100, 99, 101), (33, 65, 31), (1, 1, 1), (1, 70, 40), (70, 1, 40), (31, 33, 1),
    (5, 7, 0), (1, 1, 200),
)
ALPHAS = BETAS = (0.0, 1.0, 0.5, -2.0)
SCALARS = tuple((alpha, beta) for alpha in ALPHAS for beta in BETAS)

# Of the architectures with rules of their own the ends: what is between them is slow.
OLDEST_AND_NEWEST = tuple(
    pytest.param(arch, marks=() if place in (0, len(ARCHITECTURES) - 1) else pytest.mark.slow)
    for place, arch in enumerate(ARCHITECTURES)
)

# What steps spill at most, B per thread, that ask for more than the registers hold: for a number of
# blocks per SM, or for fragments of twice the depth.
SPILLS = {
    ("12_wmma_pipeline", "eight_blocks"): 40, ("15_turing_limit", "prefetch"): 8,
    ("15_turing_limit", "unpadded"): 24, ("15_turing_limit", "k16"): 24,
}

# A tuned variant is one of its candidates, whichever suits the shape: these are here.
VARIANTS = [
    pytest.param(kernel, variant, id=f"{kernel.stem}-{variant.name}")
    for kernel in (*CATALOGUE.values(), *OWN.values())
    for variant in kernel.measured
    if not variant.candidates
]


def architectures(kernel, variant):
    """Return the architectures that a kernel's instantiation is legal on."""
    return targets.legal(kernel.oldest(variant))


def statements(kernel, variant):
    """What decides which statements of a kernel's source an instantiation has.

    Where two variants differ in sizes alone, in numbers that are 2 or more, they have the same: a
    tile of 64 rows and one of 128, two stages and four, but not one buffer and two.
    """
    constants = tuple(
        (name, min(value, 2) if isinstance(value, int) else value)
        for name, value in variant.constants.items()
        if name != "BLOCKS"  # a promise to the compiler
    )
    # An instruction of another size is another statement.
    constants += (("MMA_K", variant.constants.get("MMA_K")),)
    return (kernel.stem, variant.file, variant.function, type(variant.grid), variant.dtype,
            variant.grid.blocks_per_sm > 0, variant.out, variant.b_layout, constants)


def smallest_of_each(params):
    """Of variants that have the same statements the one with the smallest tile."""
    found = {}
    for param in sorted(params, key=lambda one: math.prod((*one.values[1].tile,
                                                           one.values[1].step))):
        found.setdefault(statements(*param.values), param)
    return list(found.values())


# The others are like one of these but for sizes, and are run on fewer problems.
REPRESENTATIVES = smallest_of_each(VARIANTS)
ALIKE = [param for param in VARIANTS if param not in REPRESENTATIVES]


def by_kernel(params):
    """Give each parameter set its place among those of its kernel: (place, of how many, set)."""
    kernels = {}
    for param in params:
        kernels.setdefault(param.values[0].stem, []).append(param)
    return [(place, len(same), param) for same in kernels.values()
            for place, param in enumerate(same)]


def dealt(params, choices, least):
    """Deal choices to the variants of each kernel in turn, as cards are.

    Every kernel gets every choice, and each of its variants `least` of them or more.

    Returns
    -------
    list of (param set, choice)
    """
    found = []
    for place, many, param in by_kernel(params):
        first = place % len(choices)
        mine = choices[first::many]
        following = (choices[(first + i) % len(choices)] for i in range(1, len(choices)))
        mine += [choice for choice in following if choice not in mine][:max(0, least - len(mine))]
        found += [(param, choice) for choice in mine]
    return found


def pairwise(*factors):
    """Rows of values, one of each factor: each two values of two factors meet in one of them."""
    def meetings(row):
        return set(combinations(enumerate(row), 2))

    rows = list(product(*map(range, map(len, factors))))
    found, missing = [], set().union(*map(meetings, rows))
    while missing:
        found.append(max(rows, key=lambda row: len(meetings(row) & missing)))
        missing -= meetings(found[-1])
    return [tuple(factor[place] for factor, place in zip(factors, row, strict=True))
            for row in found]


def on_architectures(params):
    """Parameter sets of (kernel, variant, arch): of each variant one, the others marked slow.

    The oldest and the newest that it is legal on are dealt to the variants of a kernel in turn; the
    first has both. What is between them is slow, but for kernels that begin there.
    """
    found = []
    for place, _, param in by_kernel(params):
        own = architectures(*param.values)
        ends = list(dict.fromkeys((own[0], own[-1])))
        for arch in own:
            taken = arch in ends if place == 0 else arch == ends[place % len(ends)]
            found.append(pytest.param(*param.values, arch, id=f"{param.id}-{arch}",
                                      marks=() if taken else pytest.mark.slow))
    return found


def slow_but(params, taken):
    """Mark parameter sets slow, but for those whose values are among the ones that are taken."""
    values = [param.values for param in taken]
    return [param if param.values in values else
            pytest.param(*param.values, id=param.id, marks=[*param.marks, pytest.mark.slow])
            for param in params]


def one_in(number, params):
    """Mark all but each nth of a kernel's parameter sets slow, of (kernel, variant, …)."""
    return slow_but(params, [param for place, _, param in by_kernel(params) if place % number == 0])


# Variants of other sizes than a representative's are slow on all.
ON_ARCHITECTURES = slow_but(
    on_architectures([*REPRESENTATIVES, *ALIKE]), on_architectures(REPRESENTATIVES)
)


# Orders of warps and of copies; but for the first they are slow.
LATE = {"schedule": "lowest", "landing": "late"}
ORDERS = [pytest.param(options, id=options["schedule"], marks=[pytest.mark.slow] if place else [])
          for place, options in enumerate((
              LATE,
              {"schedule": "random", "landing": "late", "seed": 3},
              {"schedule": "highest", "landing": "early"}))]


def two_each(variants, names, cases):
    """Parameter sets of (variant, *case): those named with two cases in turn, the rest slow."""
    tried = [(name, cases[(place + more) % len(cases)]) for place, name in enumerate(names)
             for more in (0, 1)]
    return [pytest.param(one, *case, id=f"{one.name} {case}",
                         marks=[] if (one.name, case) in tried else [pytest.mark.slow])
            for one in variants for case in cases]


def problem_of(variant, *shape, alpha=0.5, beta=0.0):
    """A variant's problem, whose C is added if it has no gates."""
    gates = variant.epilogue and variant.epilogue.fold == 2
    return variant.problem(*shape, alpha, 0.0 if gates else beta)


def legal(variant, M, N, K):
    """Round a shape up to one whose rows the variant can load, if it doesn't pack them, and store,
    if an epilogue reads there in pairs."""
    if not variant.row_bytes or variant.packing:
        return M, N, K
    unit = variant.row_bytes // ITEM_BYTES[variant.dtype]
    of_n = unit if variant.b_layout == "row" else 1
    if variant.epilogue:
        of_n = max(of_n, variant.row_bytes // ITEM_BYTES[variant.out])
    return M, -(-N // of_n) * of_n, -(-K // unit) * unit


@pytest.fixture(scope="module")
def table(request):
    """The table of a module's mutants, written down when all are through."""
    name = request.module.__name__.rpartition("test_")[2]
    table = Table(f"Mutants: {name}", getattr(request.module, "EQUIVALENTS", ()))
    yield table
    table.write(BUILD / ("mutants.md" if name == "mutants" else f"mutants_{name}.md"))


def on_changed(module, monkeypatch, runs):
    """How changed PTX of a kernel is run, as `Table.check` asks: by functions that run the kernel,
    through `emulate` of a module, on problems with all of its code."""
    emulate = inspect.unwrap(module.emulate)  # though another text's runs have taken its place

    def changed(text):
        def once(**options):
            @wraps(emulate)
            def mutated(compiled, *args, **more):
                # What ptxas merged only matters for counters, which are off.
                other = SimpleNamespace(ptx=text, name=compiled.name, arch=compiled.arch, merge={})
                return emulate(other, *args, **(more | options), turns=1 << 14)

            monkeypatch.setattr(module, "emulate", mutated)
            for run in runs:
                done = run()
                if done.launch.hazards or not done.verdict.ok:
                    break
            return done.launch, done.verdict.ok

        return once

    return changed


def clean(kernel, variant, *problem, **options):
    """Run a variant in the emulator, watched for races, on a problem or what makes one: it must be
    right and free of hazards."""
    if not isinstance(problem[0], Problem):
        problem = [variant.problem(*problem)]
    done = runner.run(kernel, *problem, variant=variant, **{
        "backend": "emulator", "exact": True, "races": True, "trace": False, **options})
    assert done.verdict.ok and not done.launch.hazards, (done.verdict, options)
    return done


def found_out(run, *settings):
    """What shows that a changed source is wrong: an error, a hazard or the result."""
    for options in settings:
        try:
            with until_a_hazard():
                done = run(**options)
        except Error as error:
            return str(error)
        if not done.verdict.ok:
            return str(done.verdict)
    return ""


def variant_of(item):
    """The kernel and the variant that a test is run with; None for others."""
    params = getattr(item, "callspec", SimpleNamespace(params={})).params
    kernel, variant = params.get("kernel"), params.get("variant")
    return (kernel.stem, variant.name) if kernel and variant else None


def by_variant(items):
    """Tests of a file, those of one variant after each other, where the first of them stands.

    A kernel is decoded once for all of them; few are kept decoded at a time.
    """
    first = {}
    keys = [variant_of(item) or place for place, item in enumerate(items)]
    for key in keys:
        first.setdefault(key, len(first))
    order = sorted(range(len(items)), key=lambda place: first[keys[place]])
    return [items[place] for place in order]


def pytest_collection_modifyitems(items):
    """Order the tests of each file of this folder by variant."""
    here = Path(__file__).parent
    for path, of_file in groupby(list(enumerate(items)), key=lambda one: one[1].path):
        if path.parent == here:
            places, tests = zip(*of_file, strict=True)
            items[places[0]:places[-1] + 1] = by_variant(tests)


def executions(instructions, lines, base):
    """How often warps execute an opcode: each instruction as often as its PTX line."""
    return sum(lines.get(one.ptx_line, (0, 0))[0] for one in instructions if one.base == base)
