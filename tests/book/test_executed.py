"""Execution of notebooks: outputs as from a kernel, and executed again only when it must be."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book import executed, execution
from lib.paths import ROOT

pytestmark = pytest.mark.chapters
WITHOUT_GPU = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}


def notebook(folder, *sources, name="a"):
    path = folder / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [new_code_cell(source, id=f"c{i}") for i, source in enumerate(sources)]
    path.write_text(nbformat.writes(new_notebook(cells=[new_markdown_cell("# A"), *cells])))
    return path


def run(folder, *sources, timeout=60):
    path = notebook(folder, *sources)
    [(_, done)] = execution.execute([path], timeout=timeout, env=WITHOUT_GPU)
    return done, [cell.outputs for cell in done.notebook.cells if cell.cell_type == "code"]


def test_outputs_are_those_of_a_kernel(tmp_path):
    done, outputs = run(
        tmp_path,
        "import sys\nprint('a')\nprint('b')\nprint('c', file=sys.stderr)\n1 + 1",
        "from IPython.display import HTML, Image, Markdown, display\n"
        "display(HTML('<b>x</b>'))\ndisplay(Markdown('*y*'))\n'quiet';",
        "print('seen')\ndisplay(Image(data=b'\\x89PNG', format='png'))",
        "import asyncio\nawait asyncio.sleep(0, 'waited')",
    )
    assert done.error == ""
    first = outputs[0]
    assert [(o.output_type, o.get("name")) for o in first] == [
        ("stream", "stdout"), ("stream", "stderr"), ("execute_result", None)]
    assert first[0].text == "a\nb\n" and first[2].data == {"text/plain": "2"}
    assert first[2].execution_count == 1
    assert [o.data.get("text/html") or o.data["text/markdown"] for o in outputs[1]] == [
        "<b>x</b>", "*y*"]
    assert outputs[2][0].text == "seen\n" and outputs[2][1].data["image/png"] == "iVBORw=="
    assert outputs[3][0].data["text/plain"] == "'waited'"
    assert done.notebook.metadata.language_info.pygments_lexer == "ipython3"
    nbformat.validate(done.notebook)


@pytest.mark.parametrize(("source", "said", "timeout"), [
    ("1 / 0", "ZeroDivisionError: division by zero", 60),
    ("def f(:", "SyntaxError", 60),
    ("raise SystemExit(3)", "SystemExit", 60),
    ("from IPython.display import update_display\nupdate_display(1, display_id='x')",
     "nothing updates it", 60),
    ("from IPython.display import clear_output\nclear_output()", "nothing clears it", 60),
    ("while True:\n    pass", "may take 2 s", 2),
])
def test_a_cell_that_fails_is_named_and_ends_its_notebook(tmp_path, source, said, timeout):
    done, outputs = run(tmp_path, "print('before')", source, "print('after')", timeout=timeout)
    assert said in done.error and "\x1b" not in done.error
    assert source in done.error and "c1" in done.error
    assert outputs[0] and not outputs[2]


def test_a_process_that_ends_is_told(tmp_path):
    done, _ = run(tmp_path, "import os\nos._exit(5)")
    assert done.error == "the process ended with status 5"


def test_each_notebook_has_a_process_of_its_own(tmp_path):
    paths = [
        notebook(tmp_path / name, "import os, sys\nprint(os.getcwd(), 'left' in globals())\n"
                 "left = sys.modules['json'].left = 1\nprint(os.getpid())", name=name)
        for name in ("a", "b", "c")
    ]
    done = dict(execution.execute(paths, timeout=60, workers=2, env=WITHOUT_GPU))
    texts = [done[path].notebook.cells[1].outputs[0].text.splitlines() for path in paths]
    assert [text[0] for text in texts] == [f"{path.parent} False" for path in paths]
    assert len({text[1] for text in texts}) == 3


def test_what_it_used_and_what_it_cost_is_known(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "used.py").write_text("")
    (tmp_path / "lib" / "other.py").write_text("")
    (tmp_path / "read.json").write_text("")
    path = notebook(
        tmp_path / "chapters",
        "import sys, os\nsys.path.insert(0, '../lib')\nimport used\nopen('../read.json').close()\n"
        "open('../written', 'w').close()\nos.path.exists('../gone') or 0\n"
        "try:\n    open('../missing')\nexcept OSError:\n    pass\n"
        "sys.audit('gemm.figures drawn', 2)\nsys.audit('gemm.figures drawn', 1)")
    [(_, done)] = execution.execute([path], timeout=60, root=tmp_path, env=WITHOUT_GPU)
    assert done.used == ["lib/used.py", "missing", "read.json"]
    assert done.work == {"figures drawn": 3}
    assert 0 < done.seconds < 60


def test_lib_says_what_work_it_does(tmp_path):
    done, _ = run(tmp_path, f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
                  "from lib import chapter\nfrom lib.problem import Problem\n"
                  "from lib.gpus import GPUS\nfrom lib.show.display import show\n"
                  "from lib.show import method\n"
                  "page = chapter.Chapter('01_naive')\n"
                  "_ = page.run(Problem(48, 32, 8), backend='emulator')\n"
                  "show(method.draw(GPUS['H100']))")
    assert done.error == ""
    assert done.work == {"kernels compiled": 1, "kernels disassembled": 1, "blocks emulated": 2,
                         "figures drawn": 1}
    # Of the kernels its own alone, though the search for headers starts a Python: a comment in
    # another's source executes nothing.
    assert [path for path in done.used if path.endswith(".cu")] == ["cuda/01_naive.cu"]


def test_the_end_of_the_process_that_forks_is_told(tmp_path):
    path = notebook(tmp_path, "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)")
    with pytest.raises(execution.Ended, match="ended with status -9"):
        list(execution.execute([path], timeout=60, env=WITHOUT_GPU))


def test_what_executes_ends_with_who_asked(tmp_path):
    """SIGTERM ends a command, the process that forks for it and the notebook's own."""
    path = notebook(tmp_path, "import os, time\n"
                    "print(os.getpid(), os.getppid(), file=open('pids', 'w'))\ntime.sleep(600)")
    before, pids = path.read_bytes(), tmp_path / "pids"
    with subprocess.Popen([sys.executable, "-m", "lib", "notebooks", "--execute", path], cwd=ROOT,
                          env=WITHOUT_GPU, text=True, stderr=subprocess.PIPE) as command:
        wait(lambda: pids.exists() and pids.read_text().endswith("\n"))
        command.terminate()
        assert command.communicate(timeout=10)[1] == ""
    assert command.returncode == -signal.SIGTERM and path.read_bytes() == before
    wait(lambda: not any(map(runs, pids.read_text().split())))


def wait(until):
    deadline = time.monotonic() + 60
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def runs(pid):
    """Whether a process is there, and no zombie that nobody has waited for."""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def small(tmp_path):
    """A repository of two chapters that use a module each, and one in common."""
    shutil.copy(ROOT / "_config.yml", tmp_path)
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: chapters/a\nchapters:\n  - file: chapters/b\n")
    (tmp_path / "lib").mkdir()
    for name in ("common", "for_a", "for_b"):
        (tmp_path / "lib" / f"{name}.py").write_text("WORD = 'first'\n")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "one.json").write_text("1")
    for name, read in (("a", "open('../results/one.json').read()"), ("b", "'nothing'")):
        notebook(tmp_path / "chapters", "import sys\nsys.path.insert(0, '../lib')\nimport common\n"
                 f"import for_{name} as own\nprint(common.WORD, own.WORD, {read})", name=name)
    return tmp_path


def test_a_chapter_that_cannot_be_kept_ends_the_others(small):
    """A full disk: nothing is taken for an executed chapter, and nothing goes on."""
    notebook(small / "chapters", "import os, time\nprint(os.getpid(), file=open('pid', 'w'))\n"
             "time.sleep(600)", name="b")
    notebook(small / "chapters", "import os, time\nwhile not os.path.exists('pid'):\n"
             "    time.sleep(0.02)", name="a")
    stored = executed.place(small, "chapters/a")
    stored.parent.mkdir(parents=True)
    stored.symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"a\.ipynb") as error:
        executed.bring_up_to_date(small, ["chapters/a", "chapters/b"])
    assert error.value.errno == errno.ENOSPC
    assert not [file for file in (small / "_build").rglob("*") if file.is_file()]
    wait(lambda: not runs((small / "chapters" / "pid").read_text().strip()))


def shown(root, name):
    text = (root / f"chapters/{name}.ipynb").read_text()
    return executed.merged(root, f"chapters/{name}", text).cells[1].outputs[0].text


def test_a_chapter_is_executed_again_when_what_it_used_changes_and_only_then(small):
    def stale():
        return sorted(name[-1] for name in executed.bring_up_to_date(small))

    assert stale() == ["a", "b"]
    assert shown(small, "a") == "first first 1\n" and shown(small, "b") == "first first nothing\n"
    assert stale() == []
    for file, text, expected in (
        ("lib/for_a.py", "WORD = 'second'\n", ["a"]), ("lib/for_b.py", "WORD = 'second'\n", ["b"]),
        ("lib/common.py", "WORD = 'second'\n", ["a", "b"]), ("results/one.json", "2", ["a"]),
        ("results/two.json", "2", ["a", "b"]), ("lib/unused.py", "", []),
        ("README.md", "words", []), ("cuda/include/new.cuh", "", ["a", "b"]),
    ):
        (small / file).parent.mkdir(parents=True, exist_ok=True)
        (small / file).write_text(text)
        assert (file, stale()) == (file, expected)
    assert shown(small, "a") == "second second 2\n"
    (small / "lib/for_b.py").touch()
    assert stale() == []
    (small / "results/two.json").unlink()
    assert stale() == ["a", "b"]


def test_words_alone_need_no_run_and_code_does(small):
    executed.bring_up_to_date(small)
    path = small / "chapters" / "a.ipynb"
    document = nbformat.read(path, 4)
    document.cells[0].source = "# New words"
    path.write_text(nbformat.writes(document))
    assert executed.bring_up_to_date(small) == []
    merged = executed.merged(small, "chapters/a", path.read_text())
    assert merged.cells[0].source == "# New words" and merged.cells[1].outputs
    document.cells[1].source += "\nprint('more')"
    path.write_text(nbformat.writes(document))
    with pytest.raises(executed.ExecutionFailed, match="not executed as it is"):
        executed.merged(small, "chapters/a", path.read_text())
    assert executed.bring_up_to_date(small) == ["chapters/a"]


def test_a_failure_is_not_kept_and_the_others_are(small):
    notebook(small / "chapters", "raise RuntimeError('no')", name="a")
    for _ in range(2):
        with pytest.raises(executed.ExecutionFailed, match="chapters/a: cell c0") as failure:
            executed.bring_up_to_date(small)
        assert "RuntimeError" in str(failure.value)
        assert shown(small, "b")
    assert not executed.place(small, "chapters/a").exists()


def test_a_mistake_in_a_chapter_s_own_cells_is_told_before_others_are_executed(small):
    executed.bring_up_to_date(small)
    b = executed.place(small, "chapters/b")
    before = b.stat().st_mtime_ns
    notebook(small / "chapters", "raise RuntimeError('no')", name="a")
    (small / "lib" / "common.py").write_text("WORD = 'third'\n")  # both would have to be
    with pytest.raises(executed.ExecutionFailed, match="chapters/a: cell c0"):
        executed.bring_up_to_date(small)
    assert b.stat().st_mtime_ns == before


def test_what_is_kept_of_a_removed_chapter_is_removed(small):
    executed.bring_up_to_date(small)
    (small / "_toc.yml").write_text("format: jb-book\nroot: chapters/a\n")
    assert executed.bring_up_to_date(small) == []
    assert not executed.place(small, "chapters/b").exists()
    assert executed.place(small, "chapters/a").exists()


def test_a_chapter_that_starts_another_python_depends_on_all_of_lib(small):
    notebook(small / "chapters", "import subprocess, sys\n"
             "_ = subprocess.run([sys.executable, '-c', ''], check=True)", name="b")
    executed.bring_up_to_date(small)
    (small / "lib" / "for_a.py").write_text("WORD = 'third'\n")
    assert sorted(executed.bring_up_to_date(small)) == ["chapters/a", "chapters/b"]
