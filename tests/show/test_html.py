"""Words that pages are made of: articles, numbers with nouns, what a figure says."""

import pytest

from book import checks
from lib.show import chart as style
from lib.show import html, words

LONG = " ".join(f"Sentence {number} says what one bar of this shows." for number in range(40))


@pytest.mark.parametrize("said", [
    "an A100", "an H100", "a T4", "an L40S", "a V100", "an RTX 4090", "an FMA", "a GPU",
    "an 8-way conflict", "an 11-way conflict", "an 18-way conflict", "a 1-way conflict",
    "a 2-way conflict", "an elected thread", "a warp",
])
def test_the_article_is_that_of_the_sound(said):
    assert words.article(said.split(" ", 1)[1]) == said


def test_one_of_a_thing_is_no_plural():
    assert [style.plural(n, "block") for n in (0, 1, 2, 1000)] == [
        "0 blocks", "1 block", "2 blocks", "1,000 blocks"]


def test_a_short_text_is_all_label():
    assert html.label_and_description("Two bars.") == ("Two bars.", "")


@pytest.mark.parametrize("text", [
    LONG, LONG.replace(".", ";"), LONG.replace(".", ","), LONG.replace(".", ""), "x" * 2000])
def test_a_long_text_is_a_label_and_a_description_that_lose_nothing(text):
    label, rest = html.label_and_description(text)
    assert 300 < len(label) <= html.MAX_LABEL
    assert (label + rest).replace(" ", "") == text.replace(" ", "")


def test_a_label_ends_with_a_sentence_where_one_does():
    label, rest = html.label_and_description(LONG)
    assert label.endswith(".") and rest.startswith("Sentence")


def test_a_figure_offers_what_its_label_leaves_out():
    figure = style.figure("Forty bars", 1.0)
    drawn = html.svg(style.finish(figure, alt=LONG, evidence="modelled: nothing"))
    label, rest = html.label_and_description(LONG)
    assert f'aria-label="{label}"' in drawn and f">{rest}</desc>" in drawn
    name = drawn.split('aria-describedby="')[1].split('"')[0]
    assert f'<desc id="{name}">' in drawn


def test_the_pages_are_held_to_the_same_length():
    assert checks.MAX_LABEL == html.MAX_LABEL
