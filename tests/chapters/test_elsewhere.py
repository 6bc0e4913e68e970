"""Chapters from a directory with nothing beside it, as Colab's: their own cells find their files.

`make test-colab` executes them there to their ends; this takes seconds.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from book import release
from tests.colab.runtime import LEFT_OUT, commit_tree, redirected

CHAPTERS = sorted(path.stem for path in (release.ROOT / "chapters").glob("*.ipynb"))


def dry_run(chapters: Path, content: Path, **env: str) -> dict[str, list[str]]:
    """Of each notebook in a folder, what its cells could not find when they ran from `content`."""
    environment = {key: value for key, value in os.environ.items() if key not in LEFT_OUT}
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("dry_run.py"), chapters, content], check=True,
        stdout=subprocess.PIPE, env=environment | env | {"PIP_NO_INDEX": "1"})
    return json.loads(done.stdout)


# Not once a module: a worker gets a kernel's tests of all modules, and comes here for each kernel.
@pytest.fixture(scope="session")
def missing(tmp_path_factory) -> dict[str, list[str]]:
    """Of each chapter, what its cells could not find on a played Colab."""
    origin, content = (tmp_path_factory.mktemp(name) for name in ("origin", "content"))
    commit_tree(origin)
    return dry_run(release.ROOT / "chapters", content, **redirected(origin))


@pytest.mark.parametrize("stem", CHAPTERS)
def test_a_chapter_finds_its_files_wherever_it_runs(missing, stem):
    assert missing[stem] == []
