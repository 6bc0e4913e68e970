"""Instructions taken apart: each part has a meaning, and counts fit the shapes."""

import re

import pytest

from lib.compiler.sass import Instruction
from lib.kernels.catalogue import CATALOGUE
from lib.topics.code.instruction import model, page
from lib.topics.code.instruction.words import OPERATIONS
from lib.topics.version import Version

# What a chapter may show: all of these that its kernel has are taken apart.
SHOWN = (
    "wmma.load.a", "wmma.load.b", "wmma.load.c", "wmma.mma", "wmma.store.d", "mma.sync",
    "ldmatrix", "ldmatrix.trans", "stmatrix", "cp.async.cg", "cp.async.ca",
    "cp.async.commit_group", "cp.async.wait_group", "mbarrier.init", "mbarrier.arrive",
    "mbarrier.arrive.expect_tx", "mbarrier.try_wait.parity", "cp.async.bulk.tensor",
    "cp.async.bulk.tensor.multicast", "cp.async.bulk.commit_group", "cp.async.bulk.wait_group",
    "wgmma.mma_async", "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group", "setmaxnreg.inc",
    "setmaxnreg.dec", "barrier.cluster.arrive", "barrier.cluster.wait", "griddepcontrol.wait",
    "griddepcontrol.launch_dependents", "fence.proxy.async", "fence.mbarrier_init", "mapa", "red",
    "atom", "bar.sync", "st.global", "ld.global", "tcgen05.alloc", "tcgen05.mma", "tcgen05.ld",
    "tcgen05.commit", "tcgen05.wait::ld",
)
TENSOR = [stem for stem in CATALOGUE if stem >= "10"]
MMA = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"


@pytest.mark.parametrize("stem, variant", [
    *((stem, None) for stem in TENSOR), ("21_clusters", "half"), ("10_wmma", "four_fragments"),
])
def test_every_instruction_of_a_chapter_is_taken_apart(stem, variant):
    version = Version(stem)
    compiled = version.compiled(page._arch(version, variant), variant)
    shown = [opcode for opcode in SHOWN
             if any(model.has(one.opcode, opcode) for one in model.statements(compiled.ptx))]
    assert len(shown) >= 5
    for opcode in shown:
        found = model.apart(compiled.ptx, compiled.sass, opcode)
        assert all(part.meaning for part in found.parts)
        operation, _ = model.known(found.ptx.partition(" ")[0].rstrip(";"))
        assert bool(found.sass) == bool(operation.sass), opcode
        said = found.ptx + "".join(found.sass)
        assert not re.search(r"%|\bU?R\d|\bP\d", said), said


def test_some_parts_alone_and_no_unknown_one(shown):
    compiled = Version("14_ldmatrix").compiled("sm_90a", "k8")
    page.apart_of(compiled, "mma.sync", (".row",))
    [table] = [one for one in shown if "what it means" in one]
    assert ".<wbr>row" in table and ".<wbr>m16n8k8" not in table and "SASS" in table
    with pytest.raises(ValueError, match="no part .diagonal"):
        page.apart_of(compiled, "mma.sync", (".row", ".diagonal"))


def test_an_mma_by_its_parts():
    compiled = Version("14_ldmatrix").compiled("sm_90a", "k8")
    found = model.apart(compiled.ptx, compiled.sass, "mma.sync")
    assert found.ptx == f"{MMA} {{d0 … d3}}, {{a0, a1}}, {{b0}}, {{c0 … c3}};"
    assert found.sass == ("HMMA.1688.F32 Rd, Ra, Rb, Rc",) and found.counts == (1,)
    meanings = {part.token: part.meaning for part in found.parts}
    assert "2,048 FLOP" in meanings[".m16n8k8"]
    assert "16 × 8 elements / 32 lanes = 4 per lane" in meanings["{a0, a1}"]
    types = [part.meaning for part in found.parts if part.token in (".f16", ".f32")]
    assert [meaning[-7:] for meaning in types] == ["D: FP32", "A: FP16", "B: FP16", "C: FP32"]


def test_one_wmma_becomes_several_machine_instructions():
    compiled = Version("10_wmma").compiled("sm_75")
    found = model.apart(compiled.ptx, compiled.sass, "wmma.mma")
    assert found.sass == ("HMMA.1688.F32 Rd, Ra, Rb, Rc",) and found.counts == (4,)


def test_tensor_memory_s_instructions():
    compiled = Version("27_tcgen05").compiled("sm_100a")
    for opcode in ("tcgen05.alloc", "tcgen05.dealloc", "tcgen05.relinquish_alloc_permit",
                   "tcgen05.mma", "tcgen05.commit", "tcgen05.ld", "tcgen05.wait::ld",
                   "tcgen05.fence::after_thread_sync", "tcgen05.fence::before_thread_sync"):
        found = model.apart(compiled.ptx, compiled.sass, opcode)
        assert found.parts[0].token == opcode, opcode
    product = model.apart(compiled.ptx, compiled.sass, "tcgen05.mma")
    assert product.sass[0].startswith("UTCHMMA gdesc[URa], gdesc[URb], tmem[URd], tmem[URd], idesc")
    assert product.ptx == "tcgen05.mma.cta_group::1.kind::f16 [d], a-desc, b-desc, idesc, p;"


def test_a_pair_s_instructions():
    compiled = Version("28_cta_pairs").compiled("sm_100a")
    found = {opcode: model.apart(compiled.ptx, compiled.sass, opcode) for opcode in (
        "tcgen05.mma", "tcgen05.commit", "tcgen05.alloc",
        "cp.async.bulk.tensor.cta_group::2", "clusterlaunchcontrol.try_cancel")}
    assert all(".2CTA" in one.sass[0] for name, one in found.items() if "cancel" not in name)
    (asks,) = found["clusterlaunchcontrol.try_cancel"].sass
    assert asks == "UGETNEXTWORKID.BROADCAST [URanswer], [URmbar]"
    meanings = {part.token: part.meaning for part in found["tcgen05.commit"].parts}
    assert "gets the arrival" in meanings[".multicast::cluster"]


def entry(body):
    """An entry whose body begins in its first line."""
    return f".entry k() {{ .reg .pred %p<9>; {body}\n}}"


@pytest.mark.parametrize("opcode, operands, complaint", [
    (f"{MMA}.fancy", "{%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {%f1, %f2, %f3, %f4}",
     "no meaning of .fancy"),
    (MMA, "{%f1, %f2, %f3, %f4}, {%r1}, {%r3}, {%f1, %f2, %f3, %f4}", "4 elements of A"),
    (MMA, "{%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}", "no form with 3 such"),
])
def test_what_is_not_known_is_refused(opcode, operands, complaint):
    machine = [Instruction(0, "HMMA.1688.F32 R0, R4, R6, R0", "HMMA.1688.F32", 1)]
    with pytest.raises(ValueError, match=complaint):
        model.apart(entry(f"{opcode} {operands};"), machine, "mma")


@pytest.mark.parametrize("operands, shown", [
    ("[%r1], %rd1, %rd2, %r2, p", "[d], a-desc, b-desc, idesc, p"),
    ("[%r1], [%r3], %rd2, %r2, p", "[d], [a], b-desc, idesc, p"),
    ("[%r1], %rd1, %rd2, %r2, [%r4], [%r5], p",
     "[d], a-desc, b-desc, idesc, [scale-a], [scale-b], p"),
])
def test_forms_are_told_apart_by_their_operands(operands, shown):
    opcode = "tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale"
    machine = [Instruction(0, "UTCQMMA gdesc[UR4], gdesc[UR6]", "UTCQMMA", 1)]
    found = model.apart(entry(f"{opcode} {operands};"), machine, "tcgen05.mma")
    assert found.ptx == f"{opcode} {shown};"


def test_wgmma_may_take_a_from_registers():
    d, opcode = ", ".join(f"%f{i}" for i in range(32)), "wgmma.mma_async.sync.aligned"
    machine = [Instruction(0, "QGMMA.64x64x32.F32.E4M3.E4M3 R24, R4, gdesc[UR8], R24", "QGMMA", 1)]
    found = model.apart(
        entry(f"{opcode}.m64n64k32.f32.e4m3.e4m3 {{{d}}}, {{%r1, %r2, %r3, %r4}}, %rd1, p, 1, 1;"),
        machine, "wgmma.mma_async")
    assert "{d0 … d31}, {a0 … a3}, b-desc, p, 1, 1;" in found.ptx


@pytest.mark.parametrize("stem, opcode, who", [
    ("14_ldmatrix", "mma.sync", "warp"), ("14_ldmatrix", "ldmatrix", "warp"),
    ("17_wgmma", "wgmma.mma_async", "warpgroup"), ("17_wgmma", "wgmma.fence", "warpgroup"),
    ("17_wgmma", "wgmma.commit_group", "warpgroup"), ("17_wgmma", "wgmma.wait_group", "warpgroup"),
    ("19_warp_specialization", "setmaxnreg.dec", "warpgroup"),
])
def test_aligned_asks_for_a_whole_warpgroup_where_four_warps_work_together(stem, opcode, who):
    version = Version(stem)
    compiled = version.compiled(page._arch(version, None), None)
    meanings = {part.token: part.meaning
                for part in model.apart(compiled.ptx, compiled.sass, opcode).parts}
    assert meanings[".aligned"].startswith(f"all threads of the {who} execute")
    assert meanings[".sync"].startswith("the warp's threads wait")  # in both: PTX ISA


def test_what_is_missing_is_named():
    with pytest.raises(ValueError, match="no instruction wgmma.fence"):
        model.apart(entry(f"{MMA} {{%f1}}, {{%r1}}, {{%r3}}, {{%f1}};"), [], "wgmma.fence")
    whole = "{%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {%f1, %f2, %f3, %f4}"
    with pytest.raises(ValueError, match="machine code has no HMMA"):
        model.apart(entry(f"{MMA} {whole};"), [], "mma")


def test_one_without_a_predicate_is_preferred_and_the_fewest_qualifiers():
    ptx = entry("@%p1 bar.sync 0;\nbar.sync 1, 64;\nbar.sync.aligned.extra 2;")
    machine = [Instruction(0, "BAR.SYNC 0x1, 0x40", "BAR.SYNC", 2),
               Instruction(16, "BAR.SYNC 0x0", "BAR.SYNC", 1)]
    found = model.apart(ptx, machine, "bar.sync")
    assert found.ptx == "bar.sync 1, 64;" and found.sass == ("BAR.SYNC 0x1, 0x40",)


def test_no_operation_is_described_twice():
    names = [operation.name for operation in OPERATIONS]
    assert len(names) == len(set(names))


def test_a_page_shows_the_statement_and_a_table(shown):
    page.apart(Version("14_ldmatrix"), "ldmatrix.trans")
    statement, table = shown
    assert "ldmatrix.sync" in statement and "{r0 … r3}, [row];" in statement
    assert "LDSM.<wbr>16.<wbr>MT88.<wbr>4 Rr,</code> <code>[Rrow]" in table and "sm_90a" in table
