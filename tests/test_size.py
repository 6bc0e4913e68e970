"""How large the packages are, held against their budget."""

import json

from tools import size


def test_no_package_has_outgrown_its_budget():
    budget = json.loads(size.BUDGET.read_text(encoding="utf-8"))["tokens"]
    outgrown = size.over(size.packages(), budget)
    assert not outgrown, "\n".join([
        *outgrown, "take something away, or raise the budget by `make size BUDGET=1` and say why"])


def test_only_code_is_counted_and_long_strings_are_one_token():
    code = 'def f(x):\n    return f"{x + 1} of {f\'{x}\'}"\n'
    assert size.size_of(code) == (1, 2, 8)  # def f ( x ) : return "…"
    assert size.size_of("# why\n\nX = 'a'\n") == (1, 3, 3)
    documented = '"""A file."""\n\n\nclass C:  # one\n    """What\n    for."""\n\n    x = "kept"\n'
    assert size.size_of(documented).tokens == 6


def test_growth_past_the_tolerance_is_named_by_how_much_and_renewed():
    sizes = {"lib/a": size.Size(3, 100, 20_500), "lib/b": size.Size(1, 9, 1_250),
             "lib/new": size.Size(1, 9, 400), "lib/shrunk": size.Size(1, 9, 10)}
    budget = {"lib/a": 20_000, "lib/b": 1_000, "lib/shrunk": 5_000}
    assert size.over(sizes, budget) == [
        "lib/a: 20,500 tokens, 500 over its budget of 20,000",
        "lib/new: 400 tokens, 400 over its budget of 0"]
    assert size.renewed(sizes, budget) == {
        "lib/a": 20_500, "lib/b": 1_000, "lib/new": 400, "lib/shrunk": 10}
    assert [line.split()[:4] for line in size.table(sizes, budget)][1] == [
        "lib", "6", "127", "22,160"]
