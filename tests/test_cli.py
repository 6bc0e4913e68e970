"""The command line as a user meets it: documents, statuses, and one clear line for bad input."""

import ast
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import pytest

from lib import ptx
from lib.__main__ import main
from lib.cli.recorded import RESULT_KEYS
from lib.kernels.catalogue import KERNELS, in_book
from lib.kernels.source import edited
from lib.paths import RESULTS, ROOT
from lib.problem import WrongResult
from lib.run import device, runner
from tests import played
from tests.kernels.conftest import legal
from tests.tables import cases

COUNTERS = {
    "global_load_requests", "global_load_sectors", "global_store_requests",
    "global_store_sectors", "shared_load_instructions", "shared_store_instructions",
    "shared_wavefronts", "shared_wavefronts_ideal", "ffma_thread_instructions",
}


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(device, "why_unusable", lambda: "no GPU here: none at all")


@pytest.fixture
def call(capsys):
    """Run a command in this process; return its status, stdout and stderr."""

    def run(*words):
        status = main([str(word) for word in words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.mark.parametrize("stem", [
    # Every fourth of them, the first and the last among these.
    pytest.param(stem, marks=() if place % 4 == 0 else pytest.mark.slow)
    for place, stem in enumerate(KERNELS)
])
def test_check_prints_one_json_document(call, stem):
    M, N, K = legal(KERNELS[stem].variants[0], 33, 34, 35)
    status, out, _ = call("check", stem, "--shape", f"{M}x{N}x{K}", "--backend", "emulator",
                          "--alpha", "0.5", "--beta", "-2", "--races", "--json")
    document = json.loads(out)
    assert status == 0 and document["ok"] and document["backend"] == "emulator"
    assert document["hazards"] == [] and document["error"] <= document["tolerance"]
    assert document["verdicts"]["values"].startswith("right: error ")
    races = re.fullmatch(r"none found, ([\d,]+) accesses looked at", document["verdicts"]["races"])
    assert int(races[1].replace(",", "")) > M * N


@pytest.fixture
def barriers_become(monkeypatch):
    """Let every ``__syncthreads();`` of a kernel be other text when the command runs it."""
    run = runner.run

    def become(new):
        def run_edited(kernel, problem, **options):
            text = edited(kernel.source.read_text(), "__syncthreads();", new)
            return run(kernel, problem, source=text, **options)

        monkeypatch.setattr(runner, "run", run_edited)

    return become


def test_check_tells_a_missing_barrier_by_pair_of_lines(call, barriers_become):
    barriers_become(";")
    words = ("check", "04_register_tile", "--shape", "64", "--backend", "emulator", "--races")
    status, out, _ = call(*words, "--json")
    document = json.loads(out)
    hazards = document["hazards"]
    assert document["ok"] is False
    assert document["verdicts"]["races"] == f"{len(hazards)} found"
    assert status == 1 and len(hazards) <= 8 and sum(one["pairs"] for one in hazards) > 100
    assert len({(one["kind"], one["first"], one["second"]) for one in hazards}) == len(hazards)
    assert all("04_register_tile.cu:" in one["message"] for one in hazards)
    status, out, _ = call(*words)
    assert status == 1 and out.count("pairs of instructions") == len(hazards)
    assert f"  races: {len(hazards)} found\n" in out
    assert out.count(" and PTX line ") == len(hazards) and "What to do: __syncthreads()" in out


def test_trace_tells_what_it_sees_by_pair_of_lines(call, barriers_become):
    """It looks for no races, but sees half of a warp at a barrier."""
    barriers_become("if (threadIdx.x % 32 < 16) { __syncthreads(); } else asm(\"bar.sync 0;\");")
    status, out, _ = call("trace", "02_shared_tile", "--shape", "32", "--json")
    hazards = json.loads(out)["hazards"]
    assert status == 1 and {one["kind"] for one in hazards} == {"barrier divergence"}
    status, out, _ = call("trace", "02_shared_tile", "--shape", "32")
    assert status == 1 and out.count("barrier divergence: 02_shared_tile.cu:") == len(hazards)
    assert "What to do: let all threads" in out


def test_check_of_a_wrong_kernel_exits_1(call, monkeypatch):
    monkeypatch.setattr("lib.problem.ROUNDING_MARGIN", 1e-9)
    status, out, _ = call("check", "01_naive", "--shape", "32", "--backend", "emulator")
    assert status == 1 and "wrong" in out


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a"])
def test_trace_has_the_documented_keys(call, arch):
    status, out, _ = call("trace", "02_shared_tile", "--shape", "64", "--arch", arch, "--json")
    document = json.loads(out)
    assert status == 0 and COUNTERS <= set(document)
    assert (document["alpha"], document["beta"]) == (1.0, 0.0)
    # 4 blocks of 32 warps, 2 tiles along K: two loads of global memory and 40 of shared each.
    assert document["global_load_requests"] == 2 * 256
    assert document["shared_load_instructions"] == 40 * 256


def test_resources_names_registers_and_what_limits(call):
    status, out, _ = call("resources", "02_shared_tile", "--arch", "sm_75", "--json", "--sass")
    document = json.loads(out)
    assert status == 0 and document["shared_bytes"] == 8192 and document["blocks_per_sm"] == 1
    assert "warps" in document["limited_by"]
    assert any("FFMA" in text for text in document["inner_loop"])


def test_results_lists_rows_with_the_documented_keys(call):
    status, out, _ = call("results", "--json")
    rows = json.loads(out)
    assert status == 0 and len(rows) >= 4 * 3
    assert set(rows[0]) == set(RESULT_KEYS)
    recorded = {stem for stem in KERNELS if any(RESULTS.glob(f"*/{stem}.json"))}
    assert recorded and {row["kernel"] for row in rows} == recorded


def test_results_are_a_page_unless_more_is_asked_for(call):
    _, page, _ = call("results")
    _, every, _ = call("results", "--all")
    assert page.count("\n") <= 60 < every.count("\n")
    assert f"{every.count(chr(10)):,} rows in all" in page
    kernels = [line.split()[0] for line in page.splitlines()[:-1]]
    assert set(KERNELS) >= set(kernels) and len(kernels) >= len(in_book()) / 2


def test_results_are_filtered(call):
    _, out, _ = call("results", "01_naive", "--gpu", "H100", "--shape", "4096", "--json")
    found = json.loads(out)
    assert found and {
        (row["kernel"], row["gpu"], row["M"], row["N"], row["K"]) for row in found
    } == {("01_naive", "H100", 4096, 4096, 4096)}
    _, out, _ = call("results", "01_naive/swapped", "02_shared_tile", "--json")
    found = {(row["kernel"], row["variant"]) for row in json.loads(out)}
    assert ("01_naive", "swapped") in found and ("01_naive", "coalesced") not in found
    assert {kernel for kernel, _ in found} == {"01_naive", "02_shared_tile"}


def test_list_names_every_kernel(call):
    status, out, _ = call("list")
    assert status == 0 and all(stem in out for stem in KERNELS)
    assert re.search(r"^28_cta_pairs .*; block scales: mxfp8, .*nvfp4", out, re.M)
    rows = json.loads(call("list", "--json")[1])
    assert [row["kernel"] for row in rows if row["block_scaled"]] == ["28_cta_pairs"]


@pytest.mark.parametrize("name, shape", [("mxfp8", "33x20x48"), ("nvfp4_bfloat16", "130x136x96")])
def test_what_has_block_scales_is_checked_as_any_other(call, name, shape):
    """On shapes that are no multiple of a tile, nor of the blocks that share a scale."""
    status, out, _ = call("check", f"28_cta_pairs/{name}", "--shape", shape, "--alpha", "0.5",
                          "--beta", "-2", "--races", "--json")
    document = json.loads(out)
    assert status == 0 and document["ok"] and document["hazards"] == []
    assert (document["kernel"], document["variant"], document["shape"]) == (
        "28_cta_pairs", name, shape)
    assert document["arch"] == "sm_100a" and name[:5].title() in document["instantiation"]


@pytest.mark.parametrize("error", [
    ptx.Error("kernel 'naive': out of bounds at PTX line 94"),
    WrongResult("01_naive at 64x64x64: wrong; not timed")])
def test_a_kernel_that_fails_exits_1(call, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("lib.run.runner.run", fail)
    status, _, err = call("check", "01_naive", "--backend", "emulator")
    assert status == 1 and err == f"error: {error}\n"


def test_pairs_are_listed_with_the_lines_that_differ(call):
    status, out, _ = call("pairs", "01_naive", "--json")
    (row,) = json.loads(out)
    assert status == 0 and row["constant"] == "COALESCED" and row["lines"] > 0
    assert f"{row['lines']} lines" in call("pairs", "01_naive")[1]


def test_diff_puts_two_versions_side_by_side(call):
    words = ("diff", "02_shared_tile", "05_bank_conflicts/tile_transposed", "--shape", "64")
    status, out, _ = call(*words, "--json")
    document = json.loads(out)
    one, other = document["sides"]
    assert status == 0 and other["name"] == "05_bank_conflicts/tile_transposed"
    assert one["counters"]["shared_wavefronts"] != other["counters"]["shared_wavefronts"]
    assert one["resources"]["registers"] > 0 and one["mix"]["FMA"] > 0
    assert "--- 02_shared_tile.cu" in document["source"]
    _, out, _ = call(*words)
    (line,) = (line for line in out.splitlines() if "shared wavefronts " in line + " "
               and "ideal" not in line)
    assert [int(word.replace(",", "")) for word in line.split()[-2:]] == [
        one["counters"]["shared_wavefronts"], other["counters"]["shared_wavefronts"]]


@cases("""
scalars
--alpha inf
--alpha=-inf
--alpha nan
--alpha 1e300
--beta nan
--beta inf
--beta 1e300
--alpha inf --beta nan
""")
@pytest.mark.filterwarnings("error")
def test_scalars_without_end_have_a_verdict_too(call, scalars):
    status, out, err = call("check", "01_naive", "--shape", "20", "--backend", "emulator", "--json",
                            *scalars.split())
    document = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert status == 0 and err == "" and document["ok"]
    assert {document["alpha"], document["beta"]} & {"inf", "-inf", "nan"}


@cases("""
words | said
check 01_naiv | did you mean 01_naive?
check 01_naive/swaped | did you mean swapped?
check 01_naive --shape 0x4x4 | at least 1
check 01_naive --shape 2000000x2000000x1 --backend emulator --yes | memory
check 01_naive --shape 3000000x1x1 --backend emulator | M = 3000000
trace 01_naive --arch sm_76 | did you mean sm_75?
check 01_naive --shape 1x1x2000000000 --backend emulator | --yes
trace 01_naive --shape 1x1x2000000000 | --yes
check 01_naive --shape 12x13 | --shape
check 01_naive/ | NAME/VARIANT: unknown variant ''
check 01_naive --dtype float64 | --dtype
diff 01_naive 02_shared | B:
diff 01_naive/x 02_shared_tile | A:
diff 01_naive 02_shared_tile --shape 1x1x2000000000 | --yes
results 01_naiv | NAME: nothing is recorded of
results 01_naive/one_fragment | NAME/VARIANT: 01_naive: nothing is recorded of
results --shape 4k | --shape
results --shape 7 | nothing is recorded of --shape 7
results 01_naive --shape 7 --json | recorded of 01_naive, --shape 7
results --gpu '' | --gpu: nothing is recorded of ''
results --csv 01_naive | a NAME narrows the rows
results --check --gpu H100 | --gpu narrows the rows
check 01_naive --dtype float16 | --dtype: 01_naive/coalesced takes A and B in
check 10_wmma --dtype float32 | --dtype: 10_wmma/sixteen_fragments takes A and B in float16
check 14_ldmatrix/k16 --arch sm_75 --backend emulator \
 | 14_ldmatrix/k16 runs on sm_80 and later, not on sm_75
check 28_cta_pairs/mxfp8 --shape 128x128x90 \
 | --shape: 28_cta_pairs loads A in rows that are multiples of 16 bytes: K = 90
check 28_cta_pairs/nvfp4 --dtype float16 \
 | --dtype: 28_cta_pairs/nvfp4 takes A and B in float4_e2m1fn, not float16
check 28_cta_pairs/nvfp4 --arch sm_90a | compiled for sm_100a, not for sm_90a
export 28_cta_pairs/nvfp4 | has block scales, which check, trace and resources take
bench 28_cta_pairs/mxfp8 | has block scales, which check, trace and resources take
check 01_naive:swapped | unknown kernel '01_naive:swapped' (a variant is written 01_naive/swapped)
check 01_naive --dtype '' | --dtype
check 01_naive --arch '' | --arch
profile cublas/no | NAME/VARIANT: cuBLAS is not recorded as 'no'
profile cublas --dtype float16 | --dtype: cublas/fp32 takes A and B in float32
launch 01_naive --candidate x | --candidate:
rivals --sizes x | --sizes: 'x' is no shape
rivals --sizes 1x2x3 | --sizes: 1x2x3 is no cube
record 09_nothing | unknown kernel
check 01_naive --backend gpu | no GPU here
bench 01_naive | no GPU here
profile 01_naive | no GPU here
timeline 01_naive | no GPU here
record 01_naive | no GPU here
launch 01_naive | no GPU here
""")
def test_bad_input_is_one_line_and_status_2(call, no_gpu, words, said):
    status, out, err = call(*shlex.split(words))
    assert status == 2 and out == ""
    assert err.startswith("error: ") and err.count("\n") == 1 and said in err


@pytest.mark.parametrize("words", [("--variant", "swapped"), ("--variant=swapped",)])
def test_another_way_to_name_a_variant_is_told_the_one_that_there_is(capsys, words):
    with pytest.raises(SystemExit) as end:
        main(["check", "01_naive", *words])
    said = capsys.readouterr().err
    assert end.value.code == 2 and said.count("\n") == 1
    assert "a variant is written NAME/VARIANT" in said


def test_recording_without_a_gpu_writes_nothing(call, no_gpu, tmp_path, results):
    assert call("record")[0] == 2
    assert list(tmp_path.iterdir()) == []


def test_a_torn_record_is_one_line(call, tmp_path, results):
    (tmp_path / "h100").mkdir()
    (tmp_path / "h100" / "01_naive.json").write_text('{"schema": 1, ')
    status, _, err = call("results")
    assert status == 2 and "is torn" in err and err.count("\n") == 1


def test_a_driver_older_than_cupy_says_what_to_do(monkeypatch):
    from cupy.cuda import runtime

    monkeypatch.setattr(runtime, "driverGetVersion", lambda: 11040)
    monkeypatch.setattr(runtime, "runtimeGetVersion", lambda: 12090)
    device.why_unusable.cache_clear()
    try:
        said = device.why_unusable()
    finally:
        device.why_unusable.cache_clear()
    assert "too old" in said and "CUDA 11.4" in said and "cupy-cuda11x" in said


@cases("""
words | said
check 01_naive --seed -1 | --seed
check 01_naive --alpha one | --alpha
check 01_naive --backend cpu | --backend
zoo --record --jobs 0 | --jobs
zoo --record --minutes nan | --minutes
check | NAME[/VARIANT]
chek | chek
"" | COMMAND
results --shapes | unrecognized arguments: --shapes; python -m lib results --help
""")
def test_what_the_parser_refuses_is_one_line_and_status_2(capsys, words, said):
    with pytest.raises(SystemExit) as end:
        main(shlex.split(words))
    err = capsys.readouterr().err
    assert end.value.code == 2 and err.count("\n") == 1 and said in err


def shell(line: str) -> subprocess.CompletedProcess:
    """What becomes of a line of shell in which `lib` is the command line."""
    return subprocess.run(
        f'lib() {{ {shlex.quote(sys.executable)} -m lib "$@"; }}; {line}', shell=True,
        capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
@pytest.mark.parametrize("command", ["list --json", "list"])
def test_a_full_disk_is_one_line(command):
    done = shell(f"lib {command} > /dev/full")
    assert done.returncode == 2 and done.stderr == "error: No space left on device\n"


@pytest.mark.parametrize("command", ["list --json", "check --help"])
def test_a_pipe_that_nobody_reads_is_no_error(command):
    done = shell(f"(lib {command}; echo $? >&2) | true")
    assert done.stderr == "0\n"


def test_without_a_standard_error_nothing_is_said_in_its_place():
    done = shell("lib check 01_naiv 2>&-")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


@pytest.mark.parametrize("command", ["list", "check 01_naive --shape 32 --backend emulator"])
def test_a_c_locale_takes_nothing_away(call, command):
    done = shell(f"LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 lib {command}")
    assert (done.returncode, done.stdout, done.stderr) == call(*command.split())


def test_a_terminal_without_some_letters_shows_the_others():
    done = shell("PYTHONIOENCODING=iso8859-5 lib list | tr -d '\\200-\\377'")
    assert done.stderr == "" and done.stdout.count("\n") == len(KERNELS)


def test_every_text_file_is_written_with_a_named_encoding():
    """What is read goes through a helper (`tests/test_reading.py`)."""
    for file in (*(ROOT / "lib").rglob("*.py"), *(ROOT / "book").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if name == "open" or name.endswith(".write_text"):
                call = ast.unparse(node)
                assert "encoding=" in call or "'wb'" in call, f"{file}: {call}"


def test_no_output_at_all_is_one_line():
    done = shell("lib list >&-")
    assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_an_interruption_is_one_line_and_leaves_nothing_behind():
    words = ["check", "01_naive", "--shape", "1x1x30000000", "--yes", "--backend", "emulator"]
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; from lib.__main__ import main; print(flush=True);"
         f"sys.exit(main({words}))"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        # A shell's background jobs, these tests among them, ignore the signal from their birth.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    process.stdout.readline()  # Python itself is up, however busy the machine is
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out == "" and process.returncode == 130
    assert err == "interrupted\n"
    assert not list((ROOT / "_build" / "kept").glob("new-*"))


def test_most_commands_load_neither_compiler_nor_drawing(tmp_path):
    """They start in about a second; files are read by the emulator's package, which is loaded."""
    (tmp_path / "h100").mkdir()
    shutil.copy(RESULTS / "h100" / "01_naive.json", tmp_path / "h100")
    done = subprocess.run(
        [sys.executable, "-c", "import pathlib, sys; from lib.__main__ import main;"
         "from lib.records import store; store.RESULTS = pathlib.Path(sys.argv[1]);"
         "main(['results']); print(sorted({'cupy', 'matplotlib', 'IPython', 'ipywidgets'} "
         "& set(sys.modules)), file=sys.stderr)", tmp_path],
        capture_output=True, text=True, cwd=ROOT, check=False)
    assert "01_naive" in done.stdout and done.stderr == "[]\n"


def test_a_quote_in_the_path_is_compiled(tmp_path):
    folder = tmp_path / 'a "quoted" folder'
    folder.mkdir()
    (folder / "one.cuh").write_text("__device__ inline float one() { return 1.0f; }")
    from lib.compiler.nvrtc import compile_nvrtc

    made = compile_nvrtc(
        '#include "one.cuh"\nextern "C" __global__ void k(float* c) { *c = one(); }', [],
        [f"-I{folder}", "-arch=sm_75", "-lineinfo"], filename=str(folder / "k.cu"))
    assert b".entry k" in made.ptx and made.cubin


@pytest.mark.parametrize(
    "command", ["list", "check", "trace", "resources", "diff", "pairs", "results", "bench",
                "profile", "timeline", "record", "launch", "new", "notebooks", "stamp"],
)
def test_every_command_has_help(capsys, command):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0 and "usage: python -m lib" in capsys.readouterr().out


@pytest.fixture
def turing(monkeypatch):
    """A machine that seems to have a T4."""
    played.play(played.T4, monkeypatch.setattr)


def test_what_only_the_emulator_has_is_had_from_it(call, turing):
    status, out, _ = call("check", "02_shared_tile", "--shape", "40", "--races")
    assert status == 0 and "emulator" in out
    status, _, err = call("check", "02_shared_tile", "--backend", "gpu", "--races")
    assert status == 2 and "races: the emulator's alone" in err


def test_a_kernel_for_a_later_gpu_is_emulated_and_the_reason_is_said(call, turing):
    status, out, _ = call("check", "16_cp_async", "--shape", "64")
    assert status == 0 and "in the emulator (Tesla T4 doesn't run sm_80 code)" in out
    status, _, err = call("check", "16_cp_async", "--backend", "gpu")
    assert status == 2 and "Tesla T4 doesn't run sm_80 code" in err
    status, out, _ = call("resources", "16_cp_async")
    assert status == 0 and "tile_256x128 for sm_80" in out
    status, _, err = call("bench", "16_cp_async")
    assert status == 2 and err.count("\n") == 1 and "Tesla T4 doesn't run sm_80 code" in err


def test_code_for_a_later_gpu_is_not_launched(call, turing):
    status, _, err = call("check", "02_shared_tile", "--arch", "sm_80")
    assert status == 2 and "doesn't run on this GPU" in err


def test_an_interruption_while_modules_load_is_one_line():
    done = subprocess.run(
        [sys.executable, "-c", "import lib.cli.interruption; raise KeyboardInterrupt"],
        capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stderr == "interrupted\n" and done.returncode != 0
    first, *_ = re.findall(r"^from lib\S* import .*", (ROOT / "lib/__main__.py").read_text(), re.M)
    assert first.startswith("from lib.cli import interruption")
