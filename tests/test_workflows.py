"""What the workflows promise: nothing is published that Colab, played, did not run to its end."""

import pytest
import yaml

from lib.paths import ROOT


def workflow(name: str) -> dict:
    # YAML 1.1, which PyYAML reads, takes the key `on` for a truth value.
    return yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf-8"))


def test_the_required_check_needs_every_job_of_the_tests():
    jobs = workflow("test")["jobs"]
    last = jobs.pop("required")
    assert set(last["needs"]) == set(jobs) and "colab" in jobs
    assert last["if"] == "always()"  # a skipped check counts as passed
    [step] = last["steps"]
    assert step["run"] == f'test "$RESULTS" = "{" ".join(["success"] * len(jobs))}"'


@pytest.mark.parametrize("name", ["test", "pages", "records", "nightly"])
def test_no_job_and_no_step_may_fail_unseen(name):
    for job in workflow(name)["jobs"].values():
        assert not any("continue-on-error" in part for part in (job, *job["steps"]))


def test_pages_are_published_when_the_tests_have_passed():
    pages, tests = workflow("pages"), workflow("test")
    begun = pages[True]["workflow_run"]
    assert begun == {"workflows": [tests["name"]], "types": ["completed"], "branches": ["main"]}
    assert "push" not in pages[True]
    build = pages["jobs"]["build"]
    assert "github.event.workflow_run.conclusion == 'success'" in build["if"]
    assert "workflow_run.head_sha" in build["steps"][0]["with"]["ref"]
    assert pages["jobs"]["deploy"]["needs"] == "build"
