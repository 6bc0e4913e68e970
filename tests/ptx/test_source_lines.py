"""What reports read of files that PTX names: nothing that was not given."""

import os

import pytest

from lib import ptx
from lib.compiler.raw_module import RawModule

from .conftest import s32s, u32s

TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .b64 %p;
    .loc 1 2 0
    ld.param.u64 %p, [out];
    st.global.u32 [%p+{past}], 1;
    ret;
}}
.file 1 "{file}"
"""
SECRET = "password = hunter2"


def message(file, past: int = 4096, **given) -> str:
    """All that an error at line 2 of a file says."""
    function = ptx.Module(TEXT.format(file=file, past=past), **given).get_function("k")
    with pytest.raises(ptx.OutOfBounds) as error:
        function(1, 1, (u32s(1),))
    return "\n".join([str(error.value), *error.value.__notes__])


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "given"
    folder.mkdir()
    path = folder / "gemm.cu"
    path.write_text(f"first\n    {SECRET}\nthird\n")
    return path


def test_without_folders_no_file_is_read(source):
    assert SECRET not in message(source)
    assert "CUDA gemm.cu:2" in message(source)  # its name is still told
    path = source.with_suffix(".ptx")
    path.write_text(TEXT.format(file=source, past=4096))
    for made in (RawModule(path=path), RawModule(code=path.read_text())):
        with pytest.raises(ptx.OutOfBounds) as error:
            made.get_function("k")(1, 1, (u32s(1),))
        assert not any(SECRET in note for note in error.value.__notes__)


def test_sources_in_given_folders_are_read(source):
    assert f"There: {SECRET}" in message(source, folders=[source.parent])
    assert f"There: {SECRET}" in message(source, folders=[str(source.parent.parent)])
    assert f"There: {SECRET}" in message("gemm.cu", sources={"gemm.cu": source.read_text()})


@pytest.mark.parametrize("file", ["/etc/passwd", "/proc/self/environ", "/dev/zero", "gemm\0.cu"])
def test_what_is_no_source_is_never_read(file, tmp_path):
    assert "There" not in message(file)
    assert "There" not in message(file, folders=["/", tmp_path])


def test_links_other_kinds_and_large_files_are_not_read(source, tmp_path):
    other = tmp_path / "other.cu"
    other.write_text(f"\n{SECRET}\n")
    folder = source.parent
    (folder / "link.cu").symlink_to(other)
    (folder / "notes.txt").write_text(f"\n{SECRET}\n")
    (folder / "link_to_notes.cu").symlink_to(folder / "notes.txt")
    (folder / "circle.cu").symlink_to(folder / "circle.cu")
    (folder / "zero.cu").symlink_to("/dev/zero")
    (folder / "large.cu").write_text(f"\n{SECRET}\n" + " " * (4 << 20))
    os.mkfifo(folder / "pipe.cu")
    (folder / "folder.cu").mkdir()
    names = ("link.cu", "notes.txt", "link_to_notes.cu", "circle.cu", "zero.cu", "large.cu",
             "pipe.cu", "folder.cu", "missing.cu", "../other.cu")
    for name in names:
        assert "There" not in message(folder / name, folders=[folder]), name


def test_a_report_of_hazards_reads_no_more_than_an_error(source):
    """Two blocks store to one word, each its own value."""
    text = TEXT.format(file=source, past=0).replace(
        "st.global.u32 [%p+0], 1;",
        ".reg .b32 %c; mov.u32 %c, %ctaid.x; st.global.u32 [%p+0], %c;")
    out = u32s(1)
    for given, shown in (({}, False), ({"folders": [source.parent]}, True)):
        launch = ptx.Module(text, **given).get_function("k")(2, 1, (out,), races=True)
        assert launch.hazards and (SECRET in str(launch)) == shown


def test_a_cuda_file_s_own_lines_and_headers_are_shown(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "include").mkdir()
    (tmp_path / "put.cuh").write_text("__device__ inline void put(int* p) { p[4096] = 1; }\n")
    (tmp_path / "include" / "far.h").write_text("__device__ inline void far(int* p)"
                                                " { p[8192] = 1; }\n")
    path = tmp_path / "sub" / "k.cu"
    path.write_text('#include "../put.cuh"\n#include <far.h>\n'
                    "__global__ void near(int* p) { put(p); }\n"
                    "__global__ void further(int* p) { far(p); }\n")
    module = RawModule(path=path, options=[f"-I{tmp_path / 'include'}"])
    for name, shown in (("near", "p[4096] = 1"), ("further", "p[8192] = 1")):
        with pytest.raises(ptx.OutOfBounds) as error:
            module.get_function(name)(1, 1, (s32s(1),))
        assert shown in "\n".join(error.value.__notes__)
