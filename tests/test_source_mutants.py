"""Mutants of the sources: what is drawn, and that a mutant is found where its line went."""

import ast

import pytest

from tools import source_mutants
from tools.source_mutants import STRATA, Mutant, apply, draw, edits, find, lines

BEFORE = '''
"""A module with 1 number here."""
LIMIT = 7


class Ring:
    """Slots of 4."""

    def slot(self, step: int = 3) -> int:
        """Return a slot, from 0."""
        if step < 0 or not self.free:
            raise ValueError(f"no step {step - 1}")
        return step % self.stages  # of 5

    def check(self, value):
        assert value > 0
        if isinstance(value, str):
            self.slot(2)


def taken(ring):
    if ring.empty:
        return 0
    if ring.empty:
        return 1
'''
KERNEL = """
template <int TILE>
__global__ void __launch_bounds__(32 * (TILE / 8) * (TILE > 8 ? 2 : 1))
first(int M, int N, int K, const float* A)
{
    for (int k = 0; k < K; ++k) {}
    float a = row < M && k < K ? A[k] : 0.0f;  // k < N
    if (row < M) store(a);
}

__device__ inline void second(int N) {
    if (col >= N) return;
}
"""


def mutant(function, line, occurrence=0, only=True, module="ring", replacement="pass"):
    return Mutant("ptx-01", module, function, line, occurrence, only, "", replacement)


def table(**texts):
    """Lines of files, named by their paths with __ in place of /."""
    named = {name.replace("__", "/") + ".py": text for name, text in texts.items()}
    return [line for path, text in named.items() for line in lines(path, text)]


def place(found):
    return found and (found.path, found.number)


def test_lines_know_their_function_and_statement():
    found = {line.text: line for line in table(lib__ring=BEFORE)}
    assert found["return step % self.stages"].function == "Ring.slot"
    assert "LIMIT = 7" not in found and "class Ring:" not in found
    held = found["if step < 0 or not self.free:"]
    assert (held.first, held.last) == (held.number, held.number)


def test_edits_leave_alone_what_does_not_compute():
    changed = {BEFORE.splitlines()[number - 1].strip(): {new for new, _ in choices}
               for number, choices in edits("lib/ring.py", BEFORE).items()}
    assert changed["if step < 0 or not self.free:"] == {
        "if step <= 0 or not self.free:", "if step < 1 or not self.free:",
        "if step < 0 and not self.free:", "if step < 0 or self.free:", "if True:", "if False:",
    }
    assert changed["return step % self.stages  # of 5"] == {"return step // self.stages"}
    assert changed['raise ValueError(f"no step {step - 1}")'] == {"pass"}
    assert not changed.keys() & {
        "assert value > 0", "if isinstance(value, str):", "def slot(self, step: int = 3) -> int:",
        '"""Return a slot, from 0."""', '"""A module with 1 number here."""',
    }


def test_every_edit_makes_other_code():
    for number, choices in edits("lib/ring.py", BEFORE).items():
        for new, change in choices:
            changed = apply(BEFORE, number, new)
            assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(BEFORE)), change


def test_guards_of_a_kernel():
    found = edits("cuda/01_first.cu", KERNEL)
    rows = KERNEL.splitlines()
    by_line = {rows[number - 1].strip(): {change for _, change in choices}
               for number, choices in found.items()}
    assert by_line == {
        "float a = row < M && k < K ? A[k] : 0.0f;  // k < N":
            {"< to <=", "&& to ||", "zero-fill to one-fill"},
        "if (row < M) store(a);": {"< to <=", "condition forced true"},
        "if (col >= N) return;": {">= to >"},
    }
    names = {line.text: line.function for line in lines("cuda/01_first.cu", KERNEL)}
    assert names["if (row < M) store(a);"] == "first"
    assert names["if (col >= N) return;"] == "second"


def test_applying_changes_one_line_at_its_indentation():
    line = next(line for line in table(lib__ring=BEFORE) if line.text.startswith("return step"))
    changed = apply(BEFORE, line.number, "return step")
    differ = [pair for pair in zip(BEFORE.splitlines(), changed.splitlines(), strict=True)
              if pair[0] != pair[1]]
    assert differ == [("        return step % self.stages  # of 5", "        return step")]


FURTHER_DOWN = "from x import y\n\n\n" + BEFORE


@pytest.mark.parametrize("after, renames", [
    ({"lib__topics__ring__model": FURTHER_DOWN}, {}),  # another file, other line numbers
    ({"lib__a": BEFORE.replace("class Ring", "class Slots")}, {}),  # another class
    ({"lib__a": BEFORE.replace("def slot", "def place")}, {"Ring.slot": "Ring.place"}),
    ({"lib__a": BEFORE.replace("def slot", "def place")}, {}),  # the only line of its kind
    ({"lib__a": BEFORE, "lib__ring": FURTHER_DOWN}, {}),  # twice: the file that it was drawn from
], ids=["moved", "other class", "renamed", "only", "twice"])
def test_a_mutant_is_found_after_a_move(after, renames):
    found = find(mutant("Ring.slot", "return step % self.stages"), table(**after), renames)
    path = list(after)[-1].replace("__", "/") + ".py"
    wanted = next(line for line in lines(path, list(after.values())[-1])
                  if line.text == "return step % self.stages")
    assert found == wanted


def test_the_second_of_two_equal_lines_is_found():
    rows = table(lib__ring=FURTHER_DOWN)
    numbers = [line.number for line in rows if line.text == "if ring.empty:"]
    for occurrence, number in enumerate(numbers):
        wanted = mutant("taken", "if ring.empty:", occurrence, only=False)
        assert place(find(wanted, rows, {})) == ("lib/ring.py", number)
    assert find(mutant("taken", "if ring.empty:", 2, only=False), rows, {}) is None


def test_a_mutant_is_gone_if_its_line_is_or_if_two_places_could_be_meant():
    wanted = mutant("Ring.slot", "return step % self.stages", module="other")
    assert find(wanted, table(lib__ring=BEFORE.replace("% self", "& self")), {}) is None
    assert find(wanted, table(lib__a=BEFORE, lib__b=BEFORE), {}) is None
    common = mutant("Ring.slot", "return step % self.stages", only=False)
    assert find(common, table(lib__a=BEFORE.replace("def slot", "def place")), {}) is None


def test_a_draw_repeats_and_names_each_place_once(monkeypatch):
    def module(name):
        return "".join(f"def {name}{i}(x):\n    return x + {i} * x\n" for i in range(20))

    small = {name: (4, patterns) for name, (_, patterns) in STRATA.items()}
    monkeypatch.setattr(source_mutants, "STRATA", small)
    texts = {"lib/ptx/deep/a.py": module("f"), "lib/topics/time/ring/model.py": module("g"),
             "lib/topics/time/ring/figure.py": module("h"), "cuda/01_first.cu": KERNEL}
    drawn = draw(texts, 1)
    assert drawn == draw(texts, 1) != draw(texts, 2)
    rows = [line for path, text in texts.items() for line in lines(path, text)]
    found = [find(one, rows, {}) for one in drawn]
    assert None not in found and len({place(line) for line in found}) == len(drawn)
    counts = {name: sum(one.id.startswith(name) for one in drawn) for name in STRATA}
    assert counts == {"ptx": 8, "models": 8, "problem": 0, "records": 0, "kernels": 3}
    assert {line.path for line in found} == texts.keys() - {"lib/topics/time/ring/figure.py"}
