"""Whatever is read goes through one helper, which refuses pipes and devices instead of waiting."""

import ast

from lib.paths import ROOT
from lib.ptx.files import text_of
from tests.tables import cases

# What opens a file, or reads one that it is given the name of.
READS = {"read_text", "read_bytes", "open", "fdopen", "memmap", "fromfile", "mmap", "ZipFile"}
OF_NUMPY = {"np.load", "np.loadtxt", "nbformat.read"}
ALLOWED = {
    "lib/ptx/files.py": "the helper itself",
    "book/colab.py": "a chapter's first cell loads it, where there is no library yet",
    "tools/size.py": "runs where nothing is installed, NumPy among it, and takes regular files",
    "tools/lock.py": "the same",
    "tools/quick.py": "is there to say that lib is broken, and so imports nothing of it",
    "tools/warplens_readme.py": "plays a package in an environment that has not this repository",
}


def modules():
    return [path for folder in ("lib", "book", "tools") for path in (ROOT / folder).rglob("*.py")
            if str(path.relative_to(ROOT)) not in ALLOWED]


def reads(source):
    """The calls of a module that may read a file past the helper, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called.rpartition(".")[2] not in READS and called not in OF_NUMPY:
            continue
        if called.rpartition(".")[2].endswith(("open", "ZipFile")):
            modes = [str(word.value) for word in (
                *node.args, *(one.value for one in node.keywords if one.arg == "mode"))
                if isinstance(word, ast.Constant)]
            writes = "os.O_WRONLY" in ast.unparse(node) or any(
                set(mode) & set("wax") and set(mode) <= set("wax+bt") for mode in modes)
            if writes or "webbrowser" in called:
                continue
        if "BytesIO" in ast.unparse(node) or "fdopen" in called and "wb" in ast.unparse(node):
            continue
        yield f"{node.lineno}: {ast.unparse(node)}"


def test_nothing_is_read_past_the_helper():
    assert {str(path.relative_to(ROOT)): found for path in modules()
            if (found := [*reads(text_of(path))])} == {}


@cases("""
line                             | found
open(x)                          | True
x.open()                         | True
open(x, 'rb')                    | True
x.read_text()                    | True
np.load(x)                       | True
tarfile.open(x)                  | True
nbformat.read(x, 4)              | True
open(x, 'w')                     | False
x.open('ab')                     | False
text_of(x)                       | False
np.load(io.BytesIO(bytes_of(x))) | False
""")
def test_what_reads_is_known(line, found):
    assert bool([*reads(line)]) == found


def test_what_is_allowed_is_there_and_reads():
    assert all([*reads(text_of(ROOT / name))] for name in ALLOWED)
