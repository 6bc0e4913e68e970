"""The quick loop: which tests it takes for a change, and in which order."""

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
    assert quick.nearest(SOURCES, ["lib/a.py", "README.md"]) == [
        "tests/test_b.py", "tests/test_c.py", "tests/x/test_x.py"]


def test_what_it_names_is_there():
    named = (quick.ALWAYS, quick.WORKLOGS, *quick.KERNEL_TESTS, *quick.CHAPTER_TESTS)
    assert all((quick.ROOT / path).is_file() for path in named)
