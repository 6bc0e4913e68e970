"""What results/ lack, why, in which chunks it would be measured; and that a draft is no record."""

import copy
import json
import subprocess
from functools import partial

import pytest

from lib import gpus
from lib.__main__ import main
from lib.kernels.catalogue import CATALOGUE
from lib.kernels.shapes import timed
from lib.measure import chunks, lacking, plan, record
from lib.paths import ROOT
from lib.records import revision
from lib.records import store as records
from lib.records.launched import launch_hash
from tests import built

NAIVE = CATALOGUE["01_naive"]


def every(kernel, variant):
    return True


def row_of(variant, shape):
    M, N, K = shape
    made = built.of_shape(built.row(512), M * N * K / 512**3)
    if not (shape == (shape[0],) * 3 and plan.depth(NAIVE, shape)):
        made = built.plain(made)
    return {**made, "M": M, "N": N, "K": K, "series": [1e-3] * 5,
            "instantiation": NAIVE.expression(variant)}


def whole():
    """A record of 01 that lacks nothing."""
    made = built.record()
    names = [variant.name for variant in NAIVE.measured]
    found = {}
    for variant in NAIVE.measured:
        one = copy.deepcopy(made["variants"][NAIVE.variants[0].name])
        one |= {"hash": NAIVE.hash(variant), "launch": launch_hash(NAIVE, variant),
                "timeline": built.timeline(NAIVE.hash(variant, marks=True)),
                "bench": [row_of(variant, shape) for shape in timed(NAIVE, variant)]}
        found[variant.name] = one
    assert names == list(found)
    return made | {"variants": found}


@pytest.fixture
def why(tmp_path, monkeypatch):
    """What 01's record lacks, once it is spoilt."""
    def said(spoil, headline=False):
        made = whole()
        spoil(made)
        monkeypatch.setattr(records, "load", lambda kind, key, stem="", root=None: (
            built.parsed(made) if stem == "01_naive" else None))
        return lacking.lacking("H100", every, ["01_naive"], headline, tmp_path)

    return said


def first(made):
    return made["variants"]["coalesced"]


def test_a_whole_record_lacks_nothing(why):
    assert why(lambda made: None) == {}


@pytest.mark.parametrize("spoil, word", [
    (lambda made: first(made).update(hash="0" * 16), "the source of coalesced has changed"),
    (lambda made: first(made)["bench"].pop(), "rows missing: 1"),
    (lambda made: first(made)["bench"][0].pop("cublas_clock"), lacking.WITHOUT_CLOCK),
    (lambda made: first(made).update(counters=[]), "no counters of coalesced"),
    (lambda made: first(made).pop("timeline"), "no timeline of coalesced"),
    (lambda made: [row.pop("sustained", None) for row in first(made)["bench"]],
     "no sustained run"),
    (lambda made: made["chunks"][built.CHUNK].update(revision="abc-dirty"), lacking.NOT_CLEAN),
])
def test_what_is_wrong_with_a_record_is_said(why, spoil, word):
    assert why(spoil) == {"01_naive": word}


def test_counters_that_a_machine_forbids_are_not_missing(why):
    assert why(lambda made: first(made).update(counters=[], counters_missing="not allowed")) == {}


def test_a_variant_that_is_not_there_is_added_alone(why):
    assert why(lambda made: made["variants"].pop("swapped")) == {"01_naive/swapped": "not recorded"}


def test_headline_sizes_ask_for_their_rows_and_nothing_else(why):
    def only_headline(made):
        for variant in made["variants"].values():
            variant["bench"] = [row for row in variant["bench"] if row["M"] in plan.HEADLINE]
            variant["counters"] = []
            del variant["timeline"]

    assert why(only_headline, headline=True) == {}
    assert "rows missing" in why(only_headline)["01_naive"]


def test_a_gpu_of_which_nothing_is_recorded_lacks_all_that_it_can_run(tmp_path):
    runs = lacking.runs_on(gpus.GPUS["T4"])
    found = lacking.lacking("T4", runs, root=tmp_path)
    assert set(found.values()) == {lacking.NEVER} and {"machine", "01_naive"} <= found.keys()
    assert "15_turing_limit" in found and not {"16_cp_async", "17_wgmma"} & found.keys()


def test_other_records_are_looked_at_too(tmp_path):
    built.write(built.machine(), tmp_path)
    built.write(built.calibrated(), tmp_path)
    found = lacking.lacking("H100", every, ["machine", "calibration"], root=tmp_path)
    assert found == {"machine": lacking.WITHOUT_CLOCK, "calibration": "its patterns have changed"}


def test_the_plan_s_chunks_are_those_that_a_pass_has(tmp_path):
    """Played with units that take what they are expected to."""
    runs = lacking.runs_on(gpus.GPUS["T4"])
    found = lacking.planned("T4", runs, root=tmp_path)
    journal, said, clock = lacking.Journal(tmp_path / "journal"), [], [0.0]

    def measure(unit, chunk):
        said.append((chunk, unit))
        clock[0] += unit.estimate

    units = plan.units(list(found.why), runs)
    for place in range(len(found.chunks)):
        outcome = chunks.run(units, journal, "c", partial(measure, chunk=place), lambda line: None,
                             now=lambda: clock[0])
    assert outcome.left == () and len(found.chunks) > 2
    for place, chunk in enumerate(found.chunks):
        assert [unit for where, unit in said if where == place] == chunk
        assert found.seconds(chunk) <= chunks.MAX_SECONDS
    # What one size's table compares is of one chunk, where it fits one.
    of_2048 = {place for place, unit in said if unit.kind == plan.BENCH and unit.stem in CATALOGUE
               and unit.shape == (2048,) * 3}
    assert len(of_2048) == 1


def test_a_pass_that_is_open_has_measured_some_of_it(tmp_path):
    before = lacking.planned("T4", every, ["01_naive"], root=tmp_path)
    unit = before.chunks[0][0]
    journal = lacking.Journal(tmp_path / "t4" / record.PASS)
    journal.open(["01_naive"])
    journal.done(unit.name, unit.mark, "c", 2 * unit.estimate, {})
    after = lacking.planned("T4", every, ["01_naive"], root=tmp_path)
    assert unit not in after.chunks[0] and after.pace == pytest.approx(2.0)
    left = sum(map(before.seconds, before.chunks)) - unit.estimate
    assert sum(map(after.seconds, after.chunks)) == pytest.approx(2 * left)


def test_the_command_needs_no_gpu_and_measures_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    assert main(["record", "--plan", "--gpu", "A100", "01_naive", "machine"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["01_naive: not recorded", "machine: not recorded"]
    assert lines[2].startswith("A100: ") and lines[3].startswith("chunk 1, ")
    assert lines[-1].startswith("python -m lib record 01_naive machine")
    assert main(["record", "--plan", "--gpu", "A100", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["gpu"] == "A100" and "01_naive" in found["why"]
    assert all(chunk["minutes"] <= 8 for chunk in found["chunks"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("given, said", [
    (["--plan"], "--gpu H200 plans for one that is elsewhere"),
    (["--plan", "--gpu", "H300"], "no data sheet for GPU 'H300'"),
    (["--plan", "--gpu", "H200", "--draft"], "--plan measures nothing"),
    (["--plan", "--gpu", "H200", "01_naive/swapped"], "not of one variant: 01_naive"),
    (["--gpu", "H200"], "--gpu goes with --plan"),
])
def test_bad_input_is_one_line(given, said, capsys):
    assert main(["record", *given]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def git(folder, *arguments):
    subprocess.run(["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
                   check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A repository with a kernel, a record and a commit."""
    for name in ("cuda/a.cu", "lib/a.py", "results/h200/a.json"):
        file = tmp_path / name
        file.parent.mkdir(parents=True)
        file.write_text("a")
    git(tmp_path, "init")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "a")
    monkeypatch.setattr(revision, "ROOT", tmp_path)
    monkeypatch.delenv("REVISION", raising=False)
    return tmp_path


def test_a_record_that_was_just_written_makes_no_tree_dirty(tree):
    (tree / "results/h200/a.json").write_text("b")
    revision.refuse_dirty()
    assert len(revision.revision()) == 12


@pytest.mark.parametrize("name", ["cuda/a.cu", "lib/a.py", "cuda/steps/new.cu"])
def test_a_tree_whose_kernels_or_measuring_differ_is_refused(tree, name):
    (tree / name).parent.mkdir(exist_ok=True)
    (tree / name).write_text("b")
    assert revision.revision().endswith(revision.DIRTY)
    with pytest.raises(ValueError, match=rf"differ from it \({name}\): commit first, or .*--draft"):
        revision.refuse_dirty()


def test_where_git_knows_no_commit_one_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(revision, "ROOT", tmp_path)
    monkeypatch.delenv("REVISION", raising=False)
    with pytest.raises(ValueError, match="set REVISION to it"):
        revision.refuse_dirty()
    monkeypatch.setenv("REVISION", "0123456789ab")
    revision.refuse_dirty()
    assert revision.revision() == "0123456789ab"
    monkeypatch.setenv("REVISION", "0123456789ab-dirty")
    with pytest.raises(ValueError, match="differ from it: commit first"):
        revision.refuse_dirty()


def test_drafts_lie_where_no_page_looks():
    assert not record.DRAFTS.is_relative_to(records.RESULTS)
    file = record.DRAFTS / "h200" / "a.json"
    ignored = subprocess.run(["git", "-C", ROOT, "check-ignore", "-q", file], check=False)
    assert ignored.returncode == 0


def test_a_dirty_tree_is_measured_as_a_draft_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(revision, "revision", lambda: "abc-dirty")
    monkeypatch.setattr(revision, "changed", lambda: ["lib/a.py"])
    with pytest.raises(ValueError, match="--draft"):
        record.record(["01_naive"], root=tmp_path)
    with pytest.raises(ValueError, match="--draft"):
        record.record_quick(root=tmp_path)
    assert record._root(tmp_path, draft=True) == record.DRAFTS
    assert not list(tmp_path.iterdir())
