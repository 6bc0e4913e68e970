"""Markdown tables."""

from lib.show import markdown as tables


def test_sentences_stand_at_the_left_though_they_begin_with_a_number():
    rule = tables.markdown(("a", "b", "c"), [(1, "1.00 wavefronts an HMMA after 1.125", "+5.0%")])
    assert rule.splitlines()[1] == "|---|---|---:|"
