"""Tables and listings of a page: each with its kind of evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lib import claims as ledger
from lib import device, gpus, reported, scoreboard, source, tuning
from lib.compiler import compile_kernel
from lib.figures import style
from lib.kernels import CATALOGUE
from lib.measure import records
from lib.models import order
from lib.models import phases as phases_of
from lib.models.busiest import HMMA_1688
from lib.models.occupancy import occupancy
from lib.models.register_banks import reading
from lib.pages.display import note, table
from lib.pages.version import RECORDED_ON, TIMED, Version, by_kind, measured_on, rung
from lib.problem import Problem
from lib.versions import Variant

# What every version must get right: square, ragged, one wide, and the ends of K, α and β.
CHECKED = (
    Problem(128, 128, 128), Problem(100, 99, 101), Problem(33, 65, 31, 0.5, -2.0),
    Problem(1, 70, 40, 1.0, 1.0), Problem(70, 1, 40, -2.0, 0.5), Problem(31, 33, 1),
    Problem(64, 64, 0, 1.0, 0.5),
)
# The same for matrices that tensor maps move: rows are multiples of 16 bytes, 8 elements.
CHECKED_BOXES = tuple(
    replace(one, N=-(-one.N // 8) * 8, K=-(-one.K // 8) * 8) for one in CHECKED
)
# The counters that are compared between versions: those of the main loop.
PER_MULTIPLY_ADD = (
    "global_load_requests", "global_load_sectors", "shared_load_instructions",
    "shared_wavefronts", "shared_wavefronts_ideal",
)
# The sizes of a chapter's table of speeds.
SPEED_SIZES = (1024, 2048, 4096)


# NumPy's names of types, for people.
_TYPES = {"float32": "FP32", "float16": "FP16", "bfloat16": "BF16"}
# Shapes beside the sizes of the ladders: one too small to fill a GPU, and uneven ones.
OTHER_SHAPES = ((512, 512, 512), *tuning.UNEVEN)


def other_shapes_table(*stems: str) -> None:
    """Display what versions reach of cuBLAS at `OTHER_SHAPES`, a row a version.

    Parameters
    ----------
    *stems : str
        All versions that are recorded at one of them, if none is named.
    """
    found: dict[str, dict[tuple[int, int, int], records.Row]] = {}
    for row in records.rows():
        kernel = CATALOGUE[row.kernel]
        shape = row.M, row.N, row.K
        if row.gpu == RECORDED_ON and row.variant == kernel.variants[0].name and (
                shape in OTHER_SHAPES and row.kernel in (stems or CATALOGUE)):
            found.setdefault(row.kernel, {})[shape] = row
    rows = [
        (rung(CATALOGUE[stem]) + (" (stale)" if any(r.stale for r in at.values()) else ""),
         *(f"{at[shape].ratio:.0%}" if shape in at else "not recorded" for shape in OTHER_SHAPES))
        for stem, at in found.items()
    ]
    dates = sorted({row.date for at in found.values() for row in at.values()})
    head = ("of cuBLAS, M×N×K", *("×<br>".join(map(str, shape)) for shape in OTHER_SHAPES))
    table(head, rows, f"recorded: {RECORDED_ON}, {', '.join(dates)}; cuBLAS in the same run")


def results_table(size: int | None = None) -> None:
    """Display the recorded benchmarks of cubes.

    Parameters
    ----------
    size : int, optional
        Only cubes of this size, and each version's first variant; every one if not given.
    """
    rows = [row for row in records.rows()
            if size is None or row.variant == CATALOGUE[row.kernel].variants[0].name]
    dates = sorted({(row.gpu, row.date) for row in rows})
    evidence = "recorded: " + "; ".join(f"{gpu}, {date}" for gpu, date in dates)
    note(f"{scoreboard.markdown(rows, size)}\n\n*{evidence}; cuBLAS on the same types in the same "
         "run, TF32 off*")


def roofs_table() -> None:
    """Display the roofs measured on each machine, beside its data sheet's figure."""
    rows, labels = [], []
    sheet = {
        "copy": ("DRAM", lambda g: g.dram_bytes_per_s), "l2": ("L2", lambda g: None),
        "shared": ("shared memory", lambda g: None), "ffma": ("FFMA", lambda g: g.fp32_flops),
        "mma_k8": ("mma.m16n8k8", lambda g: g.tensor_fp16_flops),
        "mma_k16": ("mma.m16n8k16", lambda g: g.tensor_fp16_flops),
        "wgmma": ("wgmma", lambda g: g.tensor_fp16_flops),
    }
    for record in records.every():
        if record["kernel"] != records.MACHINE:
            continue
        gpu = gpus.GPUS[record["gpu"]["key"]]
        labels.append(records.label(record))
        for key, roof in record["roofs"].items():
            name, peak = sheet[key]
            unit, given = roof["unit"], peak(gpu)
            rows.append((
                f"{gpu.key}, {name}", style.quantity(roof["value"], unit),
                style.quantity(given, unit) if given else "not given", roof["method"],
            ))
    table(("roof", "measured", "data sheet", "how"), rows, "; ".join(labels))


def roof(name: str) -> float:
    """Return a roof measured on the recorded GPU, such as ``mma_k8``'s FLOP/s.

    Raises
    ------
    records.NotRecorded
        If it was not measured.
    """
    record = records.load(RECORDED_ON, records.MACHINE)
    if record is None or name not in record["roofs"]:
        raise records.NotRecorded(f"no roof {name} is recorded: python -m lib record machine")
    return record["roofs"][name]["value"]


def provenance() -> None:
    """Display where each record comes from: GPU, driver, toolkit, date, revision, method."""
    rows = [
        (r["kernel"], r["gpu"]["name"], r["gpu"]["driver"], r["software"]["cuda"],
         r["software"]["cublas"], r["date"], r["revision"])
        for r in records.every()
    ]
    head = ("record", "GPU", "driver", "CUDA", "cuBLAS", "date", "revision")
    table(head, rows, "recorded: the files in results/")
    methods = {r["method"]["bench"] for r in records.every() if r["kernel"] in CATALOGUE}
    clocks = {r["method"]["clocks"] for r in records.every()}
    note("\n\n".join([f"Timing: {'; '.join(methods)}.", f"Clocks: {'; '.join(clocks)}."]))


# What the calibration set's kernels are, for people.
_ACCESSES = {
    "load<SHARED": "loads from shared memory, 1 to 16 bytes a lane",
    "store<SHARED": "stores to shared memory, 1 to 16 bytes a lane",
    "load_matrix": "ldmatrix", "store_matrix": "stmatrix",
    "load<GLOBAL": "loads from global memory, 1 to 16 bytes a lane",
    "store<GLOBAL": "stores to global memory, 1 to 16 bytes a lane",
    "copy": "cp.async through the L1 and past it, 4 to 16 bytes a lane",
    "load_fragment": "wmma.load", "store_fragment": "wmma.store",
}


def calibrated() -> None:
    """Display which accesses of the emulator were held against a GPU's counters."""
    record = records.load(RECORDED_ON, records.CALIBRATION)
    if record is None:
        note("Nothing was recorded yet: `python -m lib record calibration`.")
        return
    rows = [
        (name, sum(pattern.startswith(access) for pattern in record["patterns"]))
        for access, name in _ACCESSES.items()
    ]
    table(("access of a warp", "patterns"), rows, records.label(record))


def gpu_table() -> None:
    """Display the data sheets of `lib.gpus`."""
    rows = (
        ("compiled for", lambda g: g.arch),
        ("SMs", lambda g: g.sms),
        ("boost clock, MHz", lambda g: f"{g.clock_hz / 1e6:,.0f}"),
        ("FP32 lanes an SM", lambda g: g.fp32_lanes_per_sm),
        ("FP32 peak, TFLOP/s", lambda g: f"{g.fp32_flops / 1e12:.1f}"),
        ("FP16 tensor peak, TFLOP/s", lambda g: f"{g.tensor_fp16_flops / 1e12:,.0f}"),
        ("DRAM bandwidth, GB/s", lambda g: f"{g.dram_bytes_per_s / 1e9:,.0f}"),
        ("L2 cache, MiB", lambda g: g.l2_bytes // gpus.MIB),
        ("shared memory an SM, KiB", lambda g: g.shared_bytes_per_sm // gpus.KIB),
        ("registers an SM", lambda g: f"{g.registers_per_sm:,}"),
        ("resident warps an SM", lambda g: g.warps_per_sm),
    )
    sheets = tuple(gpus.GPUS.values())
    table(
        ("", *(sheet.key for sheet in sheets)),
        [(name, *(value(sheet) for sheet in sheets)) for name, value in rows],
        "reported: the vendor's data sheets and programming guide",
    )


def claims(chapter: str | None = None) -> None:
    """Display the claims that a chapter judges, or all of them."""
    note(ledger.markdown(chapter))


def _types(variant: Variant) -> str:
    """What a variant multiplies, and into what."""
    if variant.dtype == "float32":
        return "FP32, TF32 off"
    columns = ", B by columns" if variant.b_layout == "column" else ""
    return f"A and B {_TYPES[variant.dtype]}, C {_TYPES[variant.out]}{columns}"


class Tables(Version):
    """What a page of one kernel version shows as tables and listings."""

    # 2, 4: the version before, and the code

    def before(self) -> None:
        """Display what the version before left on the table, in its own counters."""
        previous = self.kernel.predecessor
        if previous is None:
            raise ValueError(f"{self.kernel.stem} is the first version")
        type(self)(previous.stem).counters()

    def code(self) -> None:
        """Display the difference to the version before, or a new kernel; the whole file folded."""
        language = "cpp" if source.is_new(self.kernel) else "diff"
        file = f"cuda/{self.kernel.source.name}"
        note(
            f"```{language}\n{source.difference(self.kernel)}```\n\n"
            f"<details><summary>The whole of <code>{file}</code>, without the timeline's marks"
            f"</summary>\n\n```cpp\n{source.listing(self.kernel)}```\n\n</details>"
        )

    # 5: what the compiler made of it

    def resources(self, *variants: str) -> None:
        """Display registers, shared memory, spills and resident warps for each architecture.

        Parameters
        ----------
        *variants : str
            All of them if none is named.
        """
        rows = []
        for variant in map(self.kernel.variant, variants or (v.name for v in self.kernel.variants)):
            for arch, key in gpus.ARCHITECTURES.items():
                if gpus.GPUS[key].clock_hz and arch >= self.kernel.min_arch:
                    rows.append(self._resource_row(variant, arch, key))
        toolkit = self.compiled(gpus.GPUS[RECORDED_ON].arch).toolkit
        table(
            ("variant", "for", "registers a thread", "shared B a block", "spilled B",
             "warps on an SM", "limited by"),
            rows, f"modelled: CUDA's occupancy rules on what ptxas of NVRTC {toolkit} reports",
        )

    def _resource_row(self, variant: Variant, arch: str, key: str) -> tuple[object, ...]:
        used, gpu = self.compiled(arch, variant.name).resources, gpus.GPUS[key]
        spilled = used.spill_store_bytes + used.spill_load_bytes
        if used.shared_bytes > gpu.shared_bytes_per_block:
            resident = "none: too large", "shared memory"
        else:
            fits = occupancy(gpu, used.registers, used.shared_bytes, variant.threads)
            resident = f"{fits.warps} of {gpu.warps_per_sm}", fits.limited_by
        return (
            variant.name, f"{arch} ({key})", used.registers, f"{used.shared_bytes:,}", spilled,
            *resident,
        )

    def order(self, *variants: str, arch: str = "sm_90a") -> None:
        """Display where the machine code of the main loop loads, computes, stores and waits."""
        rows = []
        for name in variants or tuple(v.name for v in self.kernel.variants):
            opcodes = [i.opcode for i in self.compiled(arch, name).inner_loop]
            found = order.places(opcodes)
            rows.append((name, len(opcodes), *(str(found.get(c, "none")) for c in order.CLASSES),
                         order.work_between(opcodes)))
        what = "FMA" if self.kernel.group == "FP32" else "product"
        table(
            ("variant", "instructions", *(f"{c}s".replace(order.FMA, what) for c in order.CLASSES),
             f"{what}{'' if what == 'FMA' else 's'} from load to store"),
            rows, f"modelled: SASS of the inner loop, {arch}, NVRTC {self.compiled(arch).toolkit}; "
            "positions, and in brackets how many",
        )

    def fetches(self, *variants: str, arch: str = "sm_90a") -> None:
        """Display in which order machine code fetches tiles, as it is timed and with marks.

        Marks keep the source's order of loads, products and stores; the compiler need not.
        """
        rows = []
        for variant in map(self.kernel.variant, variants or (v.name for v in self.kernel.variants)):
            times = self.record["variants"].get(variant.name, {}).get("timeline")
            if times is None:
                raise self._nothing(variant.name, "no timeline")
            for marks, seconds in ((False, "seconds_without"), (True, "seconds_with")):
                code = compile_kernel(self.kernel, variant, arch, timeline=marks)
                found = order.fetches([i.opcode for i in code.inner_loop])
                used = code.resources
                fit = occupancy(gpus.GPUS[RECORDED_ON], used.registers, used.shared_bytes,
                                variant.threads)
                rows.append((
                    variant.name + (", with marks" if marks else ""),
                    f"{found.rounds / found.steps:g}", ", ".join(map(str, found.products)),
                    used.registers, fit.blocks, f"{2 * TIMED**3 / times[seconds] / 1e12:.1f}",
                ))
        table(("code", "fetches a step", "products meanwhile", "registers", "blocks an SM",
               f"TFLOP/s at {TIMED:,}"), rows,
              f"modelled: SASS of the inner loops, {arch}, NVRTC {code.toolkit}; "
              f"{records.label(self.record)}")

    def operands(self, *variants: str, above: Sequence[str] = (), arch: str = "sm_90a") -> None:
        """Display what the register banks allow the inner loops: cycles for 128 FFMA of a warp.

        Parameters
        ----------
        *variants : str
            The first if none is named.
        above : sequence of str
            Stems of other versions to show above.
        arch : str
        """
        rows = []
        for one in self.rows(variants, above):
            found = reading(one.page.compiled(arch, one.variant.name).inner_loop)
            rows.append((one.name, one.variant.meaning,
                         f"{found.others:.1f}", f"{found.lost:.1f}", f"{found.per_128:.1f}"))
        table(
            ("for 128 FFMA", "", "other instructions", "cycles lost to banks", "cycles at least"),
            rows, f"modelled from SASS of the inner loops, {arch}, NVRTC "
            f"{self.compiled(arch).toolkit}: two banks, an operand cache, one warp",
        )

    def inner_loop(self, arch: str = "sm_90a") -> None:
        """Display the inner loop's machine code, folded."""
        rows = [f"{i.address:04x}  {i.text}" for i in self.compiled(arch).inner_loop]
        listing = "\n".join(rows)
        note(f"<details><summary>The inner loop's {len(rows)} machine instructions for {arch}"
             f"</summary>\n\n```text\n{listing}\n```\n\n</details>")

    # 6: does it compute the right thing

    def check(self, *variants: str) -> None:
        """Run variants, all if none is named, on `CHECKED` and display the errors' bounds.

        Where tensor maps move the matrices, on shapes whose rows they can step over.
        """
        rows = []
        names = variants or tuple(v.name for v in self.kernel.variants)
        ran: dict[str, list[str]] = {}
        for name in names:
            ran.setdefault(self._checked_on(self.kernel.variant(name)), []).append(name)
        for problem in CHECKED_BOXES if self.kernel.variants[0].boxes else CHECKED:
            row: list[object] = [problem.shape.replace("x", "×"), f"{problem.alpha:g}",
                                 f"{problem.beta:g}"]
            for name in names:
                done = self.run(problem, name, trace=False)
                row.append(f"under {problem.tolerance:.1e}" if done.verdict.ok
                           else f"**{done.verdict}**")
            rows.append(row)
        head = ["M×N×K", "α", "β", *(f"error, {name}" for name in names)]
        if len(names) > 2 and all(len(set(row[3:])) == 1 for row in rows):
            head[3:] = [f"error of each: {', '.join(names)}"]
            rows = [row[:4] for row in rows]
        table(head, rows, f"{by_kind(ran)}; error relative to float64, in norm; C held NaN where "
                          "β = 0")

    def _checked_on(self, variant: Variant) -> str:
        """The evidence label of what `check` runs: here on the GPU, or in the emulator."""
        if device.runs(self.kernel, variant):
            return measured_on()
        why = f", since {device.why_not(self.kernel, variant)}" if device.available() else ""
        return f"emulated: {self.kernel.min_arch} code in the PTX emulator{why}"

    def instantiations(self) -> None:
        """Display which instantiation each of the shapes of `CHECKED` gets, and why."""
        variant = self.kernel.variants[0]
        rows = []
        for problem in CHECKED:
            chosen = self.kernel.select(problem, variant)
            rows.append((
                problem.shape.replace("x", "×"), f"`{self.kernel.expression(chosen.variant)}`",
                chosen.reason or "every row begins on a multiple of a vector",
            ))
        table(("M×N×K", "launched", "because"), rows,
              "modelled: the catalogue's rule, for matrices that begin on 16 bytes")

    # 7: memory

    def counters(self, *variants: str) -> None:
        """Display the counters of the traced run, one column a variant."""
        names = variants or tuple(v.name for v in self.kernel.variants)
        columns = [self.traced(name).launch.trace.counters() for name in names]
        rows = [
            (key.replace("_", " "), *(f"{column[key]:,}" for column in columns))
            for key in columns[0]
        ]
        rows += [
            ("sectors a global load request", *(
                f"{c['global_load_sectors'] / c['global_load_requests']:.3g}"
                if c["global_load_requests"] else "none" for c in columns)),
        ]
        shape = self.problem.shape.replace("x", "×")
        table((f"{self.kernel.stem} at {shape}", *names), rows,
              self._emulated())

    def counted(self, size: int = 256, ptx_arch: str = "sm_75") -> None:
        """Display what the emulator counts beside what ncu counted, of the same PTX.

        Parameters
        ----------
        size : int
            M = N = K.
        ptx_arch : str
            The architecture whose PTX was recorded on the GPU.
        """
        measured = self.metrics(size, ptx_arch=ptx_arch)
        done = self.run(Problem(size, size, size), backend="emulator", arch=ptx_arch, exact=True)
        trace = done.launch.trace
        matrix = trace.matrix_counters()
        counts = {**trace.counters(), "ldmatrix_instructions": matrix["ldmatrix_instructions"]}
        if not matrix["wmma_instructions"]:  # one of which may be several HMMAs
            counts["hmma_instructions"] = matrix["mma_instructions"]
        rows = [
            (key.replace("_", " "), f"{count:,}", f"{measured[key]:,.0f}")
            for key, count in counts.items() if key in measured
        ]
        table((f"{self.kernel.stem} at {size}×{size}×{size}", "emulator", "ncu"), rows,
              f"emulated: {ptx_arch} PTX; {records.label(self.record)}, that PTX assembled for it")

    def per_multiply_add(self) -> None:
        """Display what a warp's multiply-add costs in memory accesses, here and before."""
        before = self.kernel.predecessor
        pages = [(type(self)(before.stem), before.variants[:1])] if before else []
        pages.append((self, self.kernel.variants))
        columns = [(page, variant.name) for page, variants in pages for variant in variants]
        tensor = self.kernel.group == "FP16"
        scale = HMMA_1688 / 32 if tensor else 1
        rows = [
            (key.replace("_", " "),
             *(f"{scale * page.each(key, name):.3g}" for page, name in columns))
            for key in PER_MULTIPLY_ADD
        ]
        head = ("for a product of 16×8×8" if tensor else "for a multiply-add of a warp",
                *(f"{rung(page.kernel)}, {name}" for page, name in columns))
        table(head, rows, f"emulated: {self.kernel.min_arch} PTX, shared memory as in its SASS")

    # 8, 9: time

    def speed(self, *variants: str) -> None:
        """Display the speed of some variants, or all, against cuBLAS: measured, or recorded."""
        head = ("variant", "M = N = K", "TFLOP/s", "cuBLAS, same run", "of cuBLAS", "spread")
        rows, types = [], {}
        names = variants or tuple(v.name for v in self.kernel.variants)
        for variant in map(self.kernel.variant, names):
            types[_types(variant)] = None
            for row in self._benchmarks(variant):
                rows.append((variant.name, f"{row['M']:,}", f"{row['tflops']:.2f}",
                             f"{row['cublas_tflops']:.2f}", f"{row['ratio']:.1%}",
                             f"{row['spread']:.1%}"))
        table(head, rows, f"{self._timed_on(names)}; {' and '.join(types)}, α = 1, β = 0")

    def codes(self, variant: str | None = None, old: str = "sm_75") -> None:
        """Display the speed of this GPU's own code beside that of an older architecture's.

        Where a source reports the version's speed on a T4, that stands beside them.

        Parameters
        ----------
        variant : str, optional
        old : str
            The architecture whose code was assembled for the recorded GPU.
        """
        rows = []
        known = reported.T4_TENSOR_GFLOPS.get(self.kernel.stem, {})
        for size in SPEED_SIZES:
            own, other = (self.recorded(size, variant, arch) for arch in (None, old))
            row = [f"{size:,}", f"{own['cublas_tflops']:.0f}", f"{own['tflops']:.1f}",
                   f"{own['ratio']:.0%}", f"{other['tflops']:.1f}", f"{other['ratio']:.0%}"]
            if known:
                row.append(f"{known[size] / 1e3:.1f}" if size in known else "")
            rows.append(row)
        own = gpus.GPUS[RECORDED_ON].arch
        head = ["M = N = K", "cuBLAS", f"{own} code", "of cuBLAS", f"{old} code", "of cuBLAS"]
        table(head + (["on a T4, reported"] if known else []), rows,
              f"TFLOP/s; {records.label(self.record)}, {self.kernel.variant(variant).name}; {old} "
              f"code assembled for {own}" + ("; T4: the worklog" if known else ""))

    def other_shapes(self) -> None:
        """Display what this version and the one before reach of cuBLAS at `OTHER_SHAPES`."""
        before = self.kernel.predecessor
        other_shapes_table(*([before.stem] if before else []), self.kernel.stem)

    def _benchmarks(self, variant: Variant) -> list[Mapping[str, Any]]:
        if not device.runs(self.kernel, variant):
            kept = self.record["variants"][variant.name]["bench"]
            return [row for row in kept
                    if row["M"] == row["N"] == row["K"] and row["M"] in SPEED_SIZES]
        return [self._measured(variant, size) for size in SPEED_SIZES]

    def compare(self, size: int, *variants: str) -> None:
        """Display recorded speed and traffic of some variants side by side, a row each.

        Parameters
        ----------
        size : int
            M = N = K.
        *variants : str
            All of them if none is named.
        """
        rows = []
        tensor = self.kernel.group == "FP16"
        for name in variants or tuple(v.name for v in self.kernel.variants):
            metrics, row = self.metrics(size, name), self.recorded(size, name)
            # A product of 16×8×8 on tensor cores is a warp's, as 32 multiply-adds are.
            steps = size**3 / HMMA_1688 if tensor else metrics["ffma_thread_instructions"] / 32
            pipe = metrics["tensor_pipe_percent" if tensor else "fma_pipe_percent"]
            rows.append((
                name, self.kernel.variant(name).meaning, f"{row['tflops']:.1f}",
                f"{row['ratio']:.1%}", f"{metrics['dram_read_bytes'] / 1e9:.2f}",
                f"{metrics['l2_bytes'] / 1e9:.1f}", f"{metrics['shared_wavefronts'] / steps:.2f}",
                f"{pipe:.0f}%",
            ))
        table(
            (f"at {size:,}", "", "TFLOP/s", "of cuBLAS", "GB from DRAM", "GB through L2",
             "wavefronts a 16×8×8 product" if tensor else "wavefronts a warp's FMA",
             "tensor pipe busy" if tensor else "FMA pipe busy"),
            rows, records.label(self.record),
        )

    def phases(self, *variants: str, above: Sequence[str] = ()) -> None:
        """Display the share of the warps' time in each phase, and what a tile costs the SM.

        An SM works on several blocks at once. So what a tile costs it is all its cycles, without
        marks, over all tiles that it works on.
        """
        names = ("load", "wait", "compute", "barrier")
        rows = []
        for page, variant in self.rows(variants, above):
            one = page._version(variant)
            here = device.runs(page.kernel, variant)
            sms = device.sms() if here else gpus.GPUS[RECORDED_ON].sms
            spans = [
                span for _, warps in one.blocks for span in phases_of.phases(one.events, warps)
            ]
            shares = phases_of.parts(spans, names, (0.0, float("inf")))
            tiles = one.total_blocks * -(-TIMED // variant.step) / sms
            cycles = one.seconds_without * one.clock_hz / tiles
            rows.append((one.name, *(f"{shares.get(name, 0.0):.0%}" for name in names),
                         f"{cycles:,.0f}"))
        table(("warps' time", *names, "SM cycles a tile"), rows,
              f"{self._timed_on(variants, above)}, {TIMED:,}³; shares from marks in the kernel, "
              "cycles without")

    def claims(self) -> None:
        """Display the claims that this chapter judges."""
        claims(self.kernel.stem)
