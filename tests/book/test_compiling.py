"""The compiler's door, attacked: what asks it, what a source may read, what it may take."""

import http.client
import http.server
import json
import re
from pathlib import Path

import pytest

from book import compiling, serve
from book.compiling import MAX_REQUEST, Door, refusal
from lib.paths import ROOT
from tests.book.conftest import serving

GOOD = "__global__ void k(const float* a, float* b) { b[threadIdx.x] = 2 * a[threadIdx.x]; }"
FOLDERS = [ROOT / "cuda" / "include"]
SECRET = "no page may ever show this"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    root = tmp_path_factory.mktemp("pages")
    (root / "index.html").write_text("<p>here</p>")
    with serving(root) as server:
        yield server


def send(server, method="POST", path="/compile", body=b"", **headers):
    host = f"127.0.0.1:{server.server_port}"
    connection = http.client.HTTPConnection(host, timeout=60)
    headers = {"Host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def ask(server, source, kernel="", arch="sm_80", **headers):
    body = json.dumps({"source": source, "kernel": kernel, "arch": arch})
    return send(server, body=body, **{"Content_Type": "application/json",
                                      "X_Token": Door_token(), **headers})


def Door_token():  # noqa: N802 - the one that the handler's pages get
    return serve.Handler.door.token


def lives(server):
    status, answer = ask(server, GOOD)
    return status == 200 and ".entry" in answer["ptx"]


def test_it_compiles_and_says_what_the_parameters_are(server):
    status, answer = send(server, "GET")
    assert status == 200 and answer["token"] == Door_token() and "sm_80" in answer["archs"]
    status, answer = ask(server, GOOD)
    assert status == 200 and answer["kernels"][0]["args"] == [
        "a=float32[1024]:uniform", "b=float32[1024]:nan"]
    template = "#include <cuda_fp16.h>\n#include \"vector.cuh\"\n" + (
        "template <int N> __global__ void t(half* x) { x[threadIdx.x] = N; }")
    status, answer = ask(server, template, "t<3>", "sm_90a")
    assert status == 200 and answer["kernels"][0]["plain"] == "t", answer
    assert str(ROOT) not in answer["ptx"]
    assert "expected a" in ask(server, "__global__ void k( {}")[1]["error"]
    assert "no kernel" in ask(server, "__device__ int x;")[1]["error"]


def test_a_file_with_a_host_s_part_is_compiled_with_the_templates_that_it_launches(server):
    source = (
        "#include <cstdio>\r\n#include <vector>\r\n#include \"torch/extension.h\"\r\n"
        "template <int N> __global__ void t(float* x) { x[threadIdx.x] = N; }\r\n"
        "template <int N> void host(float* x) { t<N><<<1, 32>>>(x); }\r\n"
        "int main() { std::vector<float> x(32); t<3><<<1, 32>>>(x.data()); printf(\"done\"); }\r\n")
    status, answer = ask(server, source)
    assert status == 200 and answer["template"] == "t<3>", answer
    assert [(one["plain"], one["block"]) for one in answer["kernels"]] == [("t", [32, 1, 1])]
    unnamed = ask(server, source.replace("t<3>", "t<n>"))[1]["error"]
    assert "has t<int N>: name it with arguments" in unnamed


@pytest.mark.parametrize("headers", [
    {"Host": "evil.example"}, {"Host": "[::1"}, {"Host": ""}, {"Host": "localhost:80@evil.example"},
    {"Origin": "http://[::1"}, {"Host": "127.0.0.1.evil.example:80"},
    {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"},
    {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
    {"X_Token": ""}, {"X_Token": "guessed"}, {"Content_Type": "text/plain"},
    {"Content_Type": "application/x-www-form-urlencoded"},
])
def test_another_page_and_another_host_get_nothing(server, headers):
    status, answer = ask(server, GOOD, **headers)
    assert status in (403, 415) and "ptx" not in answer
    if {"Host", "Origin", "Sec_Fetch_Site"} & set(headers):
        status, answer = send(server, "GET", **headers)
        assert status == 403 and "token" not in answer


def test_another_machine_gets_nothing():
    door = Door()
    assert door.open_to({"Host": "localhost:8000"}, "127.0.0.1")
    assert not door.open_to({"Host": "localhost:8000"}, "192.168.1.7")


@pytest.mark.parametrize("path, length, status", [
    ("/compile", "-1", 413), ("/compile", "1e3", 413), ("/compile", str(MAX_REQUEST + 1), 413),
    ("/index.html", "2", 404), ("/../../etc/passwd", "2", 404),
])
def test_what_is_too_long_or_elsewhere_is_not_read(server, path, length, status):
    assert send(server, path=path, body=b"{}", Content_Length=length)[0] == status


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"source": 1}', b"\xff\xfe", b"null",
                                  b'{"source":"","kernel":"a\\n#include","arch":"sm_80"}',
                                  b'{"source":"","kernel":"","arch":"sm_80 -I/"}'])
def test_a_body_that_is_no_request_is_answered(server, body):
    status, answer = send(server, body=body, Content_Type="application/json", X_Token=Door_token())
    assert status == 200 and answer["error"] and "ptx" not in answer


@pytest.fixture
def secret(tmp_path):
    file = tmp_path / "secret.h"
    file.write_text(f"{SECRET}\n")
    return file


TRICKS = [
    '#include "{0}"', "#include <{0}>", '# include "{0}"', '#/**/include "{0}"',
    '/* a\n*/ #include "{0}"', '# /*\n// */ include "{0}"', '#inc\\\nlude "{0}"',
    '#inc\\  \nlude "{0}"', '#define X "{0}"\n#include X', "#define X <{0}>\n#include X",
    '%:include "{0}"', '??=include "{0}"', '#include_next "{0}"', '#embed "{0}"',
    'const char s[] = {{\n#embed "{0}"\n}};', '#if __has_include("{0}")\n#error there\n#endif',
    '#include "vector.cuh/../../../../../../../../../../..{0}"',
    '#include "../include/../../README.md"',
    '#include "/proc/self/environ"', '#include "/dev/stdin"', '#include "/dev/zero"',
    '#include __FILE__', '#line 1 "{0}"\n#include __FILE__',
    'const char* s = R"(/*)";\n#include "{0}"\n/**/',
    '"/*"\n#include "{0}"', '#include "vector.cuh" "{0}"', 'asm(".incbin \\"{0}\\"");',
    '#import "{0}"', '// x */ #include "{0}"', '#include "file://{0}"', '#include "c:{0}"',
    # Headers that are left out, or have a stand-in, lead nowhere else.
    '#include <sys/../../../../../../../../..{0}>', '#include <torch/../../../../../../../..{0}>',
    '#include <opencv2/../../vector.cuh>', '#inc\\\nlude <torch/extension.h>',
    '#include \\\n"cudnn.h"', '#include "README.md"', '#include "kernel.cu"',
    '#define H(a, b) a##b\n#if H(__has_, include)("{0}")\n#error there\n#endif',
    '_Pragma("include \\"{0}\\"")', '#\finclude "{0}"', '#include\v"{0}"', '#\u00a0include "{0}"',
    'int a;\u2028#include "{0}"', 'int a;\x85#include "{0}"', 'import "{0}";',
    '// \\\n#include <cstdio>\n/* */ #include "{0}"', 'const char* a = R"x(\n#include "{0}"\n)x";',
]


@pytest.mark.parametrize("trick", TRICKS)
def test_no_compiler_sees_what_could_read_another_file(secret, trick):
    assert refusal(trick.format(secret) + "\n" + GOOD, FOLDERS), trick


@pytest.mark.parametrize("source", [
    '#define CAT(a, b) a##b\nCAT(#inc, lude) "{0}"', "#error __FILE__",
    '#pragma include_alias("vector.cuh", "{0}")\n#include "vector.cuh"',
    '#line 1 "{0}"\n__global__ void z() {{ undefined_thing; }}',
    "#define Q(a, b) a b\n__device__ void f() {{ asm(Q(\".inc\", \"bin '{0}'\")); }}",
    '#line 1 "{0}"\nint main() {{ undefined_thing; }}',
    '#include <torch/extension.h>\n#include "cudnn.h"',
    "__global__ void q(const char** o) {{ *o = __FILE__; }}",
])
def test_what_a_compiler_sees_shows_no_file_and_no_folder(server, secret, source):
    _, answer = ask(server, source.format(secret) + "\n" + GOOD)
    said = json.dumps(answer)
    assert SECRET not in said and str(ROOT) not in said
    assert ", ".join(map(str, str(ROOT).encode())) not in said  # as PTX has a text


@pytest.mark.parametrize("trick", [TRICKS[0], TRICKS[18]])
def test_no_file_is_read_but_headers(server, secret, trick):
    source = trick.format(secret) + "\n" + GOOD
    status, answer = ask(server, source)
    assert status == 200 and "ptx" not in answer, trick
    assert SECRET not in json.dumps(answer) and "HOME=" not in json.dumps(answer)


def test_a_link_among_the_headers_leads_nowhere(tmp_path, secret):
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / "plain.h").write_text("")
    (folder / "link.h").symlink_to(secret)
    (folder / "out").symlink_to(tmp_path)
    assert refusal('#include "plain.h"', [folder]) == ""
    for name in ("link.h", "out/secret.h", "missing.h", "."):
        assert "is none of" in refusal(f'#include "{name}"', [folder])


@pytest.mark.parametrize("source", [
    "// It would include the halo, or embed it.\n" + GOOD,
    '#include "vector.cuh" // for include\n' + GOOD,
    "int included = 1, embedding = 2; // both\n" + GOOD, "#pragma unroll\n#define A 1\n" + GOOD,
])
def test_what_is_harmless_is_taken(source):
    assert refusal(source, FOLDERS) == "", source


@pytest.mark.parametrize("source, said", [
    ("x" * (compiling.MAX_SOURCE + 1), "longer than"),
    ("template<int N> struct F { static const int v = F<N + 1>::v; };"
     "__global__ void k(int* x) { *x = F<0>::v; }", "stopped|error"),
    ("template<int N, int M> struct F {"
     " static constexpr int v = F<N-1,2*M>::v + F<N-1,2*M+1>::v; };"
     "template<int M> struct F<0,M> { static constexpr int v = 1; };"
     "__global__ void k(int* x) { *x = F<24,0>::v; }", "stopped|failed|error|longer"),
    ("#define A(x) x x x x x x x x\n__global__ void k(int* y) { int x = 0; "
     + "A(" * 9 + "x++;" + ")" * 9 + " *y = x; }", "stopped|failed|error|longer"),
    ("constexpr int f() { int i = 0; while (true) i ^= 1; return i; }"
     "__global__ void k(int* y) { constexpr int x = f(); *y = x; }",
     "stopped|error"),
])
def test_what_explodes_is_stopped_and_the_server_lives(server, monkeypatch, source, said):
    with monkeypatch.context() as short:
        short.setattr(compiling, "SECONDS", 2)
        status, answer = ask(server, source)
    assert status == 200 and re.search(said, answer.get("error", "")), answer
    assert lives(server)


def test_two_at_once_are_one_after_the_other(server):
    door = serve.Handler.door
    with door._busy:
        status, answer = ask(server, GOOD)
    assert status == 429 and "try again" in answer["error"]
    assert lives(server)


def test_the_compiler_writes_nothing(tmp_path):
    before = set(Path("/tmp").iterdir())
    assert ".entry" in compiling.compiled(json.dumps(
        {"source": GOOD, "kernel": "", "arch": "sm_80"}).encode())["ptx"]
    assert not [one for one in set(Path("/tmp").iterdir()) - before if "nvrtc" in one.name.lower()]
