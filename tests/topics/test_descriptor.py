"""WGMMA's descriptors, the swizzle's bits and the tensor map's call, against what made them."""

import pytest

from lib.run import tensor_maps as run_maps
from lib.topics.memory.descriptor import model, page
from lib.topics.memory.tma_swizzle.model import descriptor
from lib.topics.version import Version


@pytest.mark.parametrize("stem, variant, slab, major", [
    ("17_wgmma", "wide", 64, "MN"), ("18_tma", "wide", 64, "MN"), ("18_tma", "bf16_column", 0, "K"),
])
def test_descriptors_of_a_run_are_those_of_the_layout(stem, variant, slab, major):
    kernel = Version(stem).kernel
    found = model.observed(kernel, kernel.variant(variant))
    a, b = (model.fields(found[name]) for name in "AB")
    assert found["A"] == descriptor(a[0].bytes, 128, "K").bits
    assert found["B"] == descriptor(b[0].bytes, 128, major, slab_rows=slab or 64).bits
    rows, _ = kernel.variant(variant).tile
    assert b[0].bytes - a[0].bytes == rows * 128  # B lies behind A
    assert a[0].bytes % 1024 == 0 and a[4].bytes == 128


def test_a_bit_of_no_field_is_refused():
    bits = descriptor(1024, 64, "K").bits
    assert [one.encoded for one in model.fields(bits)] == [64, 1, 32, 0, 2]
    with pytest.raises(ValueError, match="belong to no field"):
        model.fields(bits | 1 << 14)


@pytest.mark.parametrize("span, width", [(128, 3), (64, 2), (32, 1), (0, 0)])
def test_each_bit_of_the_swizzle(span, width):
    assert model.sources(span) == {
        bit: (bit, bit + 3) if bit < 4 + width else (bit,) for bit in range(4, 10)}


def test_kernels_without_what_is_asked_for_are_refused():
    kernel = Version("16_cp_async").kernel
    with pytest.raises(ValueError, match="no wgmma"):
        model.observed(kernel, kernel.variants[0])
    with pytest.raises(ValueError, match="takes no tensor map"):
        model.tensor_maps(kernel, kernel.variants[0], 256)
    with pytest.raises(ValueError, match="not of C"):
        page.tensor_map(Version("18_tma"), "C")


@pytest.mark.parametrize("variant", ["wide", "bf16_column"])
def test_the_call_has_the_boxes_of_the_catalogue(variant):
    kernel = Version("18_tma").kernel
    chosen = kernel.variant(variant)
    for name, made in model.tensor_maps(kernel, chosen, 512).items():
        said = {one.name: one.value for one in model.call(name, made)}
        rows, columns = chosen.maps.boxes[name]
        assert said["boxDim"] == f"{{{columns}, {rows}}}"
        assert said["globalDim"] == "{512, 512}" and said["globalStrides"] == "{1024}"
        assert said["swizzle"] == "CU_TENSOR_MAP_SWIZZLE_128B" and len(said) == 12


def test_the_call_names_the_codes_that_the_driver_gets():
    """cuda.h: CUtensorMapDataType counts FLOAT16 6, FLOAT32 7, BFLOAT16 9; UINT16 is 1."""
    header = {"FLOAT16": 6, "FLOAT32": 7, "BFLOAT16": 9, "UINT16": 1}
    for name, said in model._TYPES.items():
        code = run_maps._TYPES.get(name, run_maps._UNSIGNED[2])
        assert header[said] == code


def test_pages(shown):
    page.fields(Version("18_tma"))
    page.swizzle(5, 3)
    page.tensor_map(Version("18_tma"), "A")
    fields, swizzle, call = shown
    assert "| 62 to 63 | swizzle mode | 1 | 1 | swizzled by 128 bytes |" in fields
    assert "| 128 bytes | a9 | a8 | a7 | a6 ⊕ a9 | a5 ⊕ a8 | a4 ⊕ a7 |" in swizzle
    assert "| example: row 5, chunk 3 | 1 | 0 | 1 | 0 | 1 | 1 |" in swizzle
    assert "swizzled by 128 bytes | 1 | 0 | 1 | 1 | 1 | 0 |" in swizzle
    assert "| `globalStrides` | `{8192}` |" in call
