"""The catalogue: names, launches, hashes, and that each version has its files."""


import pytest

from book import redirects
from lib.compiler import fingerprint
from lib.dispatch.fit import instantiations
from lib.dispatch.plan import plan
from lib.kernels import catalogue as kernels
from lib.kernels import spec as versions
from lib.kernels.catalogue import CATALOGUE, predecessor
from lib.paths import CUDA, ROOT
from lib.problem import Problem
from tests.tables import cases

NAIVE = CATALOGUE["01_naive"]


def test_every_entry_has_its_source_and_chapters_are_told_in_order():
    for stem, kernel in CATALOGUE.items():
        assert kernel.stem == stem
        assert kernel.source.exists()
    # Versions that have no chapter yet stand between those that have.
    assert [stem for stem in CATALOGUE if stem in kernels.in_book()] == list(kernels.in_book())
    chapters = {path.stem for path in redirects.notebooks(ROOT) if path.stem[0].isdigit()}
    assert chapters == set(kernels.in_book()) | set(kernels.OWN)


def test_every_numbered_source_is_in_the_catalogue():
    numbered = {path.stem for path in CUDA.glob("[0-9]*.cu")}
    assert numbered == set(CATALOGUE) | set(kernels.OWN)


def test_a_version_changes_the_one_before_it_or_the_one_it_names():
    stems = list(CATALOGUE)
    for place, (stem, kernel) in enumerate(CATALOGUE.items()):
        before = kernel.builds_on[:1] or tuple(stems[:place][-1:])
        assert tuple(one.stem for one in [predecessor(kernel)] if one) == before, stem
        assert all(stems.index(one) < place for one in (*before, *kernel.builds_on))
    assert predecessor(CATALOGUE["03_strip"]).stem == "02_shared_tile"


@pytest.mark.parametrize(
    "shape, word",
    [((65535 * 32 + 1, 1, 1), "M"), ((1, 2**31 - 1, 1), "N"), ((1, 1, 2**31 - 1), "K")],
)
def test_shapes_beyond_the_grid_or_the_index_are_refused_before_launch(shape, word):
    with pytest.raises(ValueError, match=f"^{word} = "):
        plan(NAIVE, NAIVE.variants[0], Problem(*shape))


def test_the_largest_shapes_are_not_refused():
    plan(NAIVE, NAIVE.variants[0], Problem(65535 * 32, 1, 1))
    plan(NAIVE, NAIVE.variants[0], Problem(1, 2**31 - 33, 2**31 - 33))


def test_variants_have_hashes_of_their_own():
    every = [(k, v) for k in CATALOGUE.values() for v in k.variants]
    assert len({k.hash(v) for k, v in every}) == len({(k.stem, k.expression(v)) for k, v in every})


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """The CUDA folder, copied so that a test can change it."""
    for path in CUDA.rglob("*.cu*"):
        target = tmp_path / path.relative_to(CUDA)
        target.parent.mkdir(exist_ok=True)
        target.write_text(path.read_text())
    monkeypatch.setattr(versions, "CUDA", tmp_path)
    return tmp_path


def test_the_hash_ignores_comments_and_white_space(copied):
    before = NAIVE.hash(NAIVE.variants[0])
    source = copied / "01_naive.cu"
    source.write_text("// a comment\n" + source.read_text().replace("    ", "\t /* so */ "))
    assert NAIVE.hash(NAIVE.variants[0]) == before


@pytest.mark.parametrize("name", ["01_naive.cu", "include/epilogue.cuh"])
def test_the_hash_sees_a_changed_line_of_the_file_or_a_header(copied, name):
    before = NAIVE.hash(NAIVE.variants[0])
    file = copied / name
    file.write_text(file.read_text().replace("alpha", "gamma"))
    assert NAIVE.hash(NAIVE.variants[0]) != before


def test_the_hash_of_a_time_ignores_marks_and_that_of_a_timeline_does_not(copied):
    variant = NAIVE.variants[0]
    before, marked = NAIVE.hash(variant), NAIVE.hash(variant, marks=True)
    for name in ("01_naive.cu", "include/timeline.cuh"):
        file = copied / name
        file.write_text(file.read_text().replace("MARK(STORE)", "MARK(LOAD)") + "\nint added;"
                        * name.endswith("cuh"))
    assert NAIVE.hash(variant) == before
    assert NAIVE.hash(variant, marks=True) != marked


def test_a_header_is_found_once_though_two_include_it():
    names = [path.name for path in fingerprint.included(NAIVE.source)]
    assert names == ["01_naive.cu", "epilogue.cuh", "timeline.cuh"]


VECTORIZED = CATALOGUE["06_vectorized"]


@cases("""
shape           | addresses        | reason
(128, 128, 128) | ()               |
(3, 4, 0)       | ()               |
(128, 99, 128)  | ()               | N = 99 is no multiple of 4
(128, 128, 101) | ()               | K = 101 is no multiple of 4
(8, 6, 7)       | ()               | N = 6 is no multiple of 4 and K = 7 is no multiple of 4
(8, 8, 8)       | (256, 512, 1024) |
(8, 8, 8)       | (256, 520, 1024) | a matrix is not aligned to 16 bytes
""")
def test_the_instantiation_that_rows_and_pointers_allow(shape, addresses, reason):
    """M may be anything."""
    problem = Problem(*shape)
    variant = VECTORIZED.variants[0]
    selected = plan(VECTORIZED, variant, problem, addresses)
    assert selected.reason == reason
    assert selected.variant.schedule.vec == (1 if reason else 4)
    assert selected.variant.name == variant.name
    assert selected.launch.block == (*variant.block, 1)
    assert selected.launch.grid == variant.grid.blocks(problem, variant.tile, variant.step, 132)
    if not reason:
        assert selected.variant is variant


@pytest.mark.parametrize("kernel", CATALOGUE.values(), ids=lambda k: k.stem)
def test_the_narrower_schedule_is_another_instantiation_of_the_template(kernel):
    for variant in kernel.variants:
        if narrow := variant.vectors.narrow:
            assert variant.schedule.vec > narrow["vec"] == 1
            narrower = variant.scheduled(**narrow).constants
            changed = {name for name, value in variant.constants.items()
                       if narrower[name] != value}
            assert "VEC" in changed and changed <= {name.upper() for name in narrow}


def test_an_instantiation_is_known_by_its_expression():
    limit = CATALOGUE["09_fp32_limit"]
    for size, narrow in ((256, False), (255, True)):
        problem = limit.variants[0].problem(size, size, size)
        for name in ("large", "medium"):
            chosen = plan(limit, limit.variant(name), problem, exact=True)
            assert bool(chosen.reason) == narrow
            assert name in instantiations(limit)[limit.expression(chosen.variant)]
    medium = instantiations(limit)[limit.expression(limit.variant("medium"))]
    assert medium == ["medium", "whole"]  # which differ in how they are launched
    assert "naive<1>" not in instantiations(NAIVE)


@pytest.mark.parametrize("stem", CATALOGUE)
def test_what_is_measured_is_known_by_its_own_code(stem):
    """A step may have the code of a variant's narrower form: it is its own all the same."""
    kernel = CATALOGUE[stem]
    names = instantiations(kernel)
    for variant in kernel.measured:
        if not variant.candidates and not variant.version:
            assert variant.name in names[kernel.expression(variant)]


def test_tiles_of_any_width_are_for_b_by_columns_alone():
    widths = [one for kernel in CATALOGUE.values() for one in kernel.menu
              if one.file.endswith("_widths")]
    assert widths and {one.b_layout for one in widths} == {"column"}
