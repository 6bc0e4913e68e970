"""The papers: numbers of the repository, sources that are listed, figures of today."""

import datetime
import re

import pytest
import yaml
from pybtex.database import parse_file

from book import paper
from lib.paths import ROOT

TEXTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in paper.PAPERS}
# The journals' own headings; JOSS asks for 750 to 1,750 words, JOSE for a short paper.
SECTIONS = {
    "paper/jose/paper.md": ["Summary", "Statement of need", "References"],
    "paper/joss/paper.md": ["Summary", "Statement of need", "State of the field", "Software design",
                            "Research impact statement", "AI usage disclosure", "Acknowledgements",
                            "References"],
}
# What stands in a text without being a number of ours: a driver's claim that is cited, JOSS's list.
NAMES = re.compile(r"FP\d+|compute capability 3\.5")
CITED = re.compile(r"(?<![\w.])@([a-z]\w*)")


def parts(name):
    """A paper's head, and its text without comments and code."""
    _, head, text = TEXTS[name].split("---\n", 2)
    return yaml.safe_load(head), text


@pytest.mark.parametrize("name", paper.PAPERS)
def test_no_number_is_typed_by_hand(name):
    text, filled = paper.NUMBER.subn("", parts(name)[1])
    assert filled >= 6  # which `test_release` holds to the repository's, as it does the authors
    text = re.sub(r"\[[^]]*@[^]]*\]|`[^`]*`|\]\([^)]*\)|<!--.*?-->", "", text)
    assert re.findall(r"(?<![\w@])\d[\d.,]*", NAMES.sub("", text)) == []


def test_a_number_that_has_changed_is_renewed_and_an_unknown_one_refused():
    values = {"versions": "28", "size": "8,192"}
    text = "27<!--versions--> at 4,096<!--size-->."
    assert paper.filled(text, values.__getitem__) == "28<!--versions--> at 8,192<!--size-->."
    with pytest.raises(paper.PaperError, match="no number is named 'horses'"):
        paper.filled("4<!--horses-->")


@pytest.mark.parametrize("name", paper.PAPERS)
def test_what_is_cited_is_listed_and_what_is_listed_is_cited(name):
    entries = parse_file(str((ROOT / name).with_name("paper.bib"))).entries
    assert set(CITED.findall(parts(name)[1])) == set(entries)
    for key, entry in entries.items():
        assert {"title", "year"} <= set(entry.fields) and entry.persons, key
        assert {"doi", "url", "eprint"} & set(entry.fields), f"{key} has no address"


def test_every_tool_that_joss_compares_is_cited_in_its_own_paragraph():
    text = parts("paper/joss/paper.md")[1].partition("# State of the field")[2]
    paragraphs = text.partition("\n# ")[0].split("\n\n")
    for tool in ("GPGPU-Sim", "Accel-Sim", "GPU Ocelot", "tinygrad", "Triton-Viz",
                 "Compute Sanitizer"):
        assert any(tool in one and CITED.search(one) for one in paragraphs), tool


@pytest.mark.parametrize("name", paper.PAPERS)
def test_the_form_is_the_journal_s(name):
    head, text = parts(name)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= set(head)
    assert "`" not in head["title"] and head["bibliography"] == "paper.bib"
    datetime.datetime.strptime(head["date"], "%d %B %Y")
    places = {one["index"] for one in head["affiliations"]}
    assert {int(one["affiliation"]) for one in head["authors"]} == places
    headings = re.findall(r"(?m)^# (.+)$", text)
    assert [one for one in headings if one in SECTIONS[name]] == SECTIONS[name]
    assert 750 <= len(re.sub(r"<!--.*?-->", "", text).split()) <= 1750


def test_persons_get_their_identifiers_and_places():
    citation = {"authors": [
        {"given-names": "Ada", "family-names": "Example", "affiliation": "A College",
         "orcid": "https://orcid.org/0000-0002-1825-0097"},
        {"given-names": "Bo", "family-names": "Example"}]}
    assert yaml.safe_load(paper.people(citation)) == {
        "authors": [
            {"name": "Ada Example", "orcid": "0000-0002-1825-0097", "affiliation": "1"},
            {"name": "Bo Example", "affiliation": "2"}],
        "affiliations": [{"name": "A College", "index": 1}, {"name": "Independent", "index": 2}]}


def test_the_objectives_are_those_of_the_course():
    text = TEXTS["paper/jose/paper.md"].lower()
    page = (ROOT / "chapters" / "objectives.md").read_text(encoding="utf-8").lower()
    objectives = re.findall(r"(?m)^\d\. (.*)\.$", page)
    assert objectives and all(f"- {one}" in text for one in objectives)


@pytest.mark.parametrize("name", paper.FIGURES)
def test_a_figure_is_today_s_and_a_paper_has_it(name):
    assert paper.text_in(ROOT / name) == paper.text_of(paper.drawn(name)), "run `make paper`"
    place = ROOT / name
    text = place.with_name("paper.md").read_text(encoding="utf-8")
    assert re.search(rf"(?s)!\[.*?\\label{{(\w+)}}\]\({place.name}\)", text)
    assert place.stat().st_size < 300_000


def test_a_file_without_its_text_is_told(tmp_path):
    (tmp_path / "old.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(paper.PaperError, match="make paper"):
        paper.text_in(tmp_path / "old.png")
