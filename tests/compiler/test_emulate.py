"""The command that runs any .cu without a GPU, as `python -m lib emulate` and by itself."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from lib.__main__ import main as book_main
from lib.compiler import arguments, command, emulate, streams
from lib.paths import ROOT
from tests.links import unpacked
from tests.tables import cases

FILE = r"""
#include <cstdio>
#include <cuda_runtime.h>
template <int WIDTH, int STEPS>
__global__ void gemm(int n, const float* A, const float* B, float* C)
{
    __shared__ float row[WIDTH];
    const int i = blockIdx.x, j = threadIdx.x;
    row[j] = A[i * n + j];
#ifndef BROKEN
    __syncthreads();
#endif
    float sum = 0.0f;
    for (int k = 0; k < STEPS; k++)
        sum += row[k] * B[k * n + j];
    C[i * n + j] = sum;
}
__global__ void late(int* out, int n) { out[n] = 1; }
int main() { gemm<64, 64><<<64, 64>>>(64, nullptr, nullptr, nullptr); printf("\n"); }
"""
GEMM = ["--kernel", "gemm<64,64>", "--grid", "64", "--block", "64", "--arg", "int:64",
        "--arg", "A=float32[64,64]:uniform", "--arg", "B=float32[64,64]:uniform",
        "--arg", "C=float32[64,64]:nan"]


BAD_FILES = {
    "empty.npy": "", "torn.npy": "\x93NUMPY", "none.ptx": "garbage\n", "syntax.py": "def (\n",
    "import.py": "import sys\nimport nowhere\n", "value.py": "raise ValueError('of the script')\n",
    "exit.py": "raise SystemExit(3)\n",
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("theirs") / "my.cu"
    file.write_text(FILE)
    return str(file)


@pytest.fixture
def call(capsys):
    """Run the command; return its status, stdout and stderr."""

    def run(*words, main=command.main):
        status = main([str(word) for word in words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def line_of(text: str) -> str:
    return f"my.cu:{next(i for i, row in enumerate(FILE.splitlines(), 1) if text in row)}"


@pytest.mark.parametrize("main", [command.main, lambda words: book_main(["emulate", *words])],
                         ids=["its own", "the book's"])
def test_a_template_is_run_and_told_by_line(call, path, tmp_path, main):
    status, out, _ = call(path, *GEMM, "--races", "--out", tmp_path / "C.npy", "--out",
                          f"A={tmp_path / 'a.npy'}", "--out", f"B={tmp_path / 'b.npy'}", main=main)
    A, B, C = (np.load(tmp_path / name) for name in ("a.npy", "b.npy", "C.npy"))
    assert status == 0 and np.allclose(C, A @ B, atol=1e-4)
    assert "ran to its end; races: none found, " in out and "s in the emulator" in out
    rows = [row.split() for row in out.splitlines() if row.startswith(line_of("sum +="))]
    fma = next(row for row in rows if "multiply-add" in row)
    assert fma[-1] == f"{64**3:,}"
    load = next(row for row in rows if row[1:3] == ["global", "load"])
    assert load[3:] == ["8,192", "32,768", "4.00"]


def test_a_hazard_is_status_1(call, path):
    status, out, _ = call(path, *GEMM, "--races", "-D", "BROKEN")
    assert status == 1 and f"{line_of('row[j] =')} and {line_of('sum +=')}" in out
    assert "What to do: __syncthreads()" in out


def test_json_has_what_its_help_says(call, path):
    status, out, _ = call(path, *GEMM, "--races", "--json", "-D", "BROKEN")
    document = json.loads(out)
    (launch,) = document["launches"]
    assert status == 1 and document["ok"] is False
    assert launch["hazards"][0]["kind"] == "race" and launch["ended"] == "ran to its end"
    assert launch["counters"]["ffma_thread_instructions"] == 64**3
    assert set(launch) == {"kernel", "ended", "errors", "races_looked_for", "verdicts", "hazards",
                           "remarks", "counters", "lines", "merged", "seconds"}
    assert launch["verdicts"] == {"races": f"{len(launch['hazards'])} found"}


def test_an_error_is_status_1_with_its_line(call, path):
    words = (path, "--kernel", "late", "--arg", "x=int32[4]", "--arg", "int:9")
    status, out, _ = call(*words)
    assert status == 1 and f"CUDA {line_of('late(int')}" in out and "There: " in out
    assert "What to do: guard the access" in out
    status, out, _ = call(*words, "--json")
    assert status == 1 and json.loads(out)["launches"][0]["errors"][0]["kind"] == "OutOfBounds"
    status, out, _ = call(*words, "--go-on")
    assert status == 1 and "was stopped" in out


def test_what_was_found_before_an_error_is_grouped_by_lines(call, tmp_path):
    file = tmp_path / "both.cu"
    file.write_text(r"""
__global__ void both(int* out)
{
    __shared__ int s[4][64];
    #pragma unroll
    for (int i = 0; i < 4; i++) {
        s[i][threadIdx.x] = i;
        out[64 * i + threadIdx.x] = s[i][63 - threadIdx.x];
    }
    out[1 << 20] = 1;
}
""")
    words = (file, "--block", "64", "--arg", "x=int32[256]", "--races", "--json")
    status, out, _ = call(*words)
    (launch,) = json.loads(out)["launches"]
    assert status == 1 and launch["errors"][0]["kind"] == "OutOfBounds"
    (race,) = (one for one in launch["hazards"] if one["kind"] == "race")
    assert (race["first"], race["second"], race["pairs"]) == ("both.cu:7", "both.cu:8", 4)
    assert "__syncthreads()" in race["advice"]


def test_a_kernel_to_name_and_the_folder_of_its_headers_are_said_at_once(call, monkeypatch):
    """A template that nobody names compiles without its headers: the next run would miss them."""
    monkeypatch.chdir(ROOT)
    status, _, err = call("cuda/01_naive.cu")
    assert status == 2
    first, second = err.splitlines()
    assert first.endswith("name a kernel; there are: naive<int TILE, bool COALESCED>")
    assert second.startswith(
        "01_naive.cu includes headers that lie elsewhere: pass -I cuda/include (01_naive.cu:10 ")
    _, _, err = call("cuda/01_naive.cu", "-I", "cuda/include")
    assert err.splitlines() == [first]


def test_a_budget_is_held(call, path):
    assert call(path, *GEMM, "--budget", "load_sectors_per_request < 5")[0] == 0
    status, out, _ = call(path, *GEMM, "--budget", "shared_load_instructions == 0")
    assert status == 1 and "budget shared_load_instructions == 0: it is" in out
    status, _, err = call(path, *GEMM, "--budget", "sectors_a_request < 5")
    assert status == 2 and "nearest is sectors_per_request" in err


@cases("""
words                                          | said
nowhere.cu                                     | no such file
FOLDER                                         | is no file that can be read
FILE                                           | name a kernel; there are: late, gemm
FILE --kernel late --arg float32[4             | --arg 'float32[4'
FILE --kernel late --arg x=floaty[4]           | floaty
FILE --kernel late --arg int32[4] --out C.npy  | no array is called C
FILE --kernel gemm<64>                         | gemm<64>
FILE --arch sm_20                              | sm_20
FILE --kernel lat                              | no kernel 'lat'
FILE --kernel late                             | not 0; name each in order: --arg 'A=float32
FILE --kernel late --arg int32[4]              | takes 2 arguments (int* out, int n), not 1
LATE --arg int:1                               | takes 2 arguments (int* out, int n), not 3
FILE --kernel late --arg float64[4] --arg int:1 | argument 0 (int* out): was given an array
FILE --kernel late --arg int32[4] --arg float:1 | needs an integer
FILE --kernel late --arg int:1 --arg int:1     | needs an array
LATE --block 2048                              | x must be from 1 to 1024
LATE --grid 0                                  | grid (0, 1, 1)
LATE --cluster 3                               | no multiple of the cluster
LATE --shared 999999999                        | shared_mem 999999999
LATE --out arg0=                               | name a file
LATE --out arg0=nowhere/C.npy                  | nowhere/C.npy: No such file or directory
FILE --kernel late --arg @FOLDER/torn.npy      | torn.npy': holds no array
FILE --kernel late --arg @FOLDER/empty.npy     | empty.npy': holds no array
FILE --kernel late --arg @FOLDER               | it is no regular file
FILE --kernel late --arg @/dev/zero            | it is no regular file
FILE --kernel late --arg @FOLDER/none.npy      | there is no such file
FILE --kernel late --arg int:nan               | 'int:nan': 'nan' is no whole number
FILE --kernel late --arg int32[4]:many         | fill with numbers, or zeros
FILE --kernel late '--option=-Da b'            | a b
FOLDER/none.ptx                                | none.ptx is no PTX
FOLDER/import.py                               | import.py:2: ModuleNotFoundError: No module named
FOLDER/syntax.py                               | syntax.py:1: SyntaxError
FOLDER/value.py                                | value.py:1: ValueError: of the script
FOLDER/exit.py                                 | exit.py ended with status 3
""")
def test_bad_input_is_status_2_and_one_clear_line(call, path, words, said):
    """What never began: nothing ran, so nothing is wrong with the kernel."""
    folder = Path(path).parent
    for name, text in BAD_FILES.items():
        (folder / name).write_text(text)
    words = words.replace("LATE", "FILE --kernel late --arg int32[4] --arg int:1")
    status, out, err = call(*shlex.split(
        words.replace("FILE", path).replace("FOLDER", str(folder))))
    assert (status, out) == (2, "") and err.startswith("error:") and said in err
    assert err.count("\n") == 1 or "compil" in err  # NVRTC says more


@cases("""
words         | said
--seed -1     | --seed
--shared -1   | --shared
--grid 1,a    | --grid
--block 1,1,1,1 | --block
--cluster ''  | --cluster
-I nowhere    | -I: 'nowhere': there is no such folder
-D 'a b'      | -D: 'a b': NAME or NAME=VALUE
-D =1         | -D
""")
def test_the_option_that_was_given_a_bad_value_is_named(call, path, capsys, words, said):
    with pytest.raises(SystemExit) as end:
        call(path, *shlex.split(words))
    assert end.value.code == 2 and f"argument {said}" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_an_array_goes_to_the_very_file_that_was_named(call, path, tmp_path):
    ok = [path, "--kernel", "late", "--arg", "x=int32[4]", "--arg", "int:1"]
    status, _, err = call(*ok, "--out", "x=/dev/full")
    assert status == 2 and "/dev/full" in err and "No space left" in err and err.count("\n") == 1
    assert call(*ok, "--out", f"x={tmp_path / 'plain'}")[0] == 0
    assert np.load(tmp_path / "plain").tolist() == [0, 1, 0, 0]
    assert [file.name for file in tmp_path.iterdir()] == ["plain"]


def test_a_script_that_ends_itself_is_reported_on(call, path, tmp_path):
    script = tmp_path / "ends.py"
    script.write_text(SCRIPT.format(path=path, options=[]) + "raise SystemExit(0)\n")
    status, out, _ = call(script, "--json")
    assert status == 0 and len(json.loads(out)["launches"]) == 2


class Terminal(io.StringIO):
    def isatty(self):
        return True


LONG = """__global__ void turn(int* x, int n, int m) {
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) atomicAdd(x, i);
}"""


def long(tmp_path, n, m):
    """Words of the command for a kernel that takes n times m steps."""
    file = tmp_path / "long.cu"
    file.write_text(LONG)
    return (file, "--block", "32", "--arg", "x=int32[1]", "--arg", f"int:{n}", "--arg", f"int:{m}")


def test_a_long_launch_says_how_far_it_is_before_any_block_has_ended(call, tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "SILENT_SECONDS", 0.01)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("COLUMNS", "200")
    now = iter(np.arange(1, 10**6))  # a look every hundredth of a second, and a second each
    monkeypatch.setattr(streams.time, "monotonic", lambda: float(next(now)))
    monkeypatch.setattr(streams, "TERMINAL_SECONDS", 0.01)
    status, _, _ = call(*long(tmp_path, 30, 200))
    said = terminal.getvalue()
    assert status == 0 and re.search(r"long\.cu: \d+ (s|minutes), [\d,]+ instructions \(", said)
    shares = [float(share) for share in re.findall(
        r"long\.cu: \d+ (?:s|minutes?) of about \d+ (?:s|minutes?); the loop of line 2 has done "
        r"([\d.]+)% in ", said)]
    assert shares and shares == sorted(shares) and shares[-1] > 50


def test_progress_is_told_to_who_asks_and_never_on_stdout(path, tmp_path):
    """10^8 steps, of which nobody waits for more than the first few."""
    words = [str(word) for word in long(tmp_path, 1, 10**8)]
    code = ("import sys; from lib.compiler import command, streams; "
            "streams.SILENT_SECONDS = streams.LINE_SECONDS = 0.3; "
            "sys.exit(command.main(sys.argv[1:]))")
    done = subprocess.run([sys.executable, "-c", code, *words, "--json", "--progress", "--turns",
                           "2000"], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert json.loads(done.stdout)["launches"][0]["ended"] == "stopped"
    assert "long.cu: " in done.stderr and "\r" not in done.stderr
    assert re.search(r" of at least \d+ \w+; the loop of line 3 has done 0\.0% in ", done.stderr)
    assert "; stopped as endless in " in done.stderr
    quiet = subprocess.run([sys.executable, "-c", code, *words, "--turns", "500"],
                           capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert quiet.returncode == 1 and not quiet.stderr


PROGRAMS = {"its own": "from lib.compiler.command import main", "the book's":
            "from lib.__main__ import main; sys.argv.insert(1, 'emulate')"}
PROGRAM = "import sys; {}; sys.exit(main(sys.argv[1:]))"


def process(name="the book's"):
    return [sys.executable, "-c", PROGRAM.format(PROGRAMS[name])]


@pytest.fixture(params=PROGRAMS)
def program(request):
    """The command as a process of its own, its words behind it."""
    return process(request.param)


def test_json_is_alone_on_stdout_whatever_a_script_writes(path, tmp_path):
    script = tmp_path / "loud.py"
    script.write_text("import os, subprocess, sys\nprint('by print')\n"
                      "os.write(1, b'by number\\n')\n"
                      "subprocess.run(['echo', 'by another'])\nsys.__stdout__.write('by name\\n')\n"
                      + SCRIPT.format(path=path, options=[]))
    done = subprocess.run([*process(), script, "--json"], capture_output=True, text=True, cwd=ROOT)
    assert len(json.loads(done.stdout)["launches"]) == 2
    assert {f"by {how}" for how in ("print", "number", "another", "name")} <= {
        *done.stderr.splitlines()}


def test_what_a_kernel_prints_is_not_in_the_json(tmp_path):
    file = tmp_path / "says.cu"
    file.write_text('#include <cstdio>\n__global__ void f() { printf("hello\\n"); }')
    done = subprocess.run([*process(), file, "--json"], capture_output=True, text=True, cwd=ROOT)
    assert json.loads(done.stdout)["ok"] and done.stderr == "hello\n"


def test_a_pipe_that_nobody_reads_is_no_error(program, path):
    words = [*program, path, *GEMM]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          cwd=ROOT) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_a_c_locale_takes_nothing_away(tmp_path):
    (tmp_path / "größer.cu").write_text("__global__ void f(int* x) { x[threadIdx.x] = 1; }  // „Ω“")
    words = [*process(), tmp_path / "größer.cu", "--arg", "int32[1]", "--block", "2"]
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(words, capture_output=True, encoding="utf-8", cwd=ROOT, env=plain)
    assert done.returncode == 1 and "größer.cu:1" in done.stdout and "Traceback" not in done.stderr


def test_an_interruption_is_one_line_and_a_termination_none(program, tmp_path):
    result = tmp_path / "x.npy"
    result.write_bytes(b"of a run before")
    words = [*program, *map(str, long(tmp_path, 1, 10**8)), "--turns", "0", "--out", str(result)]
    ends = {signal.SIGINT: ("interrupted\n", 130), signal.SIGTERM: ("", -signal.SIGTERM)}
    processes = [subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) for _ in ends]
    time.sleep(4)
    for process, (number, (said, status)) in zip(processes, ends.items(), strict=True):
        process.send_signal(number)
        assert process.communicate(timeout=60) == ("", said) and process.returncode == status
    assert result.read_bytes() == b"of a run before"


def test_control_characters_are_shown_and_not_sent(call, tmp_path):
    file = tmp_path / "coloured.cu"
    file.write_text('#include <cstdio>\n__global__ void f(int* x) {\n'
                    '    printf("\\033[2Jred\\a\\n");\n'
                    "    x[threadIdx.x / 2] = threadIdx.x;  // \x1b]0;title\x07 \u202eabc\n}\n")
    status, out, err = call(file, "--block", "2", "--arg", "int32[4]", "--races")
    assert status == 1 and "\\x1b[2Jred\\x07\n" in out and r"\x1b]0;title\x07 \u202eabc" in out
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", out + err)
    file.write_text("__global__ void f(int* x) { wrong; /* \x1b[31m */ }\n")
    status, out, err = call(file)
    assert status == 2 and r"\x1b[31m" in err and "\x1b" not in out + err


def test_a_grid_that_takes_years_is_refused(call, tmp_path, monkeypatch):
    monkeypatch.setattr(emulate, "FORESEEN_SECONDS", 0.1)
    (tmp_path / "f.cu").write_text("__global__ void f(int* x) { *x = 1; }\n")
    words = (tmp_path / "f.cu", "--grid", "2147483647,65535,65535", "--arg", "int32[1]")
    status, out, err = call(*words)
    assert (status, out) == (2, "")
    assert re.fullmatch(r"error: --grid: [\d,]+ blocks would take about [\d,]+ years .*--yes.*\n",
                        err)


def test_a_long_kernel_may_take_as_many_turns_as_it_is_given(call, tmp_path):
    words = long(tmp_path, 10, 100)
    assert call(*words)[0] == call(*words, "--turns", "0")[0] == 0
    status, out, _ = call(*words, "--turns", "50")
    assert status == 1 and "has taken 50 turns" in out and "--turns 0" in out


SCRIPT = """
import numpy as np
from lib import RawModule

module = RawModule(path={path!r}, name_expressions=["gemm<64,64>"], options={options!r})
A, B = np.ones((2, 64, 64), np.float32)
C = np.zeros((64, 64), np.float32)
gemm = module.get_function("gemm<64,64>")
gemm((64,), (64,), (np.int32(64), A, B, C))
gemm((64,), (64,), (np.int32(64), C, B, A))
assert (A == 64 * 64).all()
"""


@pytest.mark.parametrize("options, status", [([], 0), (["-DBROKEN"], 1)])
def test_a_script_s_launches_are_told_in_order(call, path, tmp_path, options, status):
    script = tmp_path / "several.py"
    script.write_text(SCRIPT.format(path=path, options=options))
    got, out, _ = call(script, "--races", "--json")
    document = json.loads(out)
    assert got == status and len(document["launches"]) == 2
    assert all(launch["races_looked_for"] for launch in document["launches"])


def test_a_script_that_launches_nothing_is_no_success(call, tmp_path):
    (tmp_path / "empty.py").write_text("x = 1\n")
    status, out, _ = call(tmp_path / "empty.py")
    assert status == 1 and "launched no kernel" in out


def test_arguments_are_read():
    words = ["int:-3", "a=float16[2,3]:nan", "size_t:0x10", "null", "b=uint8[4]:7", "bytes:00ff",
             "c=float32[2x2]:arange", "d=int32[5]:uniform", "e=int32[2,3]:4,5,-1",
             "f=int8[999]:-1..3", "g=uint32[4,99]:126..129 bytes"]
    found = {one.name: one.value for one in arguments.parse(words)}
    assert found["arg0"] == np.int32(-3) and type(found["arg0"]) is np.int32
    assert found["a"].shape == (2, 3) and np.isnan(found["a"]).all()
    assert type(found["arg2"]) is np.uint64 and found["arg2"] == 16 and found["arg3"] is None
    assert (found["b"] == 7).all() and found["arg5"] == b"\0\xff"
    assert found["c"].tolist() == [[0, 1], [2, 3]] and found["d"].dtype == np.int32
    assert found["e"].tolist() == [[4, 5, -1], [-1, -1, -1]]
    assert found["f"].dtype == np.int8 and {*found["f"].tolist()} == {-1, 0, 1, 2, 3}
    assert {*found["g"].view(np.uint8).ravel().tolist()} == {126, 127, 128, 129}


def test_tensor_maps_are_of_arrays_named_before():
    words = ["a=float16[8,128]:uniform", "m=map[8,64]:a:128", "p=mapptr[2,8,64]:other",
             "w=map[1,8,72]:other:0:64"]
    other = np.zeros((8, 128), np.float16)
    a, m, p, w = arguments.parse(words, arrays={"other": other})
    assert m.value.array is a.value and (m.value.box, m.value.swizzle) == ((8, 64), 128)
    assert p.value.nbytes == 128 and bytes(p.value) == bytes(p.keeps)
    assert p.keeps.array.shape == (2, 8, 64)
    assert np.shares_memory(p.keeps.array, other)
    assert w.value.box == (1, 8, 72) and w.value.array.shape == (2, 8, 64)


def test_two_arrays_differ_and_a_seed_repeats_them():
    words = ["a=float32[8]:uniform", "b=float32[8]:uniform"]
    a, b = (one.value for one in arguments.parse(words))
    assert not (a == b).all() and (arguments.parse(words)[1].value == b).all()
    assert not (arguments.parse(words, seed=1)[0].value == a).all()


@cases("""
word                | said
int                 | neither
int:1.5             | int:1.5
uint:-1             | does not fit
float:1e39          | 1e39 does not fit float32
half[4]:1e5         | does not fit float16
bool:maybe          | neither true nor false
int8[4]:3..2        | 3..2 has no number
int8[4]:0..128      | 128 does not fit int8
int32[4]:0..256 bytes | 256 does not fit uint8
half[4]:0..1        | 0..1
int32[4]:nan        | no NaN
@nowhere.npy        | nowhere.npy
a b                 | write int:128
map[8,64]:a         | no matrix 'a' before it
map[8,64]           | no matrix ''
""")
def test_what_is_no_argument_is_named(word, said):
    with pytest.raises(ValueError, match=said):
        arguments.parse([word])


def test_the_link_holds_what_ran(tmp_path, capsys):
    (tmp_path / "k.cu").write_text(
        "__global__ void k(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }\n")
    words = ["emulate", str(tmp_path / "k.cu"), "--block", "32", "--arg", "x=float32[32]:uniform",
             "--arg", "y=float32[32]:nan", "--link"]
    assert command.main(words[1:]) == 0
    address = capsys.readouterr().out.strip().split("\n")[-1]
    request = unpacked(address)
    assert request["args"] == ["x=float32[32]:uniform", "y=float32[32]:nan"]
    assert request["sources"]["k.cu"].startswith("__global__") and request["block"] == [32]
    assert str(tmp_path) not in json.dumps(request) and '"k.cu"' in request["ptx"]
    assert command.main([*words[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["link"] == address
    assert command.main([*words[1:], "--arg", "@a.npy"]) == 2
