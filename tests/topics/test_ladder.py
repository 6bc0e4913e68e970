"""The planned ladder and the history of processors: tables that pages print."""

import pytest

from lib.claims import history
from lib.kernels.catalogue import CATALOGUE, in_book
from lib.paths import ROOT
from lib.topics.ladder import contents as plan


def test_the_ladder_has_every_number_once_and_in_order():
    numbers = [version.number for version in plan.versions()]
    assert numbers == [f"{i:02d}" for i in range(1, len(numbers) + 1)]


def test_the_catalogue_speaks_for_what_it_has():
    by_stem = {version.stem: version for version in plan.versions()}
    for stem, kernel in CATALOGUE.items():
        assert by_stem[stem].coded
        assert by_stem[stem].change == kernel.change
    told = len(in_book())
    assert [stem for stem, version in by_stem.items() if version.finished] == list(in_book())
    assert plan.counts() == (told, len(by_stem))
    assert plan.summary() == f"**{told}** of {len(by_stem)} versions are here."


def test_the_ladder_as_a_table():
    assert len(plan.markdown().splitlines()) == 2 + len(plan.versions())
    assert "sm_90a only" in plan.markdown() and "sm_80 and later" in plan.markdown()
    lines = plan.contents().splitlines()
    assert len(lines) == 2 + len(plan.versions())
    assert sum("**here**" in line for line in lines) == len(in_book())


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
