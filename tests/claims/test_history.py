"""The history of processors: clocks and counts that claims are held against."""

import pytest

from lib.claims import history
from lib.paths import ROOT


def test_growth_of_the_clock():
    growth = history.yearly_growth(history.find("Intel 486"), history.find("Pentium 4"))
    assert growth == pytest.approx(60 ** (1 / 11) - 1)


def test_growth_needs_two_clocks_in_order():
    first, last = history.PROCESSORS[0], history.PROCESSORS[-1]
    with pytest.raises(ValueError, match="no published clock"):
        history.yearly_growth(first, last)
    with pytest.raises(ValueError, match="not younger"):
        history.yearly_growth(history.find("Intel 486"), first)
    with pytest.raises(KeyError, match="Intel 4004"):
        history.find("Intel 4040")


def test_the_4004_ran_at_740_kilohertz():
    assert history.clock_text(history.find("Intel 4004")) == "741 kHz"


def test_counts_are_short():
    texts = [history.count_text(processor.transistors) for processor in history.PROCESSORS]
    assert texts == ["2,300", "275,000", "1.2 M", "42 M", "55 M", "291 M", "40,000 M"]


def test_every_processor_has_its_source():
    bibliography = (ROOT / "chapters" / "references.bib").read_text()
    for processor in history.PROCESSORS:
        assert f"{{{processor.source}," in bibliography
    assert len(history.markdown().splitlines()) == 2 + len(history.PROCESSORS)
