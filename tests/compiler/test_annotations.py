"""The Action's annotations, played without GitHub, and the JSON that they are made of."""

import json
import re
import shlex

import yaml

from lib.compiler import annotations, command
from lib.compiler.emulate import VERSION
from lib.paths import ROOT

ZOO = ROOT / "cuda" / "zoo"
WORDS = (f"{shlex.quote(str(ZOO))}/missing_barrier.cu --block 64 --arg x=int32[64]:arange "
         "--arg y=int32[64] --races")


def test_each_finding_is_an_annotation_at_its_line(tmp_path, capsys):
    kernels = tmp_path / ".warplens"
    outside = WORDS.replace("--block 64", "--block 128")
    clean = f"{WORDS} -D CURED"
    kernels.write_text(f"# two wrong, one right\n{WORDS}\n\n{outside}\n{clean}  # cured\n")
    assert annotations.main([str(kernels)]) == 1
    lines = capsys.readouterr().out.strip().split("\n")
    assert sum(line.startswith("clean: ") for line in lines) == 1
    found = [line for line in lines if line.startswith("::error ")]
    places = [re.match(r"::error file=([^,]+),line=(\d+)::race: ", line) for line in found[:2]]
    assert [(place[1], place[2]) for place in places] == [
        (f"{ZOO}/missing_barrier.cu", "14"), (f"{ZOO}/missing_barrier.cu", "10")]
    assert "%0A__syncthreads() between" in found[0]
    assert any("::OutOfBounds: " in line for line in found[2:])
    assert annotations.main([str(tmp_path / "none")]) == 2


def test_the_action_runs_what_is_there():
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    assert "warplens.compiler.annotations" in steps[-1]["run"]
    assert all(re.search(r"@[0-9a-f]{40}$", step["uses"]) for step in steps if "uses" in step)


def test_the_json_is_as_it_is_documented(capsys):
    """The README's table of the contract names every key, and no other."""
    text = (ROOT / "lib" / "ptx" / "README.md").read_text(encoding="utf-8")
    part = text.partition("## The JSON contract\n")[2].partition("\n## ")[0]
    assert f"version {VERSION}" in part
    rows = dict(re.findall(r"^\| `([\w.]+)` \| (.*?) \|", part, re.M))
    documented = {name: set(re.findall(r"`(\w+)`", keys)) for name, keys in rows.items()}
    documented["hazards"] -= {"remarks"}
    assert command.main([*shlex.split(WORDS), "--json", "--link"]) == 1
    found = json.loads(capsys.readouterr().out)
    launch = found["launches"][0]
    assert set(found) == documented["whole"] and set(launch) == documented["launches"]
    assert set(launch["hazards"][0]) == documented["hazards"]
    assert set(launch["lines"][0]) == documented["lines"]
    assert command.main([*shlex.split(WORDS.replace("64", "128", 1)), "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["launches"][0]["errors"][0]
    assert set(error) == documented["errors"]
