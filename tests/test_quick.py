"""The quick loop: which tests it takes for a change, in which order, and what it leaves out."""

from pathlib import Path

from tools import quick

SOURCES = {
    "lib/a.py": "", "lib/b.py": "from lib import a", "lib/c.py": "from .b import f",
    "lib/apart.py": "import numpy",
    "tests/test_b.py": "def test():\n    from lib import b",
    "tests/test_c.py": "from lib.c import f",
    "tests/test_apart.py": "import lib.apart",
    "tests/x/conftest.py": "import lib.b", "tests/x/test_x.py": "",
}


def test_imports_lead_from_a_change_to_tests_the_nearest_first():
    found = quick.distances(SOURCES, ["lib/a.py", "README.md"])
    assert found == {"lib/a.py": 0, "lib/b.py": 1, "tests/test_b.py": 2, "lib/c.py": 2,
                     "tests/x/conftest.py": 2, "tests/test_c.py": 3, "tests/x/test_x.py": 3}
    assert quick.nearest(found, {}, 1000) == (
        ["tests/test_b.py", "tests/test_c.py", "tests/x/test_x.py"], [])


def test_what_takes_too_long_is_left_out_but_for_what_was_changed_itself():
    found = {"tests/test_a.py": 0, "tests/test_b.py": 1, "tests/test_c.py": 2}
    seconds = {"tests/test_a.py": 50, "tests/test_b.py": 20, "tests/test_c.py": 4}
    assert quick.nearest(found, seconds, 10) == (["tests/test_a.py"],
                                                 ["tests/test_b.py", "tests/test_c.py"])
    assert quick.nearest(found, seconds, 56) == (["tests/test_a.py", "tests/test_c.py"],
                                                 ["tests/test_b.py"])


def test_a_header_leads_to_the_kernels_that_include_it():
    texts = {"cuda/01_a.cu": '#include "include/pairs.cuh"', "cuda/02_b.cu": "",
             "cuda/include/pairs.cuh": '#include "ring.cuh"', "cuda/include/ring.cuh": ""}
    assert quick.kernels_of("cuda/include/ring.cuh", texts) == ["01_a"]
    assert quick.kernels_of("cuda/02_b.cu", texts) == ["02_b"]


def test_a_model_of_this_repository_leads_to_its_own_tests_first():
    sources = {str(path.relative_to(quick.ROOT)): path.read_text("utf-8")
               for folder in ("lib", "tests") for path in (quick.ROOT / folder).rglob("*.py")}
    found = quick.distances(sources, ["lib/topics/memory/banks/model.py"])
    first = quick.nearest(found, {}, 30)[0]
    assert "tests/topics/test_banks.py" in first
    assert all(Path(quick.ROOT, path).is_file() for path in first)
    assert all(Path(quick.ROOT, path).is_file()
               for path in (*quick.ALWAYS, *quick.KERNEL_TESTS, *quick.CHAPTER_TESTS))
