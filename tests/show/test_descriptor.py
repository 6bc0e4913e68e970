"""WGMMA's descriptors, the swizzle's bits and the tensor map's call, against what made them."""

import pytest

from lib.show import descriptor as model
from lib.show.operand import FIELDS, START_FIELD
from lib.show.version import Version


def descriptor(start, span, leading=16):
    """The bits of a descriptor of rows of so many bytes, swizzled by as many (PTX ISA 9.7.15.5)."""
    return start >> 4 | leading >> 4 << 16 | 8 * span >> 4 << 32 | {128: 1, 64: 2}[span] << 62


# Along N, a slab of 64 rows lies behind the other.
@pytest.mark.parametrize("stem, variant, leading", [
    ("17_wgmma", "wide", 64 * 128), ("18_tma", "wide", 64 * 128), ("18_tma", "bf16_column", 16),
])
def test_descriptors_of_a_run_are_those_of_the_layout(stem, variant, leading):
    kernel = Version(stem).kernel
    found = model.observed(kernel, kernel.variant(variant))
    a, b = (16 * START_FIELD.of(found[name]) for name in "AB")
    assert found["A"] == descriptor(a, 128) and found["B"] == descriptor(b, 128, leading)
    rows, _ = kernel.variant(variant).tile
    assert b - a == rows * 128  # B lies behind A
    assert a % 1024 == 0


def test_a_bit_of_no_field_is_refused(monkeypatch):
    bits = descriptor(1024, 64)
    assert [one.of(bits) for one in FIELDS["wgmma"]] == [64, 1, 32, 0, 2]
    monkeypatch.setattr(model, "observed", lambda *_: {"A": bits, "B": bits | 1 << 14})
    with pytest.raises(ValueError, match="belong to no field"):
        model.fields(Version("18_tma"))


def test_kernels_without_what_is_asked_for_are_refused():
    kernel = Version("16_cp_async").kernel
    with pytest.raises(ValueError, match="no wgmma"):
        model.observed(kernel, kernel.variants[0])


def test_pages(shown):
    model.fields(Version("18_tma"))
    fields, = shown
    assert "| 62 to 63 | swizzle | 1 | 1 | swizzled by 128 bytes |" in fields
