"""Who of a spread run gets which tests, and what the collector of garbage looks through."""

import gc
from types import SimpleNamespace

import pytest
from xdist.workermanage import parse_tx_spec_config

from lib.kernels.catalogue import CATALOGUE
from lib.ptx import launch
from tests import garbage, scheduling
from tests.kernels.conftest import by_variant

STEM = next(iter(CATALOGUE))
KERNEL = f"tests/kernels/test_emulator.py::test_x[{STEM}-y]"


def test_tests_of_a_kernel_stay_together_but_for_those_that_share_a_browser():
    assert scheduling.kernel_of(KERNEL) == STEM
    assert scheduling.kernel_of(f"tests/run/test_gemm.py::test_z[a-{STEM}]") == STEM
    assert scheduling.kernel_of(f"tests/panel/test_panel.py::test_z[{STEM}]") is None
    assert scheduling.kernel_of("tests/test_problem.py::test_z[square]") is None


class Worker:
    """Takes what it is given, as a worker of xdist's does."""

    shutting_down = False

    def __init__(self):
        self.assigned, self.config = [], None
        self.gateway = SimpleNamespace(id="gw0")

    def send_runtest_some(self, indices):
        self.assigned += indices

    def shutdown(self):
        self.shutting_down = True


def test_what_takes_longest_is_handed_out_first(monkeypatch):
    seconds = {"tests/test_long.py": 90.0, "tests/test_short.py": 0.5}
    monkeypatch.setattr(scheduling, "stored_seconds", lambda: seconds)
    settings = {"tx": ["1*popen"]}
    config = SimpleNamespace(getvalue=settings.get, getoption=settings.get,
                             option=SimpleNamespace(loadscopereorder=True))
    assert len(parse_tx_spec_config(config)) == 1
    scheduler = scheduling.ByKernel(config, SimpleNamespace(loadscopesched=lambda *said: None))
    # As xdist has it, the many of the short module would come first, and the long one last.
    tests = [*(f"tests/test_short.py::test_{i}" for i in range(9)), "tests/test_new.py::test_a",
             "tests/test_long.py::test_a", "tests/test_long.py::test_b", KERNEL]
    worker = Worker()
    scheduler.add_node(worker)
    scheduler.add_node_collection(worker, tests)
    scheduler.schedule()
    for done in range(len(tests)):
        scheduler.mark_test_complete(worker, worker.assigned[done])
    assert [tests[index] for index in worker.assigned] == [
        KERNEL, *tests[10:12], "tests/test_new.py::test_a", *tests[:9]]


def test_a_kernel_of_no_record_comes_first():
    assert scheduling.expected(STEM, {}) > scheduling.expected("tests/a.py", {"tests/a.py": 500.0})
    assert scheduling.expected(STEM, {STEM: 40.0}) == 40.0
    assert scheduling.expected("tests/a.py::TestOne", {"tests/a.py": 5.0}) == 5.0


def test_what_was_there_before_the_tests_is_set_aside_and_their_garbage_is_not():
    assert gc.isenabled() and gc.get_freeze_count() > 100_000
    assert gc.get_threshold()[0] == garbage.ROUND

    class Cycle:
        ended = []

        def __del__(self):
            self.ended.append(True)

    one = Cycle()
    one.itself = one
    del one
    gc.collect()
    assert Cycle.ended == [True]


def test_what_is_kept_for_the_next_test_is_let_go_of():
    launch._read("", None)
    assert launch._read.cache_info().currsize
    garbage.forget()
    assert not launch._read.cache_info().currsize


def test_tests_of_a_variant_follow_each_other_and_keep_their_order():
    def test(name, kernel=None, variant=None):
        params = {"kernel": SimpleNamespace(stem=kernel), "variant": SimpleNamespace(name=variant)}
        spec = {"callspec": SimpleNamespace(params=params)} if kernel else {}
        return SimpleNamespace(name=name, **spec)

    tests = [test("a1", "a", "x"), test("a2", "a", "y"), test("plain"), test("b1", "b", "x"),
             test("a3", "a", "x"), test("b2", "b", "x"), test("other")]
    assert [one.name for one in by_variant(tests)] == [
        "a1", "a3", "a2", "plain", "b1", "b2", "other"]


def test_the_collector_is_as_it_was_where_gathering_fails():
    before = gc.get_threshold()
    hook = garbage.pytest_collection()
    next(hook)
    assert not gc.isenabled()
    with pytest.raises(RuntimeError, match="no such test"):
        hook.throw(RuntimeError("no such test"))
    assert gc.isenabled()
    gc.set_threshold(*before)
