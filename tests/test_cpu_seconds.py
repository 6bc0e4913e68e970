"""What the tests cost, by folder: counted, and held against the shares that CONTRIBUTING names."""

import re
import subprocess
import sys

from lib.paths import ROOT
from tests import cpu_seconds


def test_shares_are_of_the_whole_and_contributing_names_the_same():
    assert sum(cpu_seconds.BUDGET.values()) == 100
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| `(\w+)` \| (\d+) % \|", text, re.M))
    assert all((ROOT / "tests" / name).is_dir() for name in table) and len(table) > 5
    assert all(cpu_seconds.BUDGET[name] == int(share) for name, share in table.items())


def test_a_folder_over_its_share_is_named_in_a_run_of_all():
    seconds = {"tests/a/test_x.py": 100.0, "tests/a/isa/test_y.py": 60.0,
               "tests/b/test_z.py": 160.0, "tests/c/test_small.py": 1.0, "tests/test_root.py": 1.0}
    lines = cpu_seconds.lines(seconds, {"a": 60, "b": 30, "the rest": 10})
    assert [line.split()[0] for line in lines] == ["all", "a", "b", "the"]
    assert [line for line in lines if "over its share" in line] == [lines[2]]
    few = {file: took / 10 for file, took in seconds.items()}
    assert not any("over" in line for line in cpu_seconds.lines(few, {"a": 60, "b": 30}))


def test_a_run_of_few_tests_does_not_say_what_all_of_a_kernel_take():
    stored = {"tests/a/test_x.py": 100.0, "01_naive": 50.0}
    few = {"tests/a/test_x.py": 20.0, "01_naive": 0.0, "tests/b/test_new.py": 3.0}
    assert cpu_seconds.updated(stored, few) == stored | {"tests/b/test_new.py": 3.0}
    whole = {"tests/a/test_x.py": 70.0, "tests/b/test_y.py": 400.0, "01_naive": 40.0}
    assert cpu_seconds.updated(stored, whole) == whole


def test_what_runs_below_a_process_is_counted_while_it_runs_and_afterwards():
    before = cpu_seconds.used()
    busy = "import time\nwhile time.process_time() < 0.5: pass\nprint('done', flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        running = cpu_seconds.used() - before
        process.communicate("\n")
    ended = cpu_seconds.used() - before
    assert ended >= 0.4 and (running >= 0.4 or sys.platform != "linux")
