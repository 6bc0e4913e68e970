"""Others' kernels under ncu: here with a GPU that is played and an ncu that is made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from lib.__main__ import main
from lib.measure import foreign, ncu
from lib.measure.counters import EMULATED
from lib.records import foreign as records
from lib.run import device
from lib.show import foreign as model
from lib.show import public_files as page
from tests import played
from tests.show.test_foreign import clones  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow  # kernels of others run at night

WHERE = {"gpu": "NVIDIA H100 80GB HBM3", "arch": "sm_90a", "driver": "580.1", "cuda": "13.0",
         "nvrtc": "13.0", "ncu_release": "2025.3", "date": "2026-01-02"}


class Ncu:
    """An ncu that counts what the emulator does, but for what it is told to count otherwise."""

    def __init__(self) -> None:
        self.starts: list[list[str]] = []
        self.otherwise: dict[str, dict[str, int]] = {}
        self.error: ncu.ProfilerMissing | None = None

    def profile(self, metrics, command, cached, module):
        """Play the child in this process."""
        assert module == "lib.measure.foreign" and cached
        work, said = map(Path, command)
        kernels = {one.key: one for one in model.kernels()}
        self.starts.append([key for key, *_ in json.loads(work.read_text())])
        if foreign.launch_all(work, said):
            raise ncu.ProfilerMissing("ncu could not read counters: LaunchFailed")
        ended, _ = foreign._outcomes(said)
        rows = []
        for key, name, text, arch in json.loads(work.read_text()):
            if key in ended:
                compiled = foreign.of_ptx(text, name, arch, kernels[key].shared)
                counted = foreign._emulated(kernels[key], compiled)[0].trace.counters()
                counted |= self.otherwise.get(key, {})
                rows.append({"Kernel Name": f"void {kernels[key].name}(int)",
                             **{EMULATED[name]: f"{counted[name]:,}" for name in EMULATED}})
        if self.error:
            raise self.error
        return rows


@pytest.fixture(scope="module")
def compiled():
    """What compiles a kernel once for all tests: their clones are alike."""
    compile_one, known = foreign._compiled, {}

    def of(kernel, folder, arch):
        if (kernel.key, arch) not in known:
            known[kernel.key, arch] = compile_one(kernel, folder, arch)
        return known[kernel.key, arch]

    return of


@pytest.fixture
def profiler(clones, compiled, monkeypatch):  # noqa: F811
    """A played H100, this ncu, and a recorded emulation of each kernel."""
    made = Ncu()
    monkeypatch.setattr(foreign, "_compiled", compiled)
    played.play(played.H100, monkeypatch.setattr)
    monkeypatch.setattr(ncu, "available", lambda: {name.partition(".")[0]
                                                   for name in EMULATED.values()})
    monkeypatch.setattr(ncu, "profile", made.profile)
    monkeypatch.setattr(foreign, "machine", lambda: WHERE)
    model.write({one.key: records.Result(
        ended="OutOfBounds: no" if one.name == "past" else records.ENDED, right=True,
        hazards=[], counters={}, mutants=records.Mutants(tried=0, unseen=[]),
    ) for one in model.kernels()})
    return made


TILED, TURNED = "nobody/matmul:tiled<16>", "nobody/matmul:turned<16>"


def test_counters_are_recorded_beside_the_emulator_s(clones, profiler, capsys, shown):  # noqa: F811
    command = ["foreign", "--folder", str(clones), "--counters"]
    assert main([*command, "--write"]) == 0
    out = capsys.readouterr().out
    assert profiler.starts == [[TILED, TURNED]]  # one ncu, and not what the emulator stops
    assert f"{TILED}: 9 of 9 counters alike\n" in out and "past: left out: OutOfBounds" in out
    assert "2 of 2 kernels profiled" in out
    record = model.recorded()
    assert record["nobody/matmul:past"].gpu is None
    gpu = record[TURNED].gpu
    assert structs.asdict(gpu).items() >= WHERE.items() and gpu.right is True
    assert gpu.ncu == gpu.emulated and gpu.ncu["global_store_requests"] > 0
    page.counted()
    assert "9 of 9" in shown[-1] and "NVIDIA H100 80GB HBM3" in shown[-1]

    # What the emulator says later leaves it alone; of another launch it says nothing.
    assert main([*command[:-1], "--write", "tiled"]) == 0
    tiled = next(one for one in model.kernels() if one.key == TILED)
    assert model.profiled(tiled, model.recorded()) == record[TILED].gpu
    record[TILED] = structs.replace(
        record[TILED], gpu=structs.replace(record[TILED].gpu, launch="0123456789abcdef"))
    assert model.profiled(tiled, record) is None


def test_what_a_gpu_counts_otherwise_is_told(clones, profiler, capsys, shown):  # noqa: F811
    profiler.otherwise[TILED] = {"shared_wavefronts": 12345}
    assert main(["foreign", "--folder", str(clones), "--counters", "--write"]) == 1
    out = capsys.readouterr().out
    assert f"{TILED}: 8 of 9 counters alike; shared_wavefronts: ncu 12,345, emulated " in out
    assert "(no reason is known)" in out
    page.counted()
    assert "8 of 9" in shown[-2] and "12,345" in shown[-1]


def test_a_kernel_that_fails_is_left_out_and_the_others_go_on(
    clones, profiler, capsys, monkeypatch  # noqa: F811
):
    real, lost = foreign._launch, [True]

    def launch(kernel, compiled):
        if kernel.key == TILED:
            raise RuntimeError("an illegal\nmemory access")
        return real(kernel, compiled)

    monkeypatch.setattr(foreign, "_launch", launch)
    monkeypatch.setattr(foreign, "_is_lost", lambda: lost[0])
    command = ["foreign", "--folder", str(clones), "--counters"]
    assert main(command) == 1
    said = capsys.readouterr()
    assert f"{TILED}: not profiled: RuntimeError: an illegal memory access\n" in said.err
    assert f"{TURNED}: 9 of 9" in said.out
    assert profiler.starts == [[TILED, TURNED], [TURNED]]  # a lost GPU takes its process with it
    lost[0] = False
    assert main(command) == 1 and profiler.starts[2:] == [[TILED, TURNED]]
    assert f"{TURNED}: 9 of 9" in capsys.readouterr().out


def test_a_process_that_ends_names_the_launch_that_ended_it(tmp_path):
    said = tmp_path / "said"
    said.write_text('["begun", "a", "why"]\n["ended", "a", null]\n["begun", "b", "gone"]\n')
    assert foreign._outcomes(said) == ({"a": None}, {"b": "gone"})


def test_refused_counters_are_told_once(clones, profiler, capsys):  # noqa: F811
    profiler.error = ncu.ProfilerMissing(ncu.FORBIDDEN)
    assert main(["foreign", "--folder", str(clones), "--counters"]) == 2
    assert "only administrators" in capsys.readouterr().err and len(profiler.starts) == 1


def test_what_the_gpu_or_the_compiler_does_not_take_is_left_out(
    clones, profiler, capsys, monkeypatch  # noqa: F811
):
    played.play(played.A100, monkeypatch.setattr)
    monkeypatch.setattr(device, "arch", lambda: "sm_80")
    file = clones / "matmul" / "src" / "tiled.cu"
    file.write_text(file.read_text().replace("float sum", "flaot sum"))
    assert main(["foreign", "--folder", str(clones), "--counters"]) == 1
    said = capsys.readouterr()
    assert f"{TURNED}: left out: NVIDIA A100-SXM4-40GB doesn't run sm_90a code" in said.err
    assert f"{TILED}: left out: CompileError: " in said.err and "flaot" in said.err
    assert "0 of 2 kernels profiled" in said.out


def test_a_row_of_another_kernel_is_no_kernel_s(clones, profiler, capsys, monkeypatch):  # noqa: F811
    play = profiler.profile
    monkeypatch.setattr(ncu, "profile", lambda *args, **options: play(*args, **options)[1:])
    assert main(["foreign", "--folder", str(clones), "--counters"]) == 1
    said = capsys.readouterr()
    assert f"{TILED}: not profiled: ncu saw void turned<16>(int) in its place" in said.err
    assert f"{TURNED}: 9 of 9" in said.out
