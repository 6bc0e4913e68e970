"""What the workflows promise: nothing is published that Colab, played, did not run to its end."""

import os
import re
import subprocess

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


FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
NAMES = [file.stem for file in FILES]
INDEX = "pypa/gh-action-pypi-publish"


@pytest.mark.parametrize("name", NAMES)
def test_no_job_and_no_step_may_fail_unseen(name):
    for job in workflow(name)["jobs"].values():
        assert not any("continue-on-error" in part for part in (job, *job.get("steps", ())))


def test_an_action_is_named_by_one_commit_and_its_version():
    """By a hash of 40 digits, the same in every workflow, with the version behind it."""
    named = {}
    for file in FILES:
        for line in re.findall(r"(?m)^\s*(?:- )?uses: (.*)$", file.read_text("utf-8")):
            if line.startswith("./"):
                assert (ROOT / line).is_file()
                continue
            found = re.fullmatch(r"([\w.-]+/[\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)", line)
            assert found, f"{file.name}: {line}"
            named.setdefault(found[1].partition("/restore")[0], set()).add(found.groups()[1:])
    assert {action: versions for action, versions in named.items() if len(versions) > 1} == {}
    assert INDEX in named


def needed(jobs: dict, name: str) -> set[str]:
    """The jobs that must have passed before a job begins."""
    direct = jobs[name].get("needs", [])
    direct = [direct] if isinstance(direct, str) else direct
    return set(direct).union(*(needed(jobs, one) for one in direct))


def test_a_release_follows_the_tests_and_a_rehearsal():
    release = workflow("release")
    jobs = release["jobs"]
    assert release[True]["push"] == {"tags": ["v*"]} and "workflow_dispatch" in release[True]
    assert jobs["tests"]["uses"] == "./.github/workflows/test.yml"
    assert "workflow_call" in workflow("test")[True]
    assert needed(jobs, "pypi") == {"tests", "package", "book", "testpypi", "rehearsal"}
    assert needed(jobs, "pages") == needed(jobs, "pypi") | {"pypi"}
    assert needed(jobs, "release") == needed(jobs, "pages") | {"pages"}
    # By hand it is a dry run: what can't be taken back asks for a tag.
    tagged = {name for name, job in jobs.items() if job.get("if") == "github.event_name == 'push'"}
    assert tagged == {"pypi", "pages", "release"}


def test_indexes_trust_an_environment_and_no_secret():
    jobs = workflow("release")["jobs"]
    uploads = {name: step for name, job in jobs.items() for step in job.get("steps", ())
               if step.get("uses", "").startswith(INDEX)}
    assert set(uploads) == {"testpypi", "pypi"}
    for name, step in uploads.items():
        assert jobs[name]["permissions"] == {"id-token": "write"}
        assert jobs[name]["environment"]["name"] == name
        assert not {"password", "user"} & set(step.get("with", {}))
    assert uploads["testpypi"]["with"]["repository-url"] == "https://test.pypi.org/legacy/"
    assert "repository-url" not in uploads["pypi"].get("with", {})
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text("utf-8")


def test_only_what_publishes_may_write():
    may = {name: set(job["permissions"]) for name, job in workflow("release")["jobs"].items()
           if "permissions" in job}
    assert may == {"testpypi": {"id-token"}, "pypi": {"id-token"}, "pages": {"id-token", "pages"},
                   "release": {"contents"}}
    assert all(workflow(name)["permissions"] == {"contents": "read"} for name in NAMES)


def test_the_rehearsal_runs_the_readme_on_every_release_of_python():
    job = workflow("release")["jobs"]["rehearsal"]
    tests = workflow("test")["jobs"]["test"]
    assert job["strategy"]["matrix"] == tests["strategy"]["matrix"]
    commands = "\n".join(step.get("run", "") for step in job["steps"])
    assert "--index-url https://test.pypi.org/simple/" in commands
    assert "python tools/warplens_readme.py empty/bin/python" in commands
    assert (ROOT / "tools/warplens_readme.py").is_file()


def test_a_tag_that_is_not_the_version_publishes_nothing(tmp_path):
    """The step of the workflow itself, run as it stands there."""
    steps = workflow("release")["jobs"]["package"]["steps"]
    [script] = [step["run"] for step in steps if "GITHUB_REF_NAME" in step.get("run", "")]
    (tmp_path / "book").mkdir()
    (tmp_path / "book/release.py").write_text('VERSION = "9.8.7"\n')
    for tag, status in (("v9.8.7", 0), ("v9.8.8", 1), ("9.8.7", 1)):
        done = subprocess.run(["bash", "-ec", script], cwd=tmp_path, check=False,
                              env={**os.environ, "GITHUB_REF_NAME": tag})
        assert done.returncode == status


def test_pages_are_published_when_the_tests_have_passed():
    pages, tests = workflow("pages"), workflow("test")
    begun = pages[True]["workflow_run"]
    assert begun == {"workflows": [tests["name"]], "types": ["completed"], "branches": ["main"]}
    assert "push" not in pages[True]
    build = pages["jobs"]["build"]
    assert "github.event.workflow_run.conclusion == 'success'" in build["if"]
    assert "workflow_run.head_sha" in build["steps"][0]["with"]["ref"]
    assert pages["jobs"]["deploy"]["needs"] == "build"
