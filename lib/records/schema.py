"""What a record holds, as types: what `lib.records.store` reads, hands on and writes.

A file has a type's fields in their order. A field with a default may be missing there, and is left
out where it has that value. One without a default that may be None is null in the file where it
could not be read.

``python -m lib results --schema`` prints these types as a JSON Schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from msgspec import Meta, Struct, json, structs

from lib.kernels.frozen import EMPTY, frozen

SCHEMA: Final = 4

# Records that are not of a kernel of the catalogue: the rival, the machine's own roofs, what the
# emulator's counters are held against, which tile suits which shape, and series in which one thing
# is varied; what a reader measured in a few minutes; public peers; products with an epilogue; and
# all versions in one pass on one board.
CUBLAS, MACHINE, CALIBRATION, SEARCH, SWEEPS, QUICK, RIVALS, EPILOGUES, LADDER = (
    "cublas", "machine", "calibration", "search", "sweeps", "quick", "rivals", "epilogues",
    "ladder")

# Text that reaches a page holds nothing that a browser or Markdown could take for markup, and no
# line ends.
Text = Annotated[str, Meta(pattern=r"^[^][<>&|`*\\\x00-\x1f]*$", max_length=1000)]
Name = Annotated[str, Meta(pattern=r"^[\w.+/:()\- ]+$", max_length=120)]
Code = Annotated[str, Meta(max_length=400, description="C++, never shown without escaping")]
Symbol = Annotated[str, Meta(pattern=r"^[\w.$]+$", max_length=1000)]
Lanes = Annotated[str, Meta(pattern="^[01]+$")]
Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{16,64}$")]
Date = Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Moment = Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}T[\d:]+(Z|[+-]\d\d:\d\d)$")]
Arch = Annotated[str, Meta(pattern=r"^sm_\d{2,3}a?$")]
Count = Annotated[int, Meta(ge=0)]
Size = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]
Positive = Annotated[float, Meta(gt=0)]
Amount = Annotated[float, Meta(ge=0)]
Type = Literal["float32", "float16", "bfloat16", "float8_e4m3fn"]
# What elements of A and B share a scale; empty where there are none.
Scaling = Literal["", "tensor", "vector", "blocks"]
Layout = Literal["row", "column"]

Shape = tuple[int, int, int]


class Part(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all parts have in common: no key but those named, and nothing that can be changed."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if type(value) in (dict, list):
                structs.force_setattr(self, name, frozen(value))


class Gpu(Part, kw_only=True, frozen=True):
    """The GPU: its data sheet's key, and what the driver said of it."""

    key: Name
    name: Name
    driver: Name
    sms: Size
    memory_bytes: Size
    l2_bytes: Size


class Software(Part, kw_only=True, frozen=True):
    """Releases of what measured; None of a package that was not there."""

    cuda: Name
    nvrtc: Name
    cublas: Name
    cupy: Name
    numpy: Name
    python: Name
    nvmath: Name | None = None


class Method(Part, kw_only=True, frozen=True):
    """How it was measured, in words, and ncu's names of the counters."""

    bench: Text | None = None
    clocks: Text
    counters: Mapping[Name, Name] | Text


class Sized(Part, kw_only=True, frozen=True):
    """What was measured on one shape."""

    M: Size
    N: Size
    K: Count

    @property
    def shape(self) -> Shape:
        """M, N and K."""
        return self.M, self.N, self.K

    @property
    def flops(self) -> float:
        """FLOP of one product."""
        return 2.0 * self.M * self.N * self.K

    def is_cube(self, size: int) -> bool:
        """Whether M = N = K = `size`."""
        return self.shape == (size, size, size)


class Problem(Sized, kw_only=True, frozen=True):
    """Which problem a row is of.

    `promoted` is false of 8-bit floats that tensor cores add up along all of K; the rival has fast
    sums then, too.
    """

    dtype: Type
    out: Type
    b_layout: Layout
    alpha: float
    beta: float
    scaling: Scaling = ""
    promoted: bool = True

    @property
    def types(self) -> tuple[str, str, str]:
        """Types of A and B and of C, and the layout of B."""
        return self.dtype, self.out, self.b_layout


class Clock(Part, kw_only=True, frozen=True):
    """The SM clock of the very launches that were timed, by the SMs' own counters.

    `mhz` is the median of `series_mhz`, each the mean clock of a series' launches; `cycles` those
    of one launch, the median of the series'. `sms` is the number of SMs that both probes met, at
    least. `tick_ns` is what ``%globaltimer`` moves by and `error` that over the shortest interval:
    how far a clock may be off, as a share. `outside` is the share of the interval between the
    probes in which the launches did not run (`lib.measure.probe`).
    """

    mhz: Positive
    cycles: Positive
    series_mhz: Annotated[tuple[Positive, ...], Meta(min_length=1)]
    sms: Size
    tick_ns: Positive
    error: Amount
    outside: Amount


def mhz(clock: Clock | None) -> float | None:
    """The clock, MHz; None where it was not measured."""
    return clock.mhz if clock else None


class Side(Part, kw_only=True, frozen=True):
    """One kernel's time, and the clock that it had; None where that was not measured."""

    seconds: Seconds
    spread: Amount
    tflops: Positive
    clock: Clock | None = None


class Alone(Side, kw_only=True, frozen=True):
    """The kernel without cuBLAS, back to back."""

    temperature_c: float | None
    throttle: tuple[Name, ...] | None


class Default(Side, kw_only=True, frozen=True):
    """What cuBLAS runs by its default heuristic; no kernels where they could not be read."""

    kernels: tuple[Symbol, ...] | None


class Candidate(Side, kw_only=True, frozen=True):
    """One of cublasLt's candidates, as cublasLt names it; None where the algorithm decides."""

    place: Count
    algorithm: Count | None
    tile: Name | None
    stages: Name | None
    cluster: Name | None
    split_k: Size | None
    workspace_bytes: Count | None
    kernels: tuple[Symbol, ...] | None


class Rival(Part, kw_only=True, frozen=True):
    """cuBLAS on this row's problem: by default, and the fastest of `candidates` that were timed.

    Both are timed in turns with each other, once a problem and chunk. The faster of the two is then
    in turns with the kernel, which gives the row's `cublas_seconds`. `best` is None where no
    binding of cublasLt was there, or it had no candidate; `why_not` says which.
    """

    default: Default
    best: Candidate | None
    candidates: Count
    why_not: Text | None = None

    @property
    def sides(self) -> tuple[Default | Candidate, ...]:
        """What was timed, the default first."""
        return (self.default, self.best) if self.best else (self.default,)

    @property
    def fastest(self) -> Default | Candidate:
        """The faster of the two: what takes turns with a kernel."""
        return min(self.sides, key=lambda side: side.seconds)


class Turn(Part, kw_only=True, frozen=True):
    """The same two in turns of another length, ms."""

    milliseconds: Positive
    seconds: Seconds
    cublas_seconds: Seconds
    spread: Amount
    clock: Clock | None = None
    cublas_clock: Clock | None = None


class Steady(Side, kw_only=True, frozen=True):
    """One kernel alone, run without a pause: its own speed, clock and energy of that time.

    `series` has the seconds of one launch in each stretch, `launches` the number of them in all.
    `joules` are those of one launch by NVML's counter, `joules_error` how far they may be off by
    the moments at which the counter was read, as a share; the sensor's own error comes on top.
    """

    series: Annotated[tuple[Seconds, ...], Meta(min_length=1)]
    launches: Size
    joules: Positive
    joules_error: Amount

    @property
    def watts(self) -> float:
        """The board's mean power, W."""
        return self.joules / self.seconds


class Sustained(Part, kw_only=True, frozen=True):
    """Both for seconds, each alone, in the order A B B A: what is left when the clock has settled.

    `seconds_each` is the shortest stretch, `idle_w` the power of the idle GPU, W, which is in the
    joules too.
    """

    own: Steady
    cublas: Steady
    idle_w: Amount
    seconds_each: Seconds
    throttle: tuple[Name, ...] | None

    @property
    def ratio(self) -> float:
        """The kernel's speed over that of cuBLAS."""
        return self.cublas.seconds / self.own.seconds


class OtherInputs(Part, kw_only=True, frozen=True):
    """The same two on matrices of another distribution."""

    inputs: Name
    seconds: Seconds
    cublas_seconds: Seconds
    spread: Amount
    clock: Clock | None = None
    cublas_clock: Clock | None = None


class Pair(Part, kw_only=True, frozen=True):
    """The variant that one added later is held against, measured again in the same chunk."""

    variant: Name
    seconds: Seconds
    spread: Amount
    tflops: Positive
    cublas_seconds: Seconds
    ratio: Positive
    clock: Clock | None = None


class Trials(Part, kw_only=True, frozen=True):
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
    clock: Clock | None = None
    cublas_clock: Clock | None = None


class Packing(Part, kw_only=True, frozen=True):
    """The copies of A and B that a product needs first, timed without it: back to back, so that
    each launch may begin while the one before it ends.
    """

    seconds: Seconds
    spread: Amount


class Benchmark(Problem, kw_only=True, frozen=True):
    """A kernel and the best of cuBLAS in turns: what ``python -m lib bench`` measures.

    `seconds` is the median of the series' medians and `spread` half the distance between the
    quartiles of these over it: the spread between series. `spread_within` is that of one series'
    samples. `ratio` is the kernel's speed over that of cuBLAS. `clock` and `cublas_clock` are of
    the same launches. There is no power of turns of 5 ms: NVML's counter moves a few times a
    second. `sustained` has it, of a run that is long enough. `chosen` is the fingerprint of the
    candidate that a rule took (`lib.records.launched.candidate_hash`), where one did.
    """

    seconds: Seconds
    spread: Amount
    tflops: Positive
    cublas_seconds: Seconds
    cublas_spread: Amount
    cublas_tflops: Positive
    ratio: Positive
    instantiation: Code
    temperature_c: float | None
    throttle: tuple[Name, ...] | None
    rounds: Size
    series: Annotated[tuple[Seconds, ...], Meta(min_length=1)]
    spread_within: Amount
    inputs: Name
    rival: Rival
    board: Hash
    alone: Alone | None = None
    cublas_alone: Alone | None = None
    turns: tuple[Turn, ...] = ()
    other_inputs: tuple[OtherInputs, ...] = ()
    chosen: Hash | None = None
    trials: Trials | None = None
    packing: Packing | None = None
    sustained: Sustained | None = None
    clock: Clock | None = None
    cublas_clock: Clock | None = None

    @property
    def noise(self) -> float:
        """How far `ratio` may be off: the larger of both spreads and of what cuBLAS moved.

        It moved from its own turns, in which its fastest was found, to those with the kernel.
        """
        drift = abs(self.cublas_tflops / self.rival.fastest.tflops - 1)
        return max(self.spread, self.cublas_spread, drift)

    @property
    def joules(self) -> tuple[float, float] | None:
        """Of one product, ours and cuBLAS's, each alone for seconds; None if not measured."""
        long = self.sustained
        return (long.own.joules, long.cublas.joules) if long else None


class Row(Benchmark, kw_only=True, frozen=True):
    """A benchmark of a record, and the chunk that it was measured in."""

    pair: Pair | None = None
    chunk: Name

    @classmethod
    def of(cls, benchmark: Benchmark, chunk: str, pair: Pair | None = None) -> Row:
        """A benchmark in a chunk."""
        fields = {name: getattr(benchmark, name) for name in Benchmark.__struct_fields__}
        return cls(**fields, pair=pair, chunk=chunk)


class RivalRow(Problem, kw_only=True, frozen=True):
    """cuBLAS by itself: the faster of its default and the best of its candidates."""

    seconds: Seconds
    spread: Amount
    tflops: Positive
    cublas_seconds: Seconds
    cublas_tflops: Positive
    ratio: Positive
    temperature_c: float | None
    throttle: tuple[Name, ...] | None
    rounds: Size
    series: Annotated[tuple[Seconds, ...], Meta(min_length=1)]
    spread_within: Amount
    inputs: Name
    rival: Rival
    board: Hash
    chunk: Name
    clock: Clock | None = None


class Counters(Sized, kw_only=True, frozen=True):
    """ncu's counters of one launch, by `lib.measure.counters`' names."""

    metrics: Mapping[Name, Count | Amount]


class Block(Part, kw_only=True, frozen=True):
    """The marks of one block's warps: [phase, cycles since the first mark]."""

    block: Count
    sm: Count
    warps: tuple[tuple[tuple[Count, int], ...], ...]


class Timeline(Sized, kw_only=True, frozen=True):
    """What the warps of blocks of one SM did, from marks in the kernel.

    `overview` has each block's SM, start and end, ns. `revision` is the commit that it was measured
    at, if that isn't the record's.
    """

    dtype: Type
    hash: Hash
    revision: Name | None = None
    events: tuple[Name, ...]
    mark_cycles: Amount
    seconds_with: Seconds
    seconds_without: Seconds
    warps: Size
    sm: Count
    total_blocks: Size
    blocks: tuple[Block, ...]
    overview: tuple[tuple[Count, int, int], ...]


class MachineCode(Part, kw_only=True, frozen=True):
    """Machine code of an instantiation, its speed and its counters."""

    bench: tuple[Row, ...]
    counters: tuple[Counters, ...]
    arch: Arch
    registers: Count
    shared_bytes: Count


class Variant(Part, kw_only=True, frozen=True):
    """An instantiation, as `MachineCode`; and older architectures' PTX of it, assembled here.

    `launch` is `lib.records.launched.launch_hash`; `counters_missing` says why there are no
    counters.
    """

    bench: tuple[Row, ...]
    counters: tuple[Counters, ...]
    hash: Hash
    launch: Hash
    arch: Arch
    registers: Count
    shared_bytes: Count
    ptx: Mapping[Arch, MachineCode] = EMPTY
    timeline: Timeline | None = None
    counters_missing: Text | None = None

    @property
    def codes(self) -> dict[str, Variant | MachineCode]:
        """Its machine code by the architecture whose PTX it is from, the GPU's own first."""
        return {self.arch: self, **self.ptx}


class RivalVariant(Part, kw_only=True, frozen=True):
    """cuBLAS on one combination of types and layout.

    `counters` are the default's, `best_counters` the best candidate's, where that was faster.
    """

    bench: tuple[RivalRow, ...]
    counters: tuple[Counters, ...]
    arch: Arch
    best_counters: tuple[Counters, ...] = ()
    counters_missing: Text | None = None


class Roof(Part, kw_only=True, frozen=True):
    """What one unit of the machine reaches."""

    value: Positive
    unit: Literal["B/s", "FLOP/s"]
    method: Text
    clock: Clock | None = None


class Roofs(Part, kw_only=True, frozen=True):
    """DRAM, L2, shared memory, FP32 units, tensor cores: the last two where the GPU has them."""

    copy: Roof
    l2: Roof
    shared: Roof
    ffma: Roof
    mma_k8: Roof
    mma_k16: Roof | None = None
    wgmma: Roof | None = None

    def named(self) -> dict[str, Roof]:
        """Those that the GPU has, by name."""
        return {name: roof for name, roof in structs.asdict(self).items() if roof is not None}


class Pattern(Part, kw_only=True, frozen=True):
    """One access of one warp, and what the GPU counted of it.

    A byte offset per lane, or a row's for ``ldmatrix``; `sources` of a copy's other side; which
    lanes are `active`, and which read, where not all; the `stride` of a fragment's rows.
    """

    offsets: tuple[int, ...]
    active: Lanes | None = None
    reading: Lanes | None = None
    sources: tuple[int, ...] | None = None
    stride: int | None = None
    counts: tuple[Count | Amount, ...]


class SumError(Part, kw_only=True, frozen=True):
    """How far a kernel's C is from float64's on inputs of some signs, relative in norm."""

    kernel: Name
    signs: Text
    K: Size
    error: Amount


class Searched(Sized, kw_only=True, frozen=True):
    """The candidates' times on one shape."""

    seconds: Annotated[Mapping[Name, Seconds], Meta(min_length=1)]
    cublas_seconds: Seconds


class Search(Part, kw_only=True, frozen=True):
    """Which of a variant's candidates is fastest where."""

    hashes: Mapping[Name, Hash]
    rows: tuple[Searched, ...]


class Swept(Part, kw_only=True, frozen=True):
    """One tile at one number of blocks, in each of its forms."""

    block: tuple[Size, Size, Size]
    warp: tuple[Size, Size]
    blocks: Size
    warps: Size
    seconds: Mapping[Name, Seconds]
    spread: Mapping[Name, Amount]
    registers: Mapping[Name, Count]
    hashes: Mapping[Name, Hash]
    cublas_seconds: Seconds
    clock: Mapping[Name, Clock] = EMPTY


class Sweep(Part, kw_only=True, frozen=True):
    """A series in which one thing is varied."""

    kernel: Name
    shape: tuple[Size, Size, Size]
    method: Text
    rows: tuple[Swept, ...]


class Traffic(Part, kw_only=True, frozen=True):
    """What ncu counted of all launches of one product together."""

    dram_read_bytes: Count
    dram_write_bytes: Count
    instructions: Count
    kernels: tuple[Symbol, ...]

    @property
    def dram_bytes(self) -> int:
        """Read and written."""
        return self.dram_read_bytes + self.dram_write_bytes


# Who computes a product with an epilogue: one kernel of ours, the same with the unit's tanh, the
# epilogue behind our product, our product alone; and of others those that do all of it, and their
# product alone.
Whose = Literal["fused", "unit", "apart", "product", "rival", "rival's product"]


class FusedSide(Side, kw_only=True, frozen=True):
    """One of those that were timed on a product with an epilogue.

    `error` is that of its C, relative in norm; None where its columns lie otherwise. `variant`,
    `instantiation`, `hash` and `registers` are of 25's code alone. `steady` is of it alone, without
    a pause, `traffic` of one product.
    """

    name: Text
    whose: Whose
    epilogue: Name
    error: Amount | None = None
    variant: Name = ""
    instantiation: Code = ""
    hash: Hash | None = None
    registers: Count = 0
    steady: Steady | None = None
    traffic: Traffic | None = None


class FusedRow(Sized, kw_only=True, frozen=True):
    """All that took turns on one product.

    `fuses` is whether `lib.gemm` takes a kernel of 25, and `reason` what it says of that. `idle_w`
    is the power of the idle GPU, W, where energy was measured.
    """

    dtype: Type
    out: Type
    b_layout: Layout
    epilogue: Name
    fuses: bool
    reason: Text
    sides: Annotated[tuple[FusedSide, ...], Meta(min_length=1)]
    board: Hash
    chunk: Name
    idle_w: Amount | None = None


class Chunk(Part, kw_only=True, frozen=True):
    """One stretch of GPU time: all that was measured in it is of one board and one process.

    `others` is the number of other processes that used the GPU.
    """

    started: Moment
    board: Hash
    driver: Name
    revision: Name
    others: Count


class Record(Part, kw_only=True, frozen=True):
    """What every record has.

    `digest` is empty until it is sealed, and stands in the file behind what its kind has besides.
    """

    # The file's name, where all records of a kind have one.
    STEM: ClassVar[str] = ""

    schema: Literal[4]
    kernel: Name
    gpu: Gpu
    software: Software
    date: Date
    revision: Name
    method: Method
    digest: Hash = ""

    @classmethod
    def of(cls, head: Record, **parts: Any) -> Self:
        """A record that begins as another does: `parts` are the fields that its kind has more."""
        return cls(**{name: getattr(head, name) for name in Record.__struct_fields__}, **parts)


class KernelRecord(Record, kw_only=True, frozen=True):
    """A version of the catalogue."""

    variants: Mapping[Name, Variant]
    chunks: Mapping[Name, Chunk]


class CublasRecord(Record, kw_only=True, frozen=True):
    """The rival by itself."""

    STEM: ClassVar[str] = CUBLAS

    variants: Mapping[Name, RivalVariant]
    chunks: Mapping[Name, Chunk]


class QuickVariant(Part, kw_only=True, frozen=True):
    """A version's first instantiation, timed and no more."""

    hash: Hash
    launch: Hash
    arch: Arch
    registers: Count
    shared_bytes: Count
    bench: tuple[Row, ...]

    @property
    def codes(self) -> dict[str, QuickVariant]:
        """As `Variant.codes`: code for the GPU alone."""
        return {self.arch: self}


class QuickRecord(Record, kw_only=True, frozen=True):
    """A reader's own: each version's first variant on a few cubes, in one file."""

    STEM: ClassVar[str] = QUICK

    chunks: Mapping[Name, Chunk]
    versions: Mapping[Name, Mapping[Name, QuickVariant]]


class Ours(Part, kw_only=True, frozen=True):
    """What of ours a peer was in turns with."""

    kernel: Name
    variant: Name
    seconds: Seconds
    spread: Amount
    tflops: Positive
    clock: Clock | None = None


class PeerRow(Problem, kw_only=True, frozen=True):
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
    ours: Ours | None = None
    rival: Rival | None = None
    clock: Clock | None = None
    cublas_clock: Clock | None = None
    temperature_c: float | None
    throttle: tuple[Name, ...] | None
    board: Hash
    chunk: Name


class PublicPeer(Part, kw_only=True, frozen=True):
    """A public kernel: where it is from, and how fast it is here."""

    repository: Name
    revision: Name
    licence: Name
    half_sums: bool
    rows: tuple[PeerRow, ...]


class RivalsRecord(Record, kw_only=True, frozen=True):
    """Public peers, measured by ``python -m lib rivals``."""

    STEM: ClassVar[str] = RIVALS

    peers: Mapping[Name, PublicPeer]
    chunks: Mapping[Name, Chunk]


class LadderEntry(Part, kw_only=True, frozen=True):
    """An instantiation in the ladder's pass, by ``VERSION/VARIANT``.

    `side` is true of what only isolates a version's change; `late` has the rows of one that starts
    before the launch before it has ended (programmatic launch), launched without that.
    """

    hash: Hash
    launch: Hash
    side: bool = False
    bench: tuple[Row, ...]
    late: tuple[Row, ...] = ()
    counters: tuple[Counters, ...] = ()


class LadderRecord(Record, kw_only=True, frozen=True):
    """All versions, cuBLAS and public kernels in one pass on one board.

    Measured by ``python -m lib record --ladder``.
    """

    STEM: ClassVar[str] = LADDER

    entries: Mapping[Name, LadderEntry]
    peers: Mapping[Name, PublicPeer]
    chunks: Mapping[Name, Chunk]


class MachineRecord(Record, kw_only=True, frozen=True):
    """The machine's own roofs."""

    STEM: ClassVar[str] = MACHINE

    roofs: Roofs


class CalibrationRecord(Record, kw_only=True, frozen=True):
    """What the emulator's counters are held against, and `sums`, its 8-bit tensor cores."""

    STEM: ClassVar[str] = CALIBRATION

    arch: Arch
    hash: Hash
    metrics: tuple[Name, ...]
    patterns: Mapping[Code, Pattern]
    sums: tuple[SumError, ...] = ()


class SearchRecord(Record, kw_only=True, frozen=True):
    """Which tile suits which shape."""

    STEM: ClassVar[str] = SEARCH

    searches: Mapping[Name, Search]


class SweepsRecord(Record, kw_only=True, frozen=True):
    """Series in which one thing is varied."""

    STEM: ClassVar[str] = SWEEPS

    sweeps: Mapping[Name, Sweep]


class EpiloguesRecord(Record, kw_only=True, frozen=True):
    """Products with an epilogue against others', and 25's parts in turns with each other.

    Measured by ``python -m lib.measure.fused_bench``.
    """

    STEM: ClassVar[str] = EPILOGUES

    contests: tuple[FusedRow, ...]
    parts: tuple[FusedRow, ...]
    chunks: Mapping[Name, Chunk]


AnyRecord = (KernelRecord | CublasRecord | QuickRecord | RivalsRecord | MachineRecord
             | CalibrationRecord | SearchRecord | SweepsRecord | EpiloguesRecord | LadderRecord)
_KINDS: dict[str, type[AnyRecord]] = {kind.STEM: kind for kind in (
    CublasRecord, QuickRecord, RivalsRecord, MachineRecord, CalibrationRecord, SearchRecord,
    SweepsRecord, EpiloguesRecord, LadderRecord)}


def type_of(stem: str) -> type[AnyRecord]:
    """The type that a record of this name must have."""
    return _KINDS.get(stem, KernelRecord)


def documentation() -> dict[str, Any]:
    """These types as a JSON Schema."""
    schemas, components = json.schema_components(
        (KernelRecord, *_KINDS.values()), ref_template="#/$defs/{name}")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema",
            "anyOf": list(schemas), "$defs": components}
