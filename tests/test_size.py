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
