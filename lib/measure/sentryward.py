"""The kernels of the zoo under SentryWard, which needs no GPU: pip install sentryward.

It is told all that its notation has: the launch, which parameters are pointers to global memory and
which are tensor maps, and the values of the others. Pointers have no lengths there.
"""

from __future__ import annotations

import datetime
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from lib.records import sentryward as records
from lib.records.sentryward import Proof, SentryWard
from lib.show import zoo as model

SCHEMA = "spverify.kernel-input/v1"
SECONDS = 60  # for one kernel


def record(
    names: Sequence[str] = (), path: Path = records.FILE, tell: Callable[[str], None] = print
) -> None:
    """Verify what isn't recorded yet, each kernel with its mistake and cured."""
    program = shutil.which("sentryward")
    if program is None:
        raise ValueError("sentryward is missing: pip install sentryward")
    before = records.read(path)
    kernels = dict(before.kernels) if before else {}
    for specimen in model.specimens():
        if (names and specimen.name not in names) or records.current(
                before, specimen.name, model.digest(specimen)):
            continue
        mistake, cured = (_result(program, specimen, variant) for variant in (False, True))
        kernels[specimen.name] = Proof(hash=model.digest(specimen), mistake=mistake, cured=cured)
        tell(f"{specimen.name}: {mistake}; cured: {cured}")
    records.write(SentryWard(version=metadata.version("sentryward"), kernels=kernels,
                             date=datetime.date.today().isoformat()), path)


def described(specimen: model.Specimen, kernel: Any) -> dict[str, Any]:
    """Describe a launch in SentryWard's notation."""
    entry = kernel.function.entry
    pointers, numbers = [], []
    for parameter, word, argument in zip(
            entry.parameters, specimen.words, specimen.args(), strict=True):
        if word.startswith("map["):
            pointers.append({"parameter": parameter.name, "type": "tensor_map"})
        elif np.ndim(argument.value):
            pointers.append({"parameter": parameter.name, "type": "pointer", "space": "global"})
        else:
            numbers.append({"parameter": parameter.name, "type": parameter.type,
                            "value": int(argument.value)})
    cluster = [*entry.limits.get("reqnctapercluster", ()), 1, 1, 1][:3]
    return {
        "schema": SCHEMA, "declarations": pointers, "arguments": numbers,
        "launch": {"grid_dim": [specimen.grid, 1, 1], "block_dim": [specimen.block, 1, 1],
                   "cluster_dim": cluster, "dynamic_shared_bytes": specimen.shared},
    }


def _result(program: str, specimen: model.Specimen, cured: bool) -> str:
    kernel = model.compiled(specimen, cured)
    with tempfile.TemporaryDirectory() as folder:
        text, given = Path(folder, "kernel.ptx"), Path(folder, "input.json")
        text.write_text(kernel.text, encoding="utf-8")
        given.write_text(json.dumps(described(specimen, kernel)), encoding="utf-8")
        done = subprocess.run(
            [program, str(text), "--input", str(given), "--timeout", str(SECONDS)],
            capture_output=True, text=True, check=False)
    return str(json.loads(done.stdout)["result"])
