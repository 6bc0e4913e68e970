"""What the parts of a PTX instruction mean, in one table: operations, operands, qualifiers, SASS.

The meanings are PTX ISA's (sections 9.7.9, 9.7.13 to 9.7.16), said in our own words; those of the
machine instructions follow NVIDIA's list of SASS opcodes (CUDA Binary Utilities, chapter 7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lib.kernels.frozen import frozen


@dataclass(frozen=True)
class Role:
    """One operand of an operation.

    Attributes
    ----------
    symbol : str
        What stands on the page in place of a register's number. A literal of the PTX stays.
    meaning : str
    matrix : str
        Of a fragment, which matrix: ``"A"`` to ``"D"``. Its registers are counted and checked.
    optional : bool
        Whether the operand, with all behind it, may be left out.
    """

    symbol: str
    meaning: str
    matrix: str = ""
    optional: bool = False


@dataclass(frozen=True)
class Operation:
    """One instruction: what begins its mnemonic, and what its parts are for.

    Attributes
    ----------
    name : str
        The leading parts of the mnemonic.
    does : str
    operands : tuple of Role
    types, layouts : tuple of str
        Whose element types and whose layouts the qualifiers name, in the order in which they stand.
    sass : str
        Pattern of the machine instruction's opcode; empty where it has none of its own.
    sass_operands : tuple of str
        The roles of the machine instruction's registers, operand by operand.
    sass_meaning : str
        What it says; where there is none, why.
    lanes : int
        Threads that a fragment is spread over.
    others : tuple of tuple of Role
        The operands of other forms: where A is in registers or in tensor memory, with scales.
    own : mapping of str to str
        Qualifiers that mean something else here.
    """

    name: str
    does: str
    operands: tuple[Role, ...] = ()
    types: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ()
    sass: str = ""
    sass_operands: tuple[str, ...] = ()
    sass_meaning: str = ""
    lanes: int = 32
    others: tuple[tuple[Role, ...], ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "own", frozen(self.own))  # `has` hands everybody the same one


# What PTX asks of the qualifier where four warps work together; ".sync" stays the warp's own.
_ALIGNED_WARPGROUP = {
    "aligned": "all threads of the warpgroup execute this one instruction; in a branch that only "
               "some take, the result is undefined",
}
# Qualifiers that mean the same wherever they stand.
QUALIFIERS = {
    "sync": "the warp's threads wait for each other here before any of them goes on",
    "aligned": "all threads of the warp execute this one instruction; in a branch that only some "
               "take, the result is undefined",
    "m8n8": "matrices of 8 × 8 elements: 8 rows of 16 bytes each",
    "x1": "one such matrix, one register per lane",
    "x2": "two such matrices, two registers per lane",
    "x4": "four such matrices, four registers per lane",
    "trans": "each 8 × 8 matrix is transposed on its way: a lane gets two elements of a column",
    "b16": "elements of 16 bits, of whichever type",
    "b8": "elements of 8 bits, of whichever type",
    "b32": "values of 32 bits, of whichever type",
    "b64": "values of 64 bits, of whichever type",
    "u16": "unsigned integers of 16 bits", "u32": "unsigned integers of 32 bits",
    "u64": "unsigned integers of 64 bits", "s32": "signed integers of 32 bits",
    "f32": "FP32", "f16": "FP16", "bf16": "bfloat16",
    "global": "in global memory",
    "shared": "in shared memory", "shared::cta": "in this block's shared memory",
    "shared::cluster": "in the shared memory of a block of the cluster, this one included; a block "
                       "launched by itself is a cluster of one",
    "row": "row-major", "col": "column-major",
    "cg": "cached in L2 alone: the bytes bypass L1 (16-byte copies only)",
    "ca": "cached at all levels, L1 included (copies of 4, 8 or 16 bytes)",
    "L2::64B": "a hint: L2 should fetch 64 bytes around the address",
    "L2::128B": "a hint: L2 should fetch the whole 128-byte line",
    "L2::256B": "a hint: L2 should fetch 256 bytes around the address",
    "1d": "a box of one dimension", "2d": "a box of two dimensions",
    "3d": "a box of three dimensions", "4d": "a box of four dimensions",
    "5d": "a box of five dimensions",
    "tile": "the box is a rectangular part of the tensor",
    "mbarrier::complete_tx::bytes": "when bytes land, an mbarrier counts them off its pending "
                                    "bytes: nothing else says that they are there",
    "multicast::cluster": "the box lands at the same offset of every block that the mask names, "
                          "and counts on the mbarrier at the same offset of each",
    "bulk_group": "completion is told by bulk groups of the issuing thread, not by an mbarrier",
    "read": "wait only until the sources are read: shared memory may be written again, the "
            "destination need not be complete",
    "parity": "the phase is named by its parity, 0 or 1, in place of a token",
    "acquire": "what others released before is visible after it",
    "release": "what this thread wrote before is visible to whoever acquires",
    "relaxed": "no other access is ordered by it",
    "cta": "among the threads of the block", "cluster": "among the blocks of the cluster",
    "gpu": "among all threads on the GPU", "sys": "among all threads and the host",
    "v2": "two values at consecutive addresses", "v4": "four values at consecutive addresses",
    "add": "the operation: an addition",
    "nc": "through the read-only path: nothing may write there meanwhile",
    "noftz": "denormal values are kept",
    "inc": "to more registers: waits until the pool has them",
    "dec": "to fewer registers: the rest goes back to the block's pool",
    "cta_group::1": "the tensor core of one SM, for one block",
    "cta_group::2": "the tensor cores of two SMs, for a pair of blocks",
    "kind::f16": "FP16 or bfloat16 operands; the instruction descriptor says which",
    "kind::tf32": "TF32 operands", "kind::i8": "8-bit integer operands",
    "kind::f8f6f4": "operands of 8, 6 or 4 bits; the instruction descriptor says which",
    "kind::mxf8f6f4": "as f8f6f4, with a scale for every 32 elements along K",
    "kind::mxf4": "4-bit operands with a scale for every 32 elements along K",
    "kind::mxf4nvf4": "4-bit operands with a scale for every 16 or 32 elements along K",
    "block_scale": "operands are scaled block by block, with scales that lie in tensor memory",
    "scale_vec::1X": "one scale per row and K step",
    "scale_vec::2X": "two scales per row and K step",
    "scale_vec::4X": "four scales per row and K step",
    "block16": "a scale for every 16 elements along K",
    "block32": "a scale for every 32 elements along K",
    "mbarrier::arrive::one": "completion is one arrival on an mbarrier",
    "32x32b": "each warp reads its 32 rows (TMEM lanes), one 32-bit column at a time",
    "16x64b": "16 TMEM lanes of 64 bits", "16x128b": "16 TMEM lanes of 128 bits",
    "16x256b": "16 TMEM lanes of 256 bits",
    "pack::16b": "two 16-bit columns are packed into one register",
    "unpack::16b": "one register is unpacked into two 16-bit columns",
    "128x256b": "128 TMEM lanes of 256 bits", "128x128b": "128 TMEM lanes of 128 bits",
    "4x256b": "4 TMEM lanes of 256 bits", "32x128b": "32 TMEM lanes of 128 bits",
    "warpx4": "copied to all four warps' lanes", "down": "towards lower TMEM lanes",
}

_DESCRIPTOR = ("a 64-bit descriptor of {matrix} in shared memory, the same in all threads: start "
               "address, two strides and the swizzle")
_SCALES = (
    Role("p", "a predicate: true adds D to the product, false starts from 0"),
    Role("scale-a", "1 takes A as it is, −1 would negate it"),
    Role("scale-b", "1 takes B as it is, −1 would negate it"),
)
_TRANSPOSE_B = Role("tnspB", "0: B lies with K running fastest; 1: with N", optional=True)
_ADDRESS = Role("[addr]", "the address")
_BARRIER = Role("[mbar]", "the mbarrier's address in shared memory")
_COPY_OPERANDS = (
    Role("[to]", "where the box goes in shared memory"),
    Role("[map, {coordinates}]", "the tensor map, and the box's first element in elements of the "
         "tensor, innermost dimension first"),
    _BARRIER,
)
_TMEM_D = Role("[d]", "D's address in tensor memory")
_A_SHARED = Role("a-desc", _DESCRIPTOR.format(matrix="A"))
_A_TMEM = Role("[a]", "A's address in tensor memory")
_B_AND_TYPES = (
    Role("b-desc", _DESCRIPTOR.format(matrix="B")),
    Role("idesc", "the 32-bit instruction descriptor: types, transposes, M and N"),
)
_ADDS = Role("p", "a predicate: true adds D, false starts from 0")
_REST = (*_B_AND_TYPES, _ADDS)
_SCALED = (*_B_AND_TYPES, Role("[scale-a]", "where A's scales lie in tensor memory"),
           Role("[scale-b]", "where B's scales lie in tensor memory"), _ADDS)

OPERATIONS = (
    Operation(
        "wmma.load.a", "the warp loads A's fragment from memory",
        (Role("a", "A's fragment", "A"), _ADDRESS,
         Role("stride", "elements from a row of the matrix in memory to the next", optional=True)),
        types=("A",), layouts=("A",), sass=r"LDSM|LDG|LDS|MOVM", sass_operands=("a",),
        sass_meaning="ptxas makes loads of it: LDSM where the tile is in shared memory",
    ),
    Operation(
        "wmma.load.b", "the warp loads B's fragment from memory",
        (Role("b", "B's fragment", "B"), _ADDRESS,
         Role("stride", "elements from a row of the matrix in memory to the next", optional=True)),
        types=("B",), layouts=("B",), sass=r"LDSM|LDG|LDS|MOVM", sass_operands=("b",),
        sass_meaning="ptxas makes loads of it: LDSM where the tile is in shared memory, with MT "
                     "transposed on the way; MOVM transposes in registers",
    ),
    Operation(
        "wmma.load.c", "the warp loads C's fragment from memory",
        (Role("c", "C's fragment", "C"), _ADDRESS,
         Role("stride", "elements from a row of the matrix in memory to the next", optional=True)),
        types=("C",), layouts=("C",), sass=r"LDG|LDS", sass_operands=("c",),
        sass_meaning="ptxas makes ordinary loads of it",
    ),
    Operation(
        "wmma.mma", "the warp computes D = A·B + C on the tensor cores",
        (Role("d", "the accumulators that are written", "D"), Role("a", "A's fragment", "A"),
         Role("b", "B's fragment", "B"), Role("c", "the accumulators that are read", "C")),
        types=("D", "C"), layouts=("A", "B"), sass="HMMA", sass_operands=("d", "a", "b", "c"),
        sass_meaning="HMMA multiplies on the tensor cores; the digits are its own shape, M, N and "
                     "K written together (16816 is 16×8×16), and a smaller one than WMMA's",
    ),
    Operation(
        "wmma.store.d", "the warp stores D's fragment",
        (_ADDRESS, Role("d", "the accumulators", "D"),
         Role("stride", "elements from a row of the matrix in memory to the next", optional=True)),
        types=("D",), layouts=("D",), sass=r"STS|STG", sass_operands=("", "d"),
        sass_meaning="ptxas makes ordinary stores of it",
    ),
    Operation(
        "mma", "the warp computes D = A·B + C on the tensor cores, from registers to registers",
        (Role("d", "the accumulators that are written", "D"), Role("a", "A's fragment", "A"),
         Role("b", "B's fragment", "B"),
         Role("c", "the accumulators that are read; usually the same registers as d", "C")),
        types=("D", "A", "B", "C"), layouts=("A", "B"), sass="HMMA",
        sass_operands=("d", "a", "b", "c"),
        sass_meaning="HMMA multiplies on the tensor cores; the digits are M, N and K written "
                     "together, F32 the accumulators' type; each operand names the first of its "
                     "consecutive registers",
    ),
    Operation(
        "ldmatrix", "the warp loads 8 × 8 matrices from shared memory straight into fragments",
        (Role("r", "one register per matrix, two elements each: register m comes from matrix m"),
         Role("[row]", "each lane's own address of one 16-byte row: lanes 0 to 7 give matrix 0's "
              "rows, 8 to 15 matrix 1's, 16 to 23 matrix 2's, 24 to 31 matrix 3's")),
        sass="LDSM", sass_operands=("r", "row"),
        sass_meaning="LDSM loads matrices from shared memory; M88 leaves them as they lie, MT88 "
                     "transposes; the last digit is how many",
        own={"b16": "elements of 16 bits: FP16 or bfloat16"},
    ),
    Operation(
        "stmatrix", "the warp stores fragments as 8 × 8 matrices to shared memory",
        (Role("[row]", "each lane's own address of one 16-byte row: lanes 8 m to 8 m + 7 give "
              "matrix m's rows"),
         Role("r", "one register per matrix, two elements each")),
        sass="STSM", sass_operands=("row", "r"),
        sass_meaning="STSM stores matrices to shared memory: ldmatrix the other way round",
        own={"b16": "elements of 16 bits: FP16 or bfloat16"},
    ),
    Operation(
        "cp.async", "the thread starts a copy from global to shared memory, past its registers, "
        "and goes on",
        (Role("[to]", "the address in shared memory"),
         Role("[from]", "the address in global memory"),
         Role("bytes", "bytes that are written"),
         Role("from-bytes", "bytes that are read, the rest is filled with zeros: 0 reads nothing, "
              "which is how an edge is padded", optional=True)),
        sass="LDGSTS", sass_operands=("to", "from"),
        sass_meaning="LDGSTS is a global load and a shared store in one; BYPASS leaves L1 out, "
                     "LTC128B is the hint for L2, 128 the bits per thread",
    ),
    Operation(
        "cp.async.commit_group", "the thread's copies since the last commit become one group; a "
        "group may be empty", sass="LDGDEPBAR",
        sass_meaning="LDGDEPBAR ties the copies so far to a dependency barrier",
    ),
    Operation(
        "cp.async.wait_group", "the thread waits for its older groups",
        (Role("N", "that many of the youngest groups may still be under way"),),
        sass="DEPBAR", sass_meaning="DEPBAR.LE waits until at most that many are pending",
    ),
    Operation("cp.async.wait_all", "the thread waits for all its copies", sass="DEPBAR",
              sass_meaning="DEPBAR.LE waits until none is pending"),
    Operation(
        "cp.async.bulk.tensor", "one thread starts the copy of a whole box of a tensor by TMA",
        (*_COPY_OPERANDS,
         Role("mask", "bit r is set for the block of rank r in the cluster", optional=True)),
        sass="UTMALDG", sass_operands=("box", "map", "mask"),
        sass_meaning="UTMALDG hands the copy to TMA; its operands are uniform registers, one value "
                     "for the warp: destination, mbarrier and coordinates in consecutive ones, and "
                     "the tensor map's address",
        own={"global": "from global memory"},
    ),
    Operation(
        "cp.async.bulk.commit_group", "the thread's bulk copies since the last commit become one "
        "group", sass="UTMACMDFLUSH", sass_meaning="UTMACMDFLUSH closes the group of TMA's stores",
    ),
    Operation(
        "cp.async.bulk.wait_group", "the thread waits for its older bulk groups",
        (Role("N", "that many of the youngest groups may still be under way"),),
        sass="DEPBAR", sass_meaning="DEPBAR.LE waits until at most that many are pending",
    ),
    Operation(
        "mbarrier.init", "an mbarrier is made in shared memory, in phase 0",
        (_BARRIER, Role("count", "how many arrivals complete a phase")),
        sass="SYNCS", sass_operands=("", "mbar", "count"),
        sass_meaning="SYNCS.EXCH writes the 64 bits of the barrier: its counters, packed",
        own={"b64": "the mbarrier is 64 bits"},
    ),
    Operation(
        "mbarrier.arrive", "the thread arrives: one pending arrival less",
        (Role("_", "the state is not kept"), _BARRIER,
         Role("count", "how many arrivals at once", optional=True)),
        sass="SYNCS", sass_operands=("", "mbar", "count"),
        sass_meaning="SYNCS.ARRIVE counts one arrival and no bytes (A1T0); RED: on another block's "
                     "barrier",
        own={"b64": "the mbarrier is 64 bits"},
    ),
    Operation(
        "mbarrier.arrive.expect_tx", "the thread arrives and announces bytes: the phase ends when "
        "all have arrived and these bytes have landed",
        (Role("_", "the state is not kept"), _BARRIER,
         Role("bytes", "bytes that copies will bring in this phase")),
        sass="SYNCS", sass_operands=("", "mbar", "bytes"),
        sass_meaning="SYNCS.ARRIVE.TRANS64 counts the arrival and adds the bytes",
        own={"b64": "the mbarrier is 64 bits"},
    ),
    Operation(
        "mbarrier.try_wait", "the thread asks whether a phase is over, and may be held a while "
        "before it gets the answer",
        (Role("p", "true if it is over; if not, the program asks again in a loop"), _BARRIER,
         Role("parity", "the parity of the phase that is waited for: that of its number")),
        sass="SYNCS", sass_operands=("p", "mbar", "parity"),
        sass_meaning="SYNCS.PHASECHK compares the phase; TRYWAIT may hold the warp meanwhile",
        own={"b64": "the mbarrier is 64 bits"},
    ),
    Operation(
        "wgmma.fence", "orders the warpgroup's registers before WGMMA touches them: needed before "
        "the first, and whenever others have written accumulators or A",
        sass="WARPGROUP", sass_meaning="WARPGROUP.ARRIVE: the four warps are ready",
        own=_ALIGNED_WARPGROUP,
    ),
    Operation(
        "wgmma.mma_async", "the four warps of a warpgroup start D = A·B + D on the tensor cores "
        "and go on",
        (Role("d", "the accumulators", "D"), Role("a-desc", _DESCRIPTOR.format(matrix="A")),
         Role("b-desc", _DESCRIPTOR.format(matrix="B")), *_SCALES,
         Role("tnspA", "0: A lies with K running fastest; 1: with M", optional=True), _TRANSPOSE_B),
        others=((
            Role("d", "the accumulators", "D"),
            Role("a", "A's fragment, which may not be touched until the wait", "A"),
            Role("b-desc", _DESCRIPTOR.format(matrix="B")), *_SCALES, _TRANSPOSE_B),),
        types=("D", "A", "B"), sass="HGMMA|QGMMA|IGMMA", sass_operands=("d", "desc", "d"),
        sass_meaning="HGMMA is the warpgroup's MMA (QGMMA of 8-bit floats); gdesc names uniform "
                     "registers with both descriptors, tnspB a B that lies with N running fastest, "
                     "gsb0 the last of a group",
        lanes=128, own=_ALIGNED_WARPGROUP,
    ),
    Operation(
        "wgmma.commit_group", "the WGMMAs since the last commit become one group",
        sass_meaning="no instruction of its own: the last HGMMA of the group is marked gsb0",
        own=_ALIGNED_WARPGROUP,
    ),
    Operation(
        "wgmma.wait_group", "the warpgroup waits for its older groups; only then may it read "
        "their accumulators",
        (Role("N", "that many of the youngest groups may still be under way"),),
        sass="WARPGROUP", sass_meaning="WARPGROUP.DEPBAR.LE waits until at most that many are "
        "pending", own=_ALIGNED_WARPGROUP,
    ),
    Operation(
        "setmaxnreg", "the warp's registers per thread change while it runs; every warp of the "
        "warpgroup executes it",
        (Role("registers", "registers per thread from here on, a multiple of 8 from 24 "
              "to 256"),),
        sass="USETMAXREG", sass_meaning="USETMAXREG: DEALLOC gives back, TRY_ALLOC tries and is "
        "repeated until it gets them; the number is in hexadecimal",
        own={"u32": "the number is an unsigned integer of 32 bits", **_ALIGNED_WARPGROUP},
    ),
    Operation(
        "barrier.cluster.arrive", "the thread arrives at the cluster's barrier and goes on",
        sass="UCGABAR_ARV", sass_meaning="UCGABAR_ARV arrives; a cluster is a CGA in SASS",
    ),
    Operation(
        "barrier.cluster.wait", "the thread waits until all threads of the cluster have arrived",
        sass="UCGABAR_WAIT", sass_meaning="UCGABAR_WAIT waits",
    ),
    Operation(
        "bar.sync", "the threads of a block, or as many as are named, wait for each other",
        (Role("barrier", "which of the block's 16 barriers"),
         Role("threads", "how many threads; all if left out", optional=True)),
        sass="BAR", sass_operands=("barrier", "threads"), sass_meaning="BAR.SYNC waits",
    ),
    Operation(
        "bar.arrive", "the thread arrives at a barrier that others wait at, and goes on",
        (Role("barrier", "which of the block's 16 barriers"),
         Role("threads", "how many threads, those that wait included")),
        sass="BAR", sass_operands=("barrier", "threads"), sass_meaning="BAR.ARV arrives",
    ),
    Operation(
        "fence.proxy.async", "what this thread wrote to shared memory becomes visible to the async "
        "proxy: to TMA and WGMMA, which don't see ordinary writes otherwise",
        sass="FENCE", sass_meaning="FENCE.VIEW.ASYNC makes the writes visible",
    ),
    Operation(
        "fence.mbarrier_init", "new mbarriers become known to the other blocks of the cluster and "
        "to the async proxy",
        sass_meaning="no instruction of its own: it only keeps the order",
    ),
    Operation(
        "mapa", "turns a shared address of this block into that of the same place in another block",
        (Role("there", "the address in the cluster's window"), Role("here", "this block's address"),
         Role("rank", "the other block's rank in the cluster")),
        sass="PRMT|UPRMT|MAPA|LEA", sass_operands=("there", "here", "", "rank"),
        sass_meaning="PRMT puts the rank's byte above the offset",
    ),
    Operation(
        "griddepcontrol.wait", "waits until the launch before has finished and its writes are "
        "visible (programmatic dependent launch)",
        sass="ACQBULK", sass_meaning="ACQBULK waits for the launch before",
    ),
    Operation(
        "griddepcontrol.launch_dependents", "the next launch may begin as soon as every block has "
        "said this or ended",
        sass="PREEXIT", sass_meaning="PREEXIT lets the next launch in",
    ),
    Operation(
        "prefetch.tensormap", "fetches a tensor map, so that the first copy need not wait for it",
        (Role("[map]", "the tensor map's address"),),
        sass="UTMACCTL", sass_operands=("map",), sass_meaning="UTMACCTL.PF prefetches it",
    ),
    Operation("st", "each lane stores", (_ADDRESS, Role("v", "the values")),
              sass=r"ST|STG|STS", sass_operands=("", "v"), sass_meaning="a store; the number is "
              "the bits per lane"),
    Operation("ld", "each lane loads", (Role("v", "the values"), _ADDRESS),
              sass=r"LD|LDG|LDS|LDC|ULDC", sass_operands=("v",), sass_meaning="a load; the "
              "number is the bits per lane"),
    Operation("red", "each lane's value is combined with memory, and nothing comes back",
              (_ADDRESS, Role("v", "the value")), sass=r"RED|REDG|REDS|ATOMS",
              sass_operands=("", "v"), sass_meaning="RED: a reduction where the memory is"),
    Operation("atom", "each lane's value is combined with memory, and the old one comes back",
              (Role("old", "what stood there"), _ADDRESS, Role("v", "the value")),
              sass=r"ATOM|ATOMG|ATOMS", sass_operands=("", "old", "", "v"),
              sass_meaning="an atomic operation where the memory is"),
    Operation(
        "tcgen05.alloc", "the warp allocates columns of tensor memory",
        (Role("[to]", "where in shared memory the address of the columns is written"),
         Role("columns", "how many: a power of two from 32 to 512")),
        sass="UTCATOMSWS", sass_meaning="UTCATOMSWS takes the columns from the SM's pool"),
    Operation(
        "tcgen05.dealloc", "the warp frees its columns of tensor memory",
        (Role("tmem", "the address of the columns"), Role("columns", "how many were allocated")),
        sass="UTCATOMSWS", sass_meaning="UTCATOMSWS gives the columns back"),
    Operation(
        "tcgen05.relinquish_alloc_permit", "the block promises to allocate no more, so that "
        "another block may",
        sass="UVIRTCOUNT", sass_meaning="UVIRTCOUNT.DEALLOC gives up the right"),
    Operation(
        "tcgen05.mma", "one thread starts D = A·B + D on the tensor cores: D in tensor memory, A "
        "and B in shared memory",
        (_TMEM_D, _A_SHARED, *_REST),
        others=((_TMEM_D, _A_TMEM, *_REST), (_TMEM_D, _A_SHARED, *_SCALED),
                (_TMEM_D, _A_TMEM, *_SCALED)),
        sass="UTCHMMA|UTCQMMA|UTCOMMA|UTCIMMA",
        sass_operands=("a", "b", "d", "d", "i"),
        sass_meaning="UTCHMMA hands the product to the tensor core; one thread is enough"),
    Operation(
        "tcgen05.commit", "an mbarrier gets an arrival when the thread's MMAs so far are complete",
        (_BARRIER, Role("mask", "bit r is set for the block of rank r", optional=True)),
        sass="UTCBAR", sass_meaning="UTCBAR arrives when the tensor core is done",
        own={"b64": "the mbarrier is 64 bits",
             "multicast::cluster": "the mbarrier at the same offset of every block that the mask "
                                   "names gets the arrival"}),
    Operation(
        "clusterlaunchcontrol.try_cancel", "one thread asks to cancel a cluster that has not begun",
        (Role("[answer]", "16 bytes of shared memory: whether one was cancelled, and its first "
              "block's index"), _BARRIER),
        sass="UGETNEXTWORKID", sass_operands=("answer", "mbar"),
        sass_meaning="UGETNEXTWORKID: the next piece of work; BROADCAST: told to all of a cluster",
        own={"async": "the answer comes later, as a bulk copy does",
             "multicast::cluster::all": "it comes to the same place of every block of the cluster, "
                                        "and counts on the mbarrier there",
             "b128": "an answer of 16 bytes"}),
    Operation(
        "tcgen05.ld", "each warp loads its quarter of tensor memory's lanes into registers",
        (Role("r", "the registers"), Role("[tmem]", "lane and column in tensor memory")),
        sass="LDTM", sass_operands=("r", "tmem"), sass_meaning="LDTM loads from tensor memory"),
    Operation(
        "tcgen05.st", "each warp stores registers to its quarter of tensor memory's lanes",
        (Role("[tmem]", "lane and column in tensor memory"), Role("r", "the registers")),
        sass="STTM", sass_operands=("tmem", "r"), sass_meaning="STTM stores to tensor memory"),
    Operation(
        "tcgen05.cp", "one thread starts a copy from shared to tensor memory",
        (Role("[tmem]", "lane and column in tensor memory"),
         Role("s-desc", _DESCRIPTOR.format(matrix="the source"))),
        sass="UTCCP", sass_meaning="UTCCP copies to tensor memory"),
    Operation(
        "tcgen05.shift", "one thread starts to move rows of tensor memory down by one",
        (Role("[tmem]", "lane and column in tensor memory"),),
        sass="UTCSHIFT", sass_meaning="UTCSHIFT moves rows of tensor memory"),
    Operation("tcgen05.wait::ld", "the thread waits until its loads of tensor memory are complete",
              sass_meaning="no instruction of its own in most places: the loads' scoreboard"),
    Operation("tcgen05.wait::st", "the thread waits until its stores to tensor memory are complete",
              sass="FENCE", sass_meaning="FENCE waits for the stores"),
    Operation("tcgen05.fence::before_thread_sync", "orders this thread's tcgen05 work before the "
              "synchronisation that follows",
              sass_meaning="no instruction of its own: it only keeps the order"),
    Operation("tcgen05.fence::after_thread_sync", "orders this thread's tcgen05 work after the "
              "synchronisation before it",
              sass_meaning="no instruction of its own: it only keeps the order"),
)
