"""WGMMA's descriptors, the swizzle's bits and the tensor map's call, against what made them."""

import pytest

from lib.show import descriptor as model
from lib.show.operand import FIELDS, START_FIELD
from lib.show.version import Version
from tests.boxes import descriptor


@pytest.mark.parametrize("stem, variant, slab, major", [
    ("17_wgmma", "wide", 64, "MN"), ("18_tma", "wide", 64, "MN"), ("18_tma", "bf16_column", 0, "K"),
])
def test_descriptors_of_a_run_are_those_of_the_layout(stem, variant, slab, major):
    kernel = Version(stem).kernel
    found = model.observed(kernel, kernel.variant(variant))
    a, b = (16 * START_FIELD.of(found[name]) for name in "AB")
    assert found["A"] == descriptor(a, 128, "K").bits
    assert found["B"] == descriptor(b, 128, major, slab_rows=slab or 64).bits
    rows, _ = kernel.variant(variant).tile
    assert b - a == rows * 128  # B lies behind A
    assert a % 1024 == 0


def test_a_bit_of_no_field_is_refused(monkeypatch):
    bits = descriptor(1024, 64, "K").bits
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
