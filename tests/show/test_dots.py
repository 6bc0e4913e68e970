"""A row of dots a product: how far each came."""

import pytest

from lib.show import dots
from tests.show.conftest import words_of


def test_dots(drawn):
    fig = drawn["dots"]
    assert {"ours", "default", "public", "100%", "09 tuned: 54.4 TFLOP/s",
            "100%: the best"} <= set(words_of(fig))
    assert "FP16, 4,096: ours 99.6, default 94.0, public 70.0." in fig.alt
    # Its line lies between the dots that are less and the one that is more.
    (ax,) = fig.axes
    places = [line.get_xdata()[0] for line in ax.lines][:5]
    (even,) = [text.get_position()[0] for text in ax.texts if text.get_text() == "100%"]
    assert sorted(place > even for place in places) == [False] * 4 + [True]
    assert "09 tuned: 54.4 TFLOP/s" not in words_of(drawn["dots, narrow"])


def test_dots_of_nothing_are_refused():
    with pytest.raises(ValueError, match="no row has a dot"):
        dots.draw([dots.Row("a", [])], {"ours": dots.FULL}, title="a", evidence="recorded: H100",
                  same="the best")


@pytest.mark.parametrize("values, ends", [
    ((0.7, 1.06), (0.7, 1.1)), ((1.0, 1.0), (1.0, 1.01)), ((0.5, 12.0), (0.0, 15.0))])
def test_an_axis_of_ratios_holds_all_and_few_ticks(values, ends):
    low, high, each = dots._scale([*values, 1.0], 240.0)
    assert (low, high) == pytest.approx(ends)
    assert low < min(values) + 1e-9 and max(values) < high + 1e-9
    assert (high - low) / each < 240 / 44 + 1e-9
