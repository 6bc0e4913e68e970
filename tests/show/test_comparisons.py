"""What sentences compare: rows of one board, by more than the noise, timed with timed."""

import ast
import json
import re

import pytest

from lib import paths
from lib.records import noise
from lib.records import store as records
from lib.show.numbers import SIZE, Numbers

CHAPTERS = sorted(path.stem for path in paths.CHAPTERS.glob("[0-9]*.ipynb")
                  if "01" <= path.stem[:2] <= "26")
TIMES = {"clock.cycles", "seconds", "tflops"}


def paragraphs(stem):
    for cell in json.loads((paths.CHAPTERS / f"{stem}.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "markdown":
            yield from re.split(r"\n\n|\n\|", "".join(cell["source"]))


def says_boards(text):
    """Whether a reader is told of boards; a scoreboard is none."""
    return re.search(r"\bboards?\b", re.sub(r"<data [^>]*>", "", text))


def called(node):
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def asked_of_a_row(node):
    """What of a version's own row, and the call: ``row('x').clock.cycles``."""
    text, call = ast.unparse(node), node
    while isinstance(call, ast.Attribute):
        call = call.value
    return (text.rpartition(").")[2], call) if called(call) == "row" else ("", None)


def side(call):
    given = [ast.literal_eval(one) for one in call.args] + ["", SIZE][len(call.args):]
    return given[0], given[1]


def comparisons(expression):
    """Kind, both sides and the size of each comparison of recorded times in an expression."""
    for node in ast.walk(ast.parse(f'f"""{{{expression}}}"""', mode="eval")):
        if called(node) in {"gain", "faster"}:
            first, second, *size = (ast.literal_eval(one) for one in node.args)
            yield "speed", first, second, (size or [SIZE])[0]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            over = node.left  # of a share in percent what stands behind the 100
            while isinstance(over, ast.BinOp) and isinstance(over.op, ast.Mult):
                over = over.right
            (what, one), (also, other) = asked_of_a_row(over), asked_of_a_row(node.right)
            if what == also and what in TIMES and len(one.args) < 3:  # of cubes
                (first, size), (second, _) = side(one), side(other)
                yield "cycles" if what == "clock.cycles" else "speed", first, second, size


@pytest.mark.parametrize("stem", CHAPTERS)
def test_a_sentence_compares_rows_of_one_board_by_more_than_the_noise(stem):
    """Or it says that the other side was timed on another board."""
    numbers, wrong = Numbers(stem), []
    for text in paragraphs(stem):
        for expression in re.findall(r'<data value="([^"]*)">', text):
            for kind, first, second, size in comparisons(expression):
                try:
                    rows = numbers.row(first, size), numbers.row(second, size)
                except records.NotRecorded:
                    continue
                one, other = (row.clock.cycles if kind == "cycles" else row.seconds for row in rows)
                within = (noise.of_cycles if kind == "cycles" else noise.of_speed)(*rows)
                if not noise.one_board(*rows):
                    if not says_boards(text):
                        wrong.append(("two boards", expression))
                elif abs(one / other - 1) <= within and "differ" not in text and (
                        rows[0].types == rows[1].types):
                    wrong.append(("within the noise", expression))
    assert not wrong


@pytest.mark.parametrize("stem", CHAPTERS)
def test_cycles_of_a_profiled_launch_are_called_so(stem):
    wrong = [text for text in paragraphs(stem)
             if re.search(r"(ratio|metric)\('cycles'", text)
             and "profiled" not in text and "One launch" not in text]
    assert not wrong


# Functions of hardware counters, and how many of their arguments stand before the variant's name.
COUNTERS = {"metric": 1, "stall": 1, "slot": 1, "per_fma": 1, "intensity": 1, "waiting": 1,
            "l1_wavefronts": 0, "cap": 0, "at_work": 0}


def boards(text, numbers):
    """The boards that a text's hardware counters are of."""
    for expression in re.findall(r'<data value="([^"]*)">', text):
        for node in ast.walk(ast.parse(f'f"""{{{expression}}}"""', mode="eval")):
            if called(node) in COUNTERS:
                name, size = side(ast.Call(node.func, node.args[COUNTERS[called(node)]:]))
                yield numbers._timed_with_counters(name, size).board


@pytest.mark.parametrize("stem", CHAPTERS)
def test_counters_beside_each_other_are_of_one_board(stem):
    """In a paragraph or a cell of a table; or it says that they are of two."""
    numbers = Numbers(stem)
    assert not [text for part in paragraphs(stem) for text in part.split("|")
                if len(set(boards(text, numbers))) > 1 and not says_boards(text)]
