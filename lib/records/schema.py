"""What a record holds, as types: the reader validates every file of ``results/`` by them.

Two schemas are read. A row of schema 1 holds cuBLAS by its default heuristic alone, and its spread
is that of the samples. A row of schema 2 holds the fastest that cuBLAS has beside it, the spread
between series, the board and the chunk that it is of. What schema 1 lacks is not made up: its rows
stay as they are, and say of themselves that they hold the default.

``python -m lib results --schema`` prints these types as a JSON Schema.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, json

OLDER, SCHEMA = 1, 2

# Records that are not of a kernel of the catalogue: the rival, the machine's own roofs, what the
# emulator's counters are held against, which tile suits which shape, and series in which one thing
# is varied; what a reader measured in a few minutes; and public peers.
CUBLAS, MACHINE, CALIBRATION, SEARCH, SWEEPS, QUICK, RIVALS = (
    "cublas", "machine", "calibration", "search", "sweeps", "quick", "rivals")
# The part that each of them has its measurements in.
PARTS = {MACHINE: "roofs", CALIBRATION: "patterns", SEARCH: "searches", SWEEPS: "sweeps",
         QUICK: "versions", RIVALS: "peers"}

# Text that reaches a page holds nothing that a browser or Markdown could take for markup, and no
# line ends.
Text = Annotated[str, Meta(pattern=r"^[^][<>&|`*\\\x00-\x1f]*$", max_length=1000)]
Name = Annotated[str, Meta(pattern=r"^[\w.+/:()\- ]+$", max_length=120)]
Code = Annotated[str, Meta(max_length=400, description="C++, never shown without escaping")]
Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{16,64}$")]
Date = Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Arch = Annotated[str, Meta(pattern=r"^sm_\d{2,3}a?$")]
Count = Annotated[int, Meta(ge=0)]
Size = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]
Positive = Annotated[float, Meta(gt=0)]
Amount = Annotated[float, Meta(ge=0)]
Type = Literal["float32", "float16", "bfloat16"]
Layout = Literal["row", "column"]


class Part(Struct, kw_only=True, forbid_unknown_fields=True):
    """What all parts have in common: no key but those named.

    What may be missing is `UNSET` where it is; what is there may be null only where a type says so,
    of something that could not be read.
    """


class Gpu(Part, kw_only=True):
    """The GPU: its data sheet's key, and what the driver said of it."""

    key: Name
    name: Name
    driver: Name
    sms: Size
    memory_bytes: Size
    l2_bytes: Size


class Software(Part, kw_only=True):
    """Releases of what measured."""

    cuda: Name
    nvrtc: Name
    cublas: Name
    cupy: Name
    numpy: Name
    python: Name
    nvmath: Name | None = None


class Method(Part, kw_only=True):
    """How it was measured, in words, and ncu's names of the counters."""

    clocks: Text
    bench: Text | UnsetType = UNSET
    counters: dict[Name, Name] | Text | UnsetType = UNSET


class Timed(Part, kw_only=True):
    """When and from which commit the times are, where they are younger than the rest."""

    date: Date
    revision: Name


class Alone(Part, kw_only=True):
    """The kernel without cuBLAS, back to back."""

    seconds: Seconds
    spread: Amount
    tflops: Positive
    sm_clock_mhz: Amount | None
    power_w: Amount | None
    temperature_c: float | None
    throttle: list[Name] | None = None


class Problem(Part, kw_only=True):
    """Which problem a row is of."""

    M: Size
    N: Size
    K: Count
    dtype: Type
    out: Type
    b_layout: Layout
    alpha: float
    beta: float


class RivalRow1(Problem, kw_only=True):
    """cuBLAS by itself, by its default heuristic (schema 1)."""

    seconds: Seconds
    spread: Amount
    tflops: Positive
    cublas_seconds: Seconds
    cublas_tflops: Positive
    ratio: Positive
    sm_clock_mhz: Amount | None
    rounds: Size
    power_w: Amount | None = None
    temperature_c: float | None = None


class Row1(RivalRow1, kw_only=True):
    """A kernel and cuBLAS's default in turns (schema 1).

    `seconds` are medians of samples, `spread` half the distance between their quartiles over the
    median, `ratio` the kernel's speed over cuBLAS's.
    """

    cublas_spread: Amount
    instantiation: Code
    alone: Alone | UnsetType = UNSET


class Candidate(Part, kw_only=True):
    """What cuBLAS ran: by its default, or one of cublasLt's candidates."""

    seconds: Seconds
    spread: Amount
    tflops: Positive
    kernels: list[Annotated[str, Meta(pattern=r"^[\w.$]+$", max_length=1000)]] | None = None
    tile: Name | None = None
    stages: Name | None = None
    cluster: Name | None = None
    split_k: Size | None = None
    workspace_bytes: Count | None = None
    algorithm: Count | None = None
    place: Count | None = None


class Rival(Part, kw_only=True):
    """cuBLAS on this row's problem: by default, and the fastest of `candidates` that were timed.

    Both are timed in turns with each other, once a problem and chunk. The faster of the two is then
    in turns with the kernel, which gives the row's `cublas_seconds`. `best` is None where no
    binding of cublasLt was there, or it had no candidate; `why_not` says which.
    """

    default: Candidate
    best: Candidate | None
    candidates: Count
    why_not: Text | UnsetType = UNSET


class Turn(Part, kw_only=True):
    """The same two in turns of another length, ms."""

    milliseconds: Positive
    seconds: Seconds
    cublas_seconds: Seconds
    spread: Amount
    sm_clock_mhz: Amount | None


class Energy(Part, kw_only=True):
    """Joules a product, from NVML's counter: each alone, in the order A B B A."""

    joules: Positive
    cublas_joules: Positive
    idle_w: Amount
    seconds_each: Seconds
    sm_clock_mhz: Amount | None
    cublas_sm_clock_mhz: Amount | None


class OtherInputs(Part, kw_only=True):
    """The same two on matrices of another distribution."""

    inputs: Name
    seconds: Seconds
    cublas_seconds: Seconds
    spread: Amount
    sm_clock_mhz: Amount | None
    power_w: Amount | None


class Pair(Part, kw_only=True):
    """The variant that one added later is held against, measured again in the same chunk."""

    variant: Name
    seconds: Seconds
    spread: Amount
    tflops: Positive
    cublas_seconds: Seconds
    ratio: Positive


class Trials(Part, kw_only=True):
    """The fastest of the candidates that a rule ranks first, in turns with the best of cuBLAS.

    It is found as cuBLAS's is: `of` candidates were timed, and the fastest took turns.
    """

    of: Size
    instantiation: Code
    seconds: Seconds
    spread: Amount
    tflops: Positive
    cublas_seconds: Seconds
    cublas_spread: Amount
    cublas_tflops: Positive
    ratio: Positive


class Row(Row1, kw_only=True):
    """A kernel and the best of cuBLAS in turns (schema 2).

    `seconds` is the median of the series' medians and `spread` half the distance between the
    quartiles of these over it: the spread between series. `spread_within` is that of one series'
    samples.
    """

    series: Annotated[list[Seconds], Meta(min_length=1)]
    spread_within: Amount
    inputs: Name
    rival: Rival
    board: Hash
    chunk: Name
    throttle: list[Name] | None = None
    cublas_alone: Alone | UnsetType = UNSET
    turns: list[Turn] = []
    energy: Energy | UnsetType = UNSET
    other_inputs: list[OtherInputs] = []
    pair: Pair | UnsetType = UNSET
    trials: Trials | UnsetType = UNSET


class RivalRow(RivalRow1, kw_only=True):
    """cuBLAS by itself (schema 2): its default and the best of its candidates in turns."""

    rival: Rival
    board: Hash
    chunk: Name
    series: Annotated[list[Seconds], Meta(min_length=1)]
    spread_within: Amount
    inputs: Name
    throttle: list[Name] | None = None


class Counters(Part, kw_only=True):
    """ncu's counters of one launch."""

    M: Size
    N: Size
    K: Count
    metrics: dict[Name, Amount]
    revision: Name | UnsetType = UNSET


class Block(Part, kw_only=True):
    """The marks of one block's warps: [phase, cycles since the first mark]."""

    block: Count
    sm: Count
    warps: list[list[tuple[Count, int]]]


class Timeline(Part, kw_only=True):
    """What the warps of blocks of one SM did, from marks in the kernel."""

    hash: Hash
    M: Size
    N: Size
    K: Count
    dtype: Type
    sm: Count
    warps: Size
    total_blocks: Size
    mark_cycles: Amount
    seconds_with: Seconds
    seconds_without: Seconds
    events: list[Name]
    blocks: list[Block]
    overview: list[tuple[Count, int, int]]


class Code1(Part, kw_only=True):
    """Machine code of an instantiation, its speed and its counters."""

    arch: Arch
    registers: Count
    shared_bytes: Count
    bench: list[Row1]
    counters: list[Counters]


class Variant1(Code1, kw_only=True):
    """An instantiation; older architectures' PTX of it, assembled for this GPU, in `ptx`."""

    hash: Hash
    timeline: Timeline | UnsetType = UNSET
    ptx: dict[Arch, Code1] = {}


class MachineCode(Part, kw_only=True):
    """As `Code1`, of schema 2. `counters_missing` says why there are none."""

    arch: Arch
    registers: Count
    shared_bytes: Count
    bench: list[Row]
    counters: list[Counters]
    counters_missing: Text | UnsetType = UNSET


class Variant(MachineCode, kw_only=True):
    """As `Variant1`, of schema 2. `launch` is `lib.records.store.launch_hash`."""

    hash: Hash
    launch: Hash
    timeline: Timeline | UnsetType = UNSET
    ptx: dict[Arch, MachineCode] = {}


class RivalVariant1(Part, kw_only=True):
    """cuBLAS on one combination of types and layout."""

    arch: Arch
    bench: list[RivalRow1]
    counters: list[Counters]


class RivalVariant(Part, kw_only=True):
    """As `RivalVariant1`, of schema 2.

    `counters` are the default's, `best_counters` the best candidate's, where that was faster.
    """

    arch: Arch
    bench: list[RivalRow]
    counters: list[Counters]
    best_counters: list[Counters] = []
    counters_missing: Text | UnsetType = UNSET


class Roof(Part, kw_only=True):
    """What one unit of the machine reaches."""

    value: Positive
    unit: Literal["B/s", "FLOP/s"]
    method: Text
    sm_clock_mhz: Amount | None


class Roofs(Part, kw_only=True):
    """DRAM, L2, shared memory, FP32 units, tensor cores: the last two where the GPU has them."""

    copy: Roof
    l2: Roof
    shared: Roof
    ffma: Roof
    mma_k8: Roof
    mma_k16: Roof | UnsetType = UNSET
    wgmma: Roof | UnsetType = UNSET


class Pattern(Part, kw_only=True):
    """One access of one warp, and what the GPU counted of it."""

    offsets: list[int]
    counts: list[Amount]
    sources: list[int] | UnsetType = UNSET
    active: Annotated[str, Meta(pattern="^[01]+$")] | UnsetType = UNSET
    reading: Annotated[str, Meta(pattern="^[01]+$")] | UnsetType = UNSET
    stride: int | UnsetType = UNSET


class Searched(Part, kw_only=True):
    """The candidates' times on one shape."""

    M: Size
    N: Size
    K: Count
    seconds: Annotated[dict[Name, Seconds], Meta(min_length=1)]
    cublas_seconds: Seconds


class Search(Part, kw_only=True):
    """Which of a variant's candidates is fastest where."""

    hashes: dict[Name, Hash]
    rows: list[Searched]


class Swept(Part, kw_only=True):
    """One tile at one number of blocks, in each of its forms."""

    block: tuple[Size, Size, Size]
    warp: tuple[Size, Size]
    blocks: Size
    warps: Size
    seconds: dict[Name, Seconds]
    spread: dict[Name, Amount]
    registers: dict[Name, Count]
    hashes: dict[Name, Hash]
    cublas_seconds: Seconds
    sm_clock_mhz: Amount | None


class Sweep(Part, kw_only=True):
    """A series in which one thing is varied."""

    kernel: Name
    shape: tuple[Size, Size, Size]
    method: Text
    rows: list[Swept]


class Chunk(Part, kw_only=True):
    """One stretch of GPU time: all that was measured in it is of one board and one process.

    `others` is the number of other processes that used the GPU.
    """

    started: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}T[\d:]+(Z|[+-]\d\d:\d\d)$")]
    board: Hash
    driver: Name
    revision: Name
    others: Count = 0


class Record(Part, kw_only=True):
    """What every record has."""

    schema: Literal[1, 2]
    kernel: Name
    gpu: Gpu
    software: Software
    date: Date
    revision: Name
    method: Method
    digest: Hash | UnsetType = UNSET


class KernelRecord1(Record, kw_only=True):
    """A version, measured by the older method."""

    variants: dict[Name, Variant1]
    timed: Timed | UnsetType = UNSET


class KernelRecord(Record, kw_only=True):
    """A version of the catalogue."""

    digest: Hash
    variants: dict[Name, Variant]
    chunks: dict[Name, Chunk]


class CublasRecord1(Record, kw_only=True):
    """The rival by itself, by its default heuristic."""

    variants: dict[Name, RivalVariant1]


class CublasRecord(Record, kw_only=True):
    """The rival by itself."""

    digest: Hash
    variants: dict[Name, RivalVariant]
    chunks: dict[Name, Chunk]


class QuickVariant(Part, kw_only=True):
    """A version's first instantiation, timed and no more."""

    hash: Hash
    launch: Hash
    arch: Arch
    registers: Count
    shared_bytes: Count
    bench: list[Row]


class QuickRecord(Record, kw_only=True):
    """A reader's own: each version's first variant on a few cubes, in one file."""

    digest: Hash
    versions: dict[Name, dict[Name, QuickVariant]]
    chunks: dict[Name, Chunk]


class Ours(Part, kw_only=True):
    """What of ours a peer was in turns with."""

    kernel: Name
    variant: Name
    seconds: Seconds
    spread: Amount
    tflops: Positive


class PeerRow(Problem, kw_only=True):
    """A peer's best configuration in turns with cuBLAS and with ours.

    Of a peer that adds up in FP16 `cublas_seconds` are those of ``cublasHgemm``, and there is
    neither `ours` nor `rival`.
    """

    configuration: Text
    seconds: Seconds
    spread: Amount
    tflops: Positive
    cublas_seconds: Seconds
    cublas_tflops: Positive
    ratio: Positive
    sm_clock_mhz: Amount | None
    power_w: Amount | None
    temperature_c: float | None
    throttle: list[Name] | None
    board: Hash
    chunk: Name
    ours: Ours | UnsetType = UNSET
    rival: Rival | UnsetType = UNSET


class PublicPeer(Part, kw_only=True):
    """A public kernel: where it is from, and how fast it is here."""

    repository: Name
    revision: Name
    licence: Name
    half_sums: bool
    rows: list[PeerRow]


class RivalsRecord(Record, kw_only=True):
    """Public peers, measured by ``python -m lib rivals``."""

    digest: Hash
    peers: dict[Name, PublicPeer]
    chunks: dict[Name, Chunk]


class MachineRecord(Record, kw_only=True):
    """The machine's own roofs."""

    roofs: Roofs


class CalibrationRecord(Record, kw_only=True):
    """What the emulator's counters are held against."""

    arch: Arch
    hash: Hash
    metrics: list[Name]
    patterns: dict[Code, Pattern]


class SearchRecord(Record, kw_only=True):
    """Which tile suits which shape."""

    searches: dict[Name, Search]


class SweepsRecord(Record, kw_only=True):
    """Series in which one thing is varied."""

    sweeps: dict[Name, Sweep]


_OTHERS: dict[str, type[Record]] = {
    MACHINE: MachineRecord, CALIBRATION: CalibrationRecord, SEARCH: SearchRecord,
    SWEEPS: SweepsRecord, QUICK: QuickRecord,
    RIVALS: RivalsRecord,
}


def type_of(stem: str, schema: int) -> type[Record]:
    """The type that a record of this name and schema must have."""
    if stem in _OTHERS:
        return _OTHERS[stem]
    if stem == CUBLAS:
        return CublasRecord if schema == SCHEMA else CublasRecord1
    return KernelRecord if schema == SCHEMA else KernelRecord1


def documentation() -> dict[str, Any]:
    """These types as a JSON Schema."""
    kinds = (KernelRecord, KernelRecord1, CublasRecord, CublasRecord1, *_OTHERS.values())
    schemas, components = json.schema_components(kinds, ref_template="#/$defs/{name}")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema",
            "anyOf": list(schemas), "$defs": components}
