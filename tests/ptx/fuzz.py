"""Search for what breaks the emulator; not a test. Run: python -m tests.ptx.fuzz --minutes 10

Two searches take turns. Random edits of real PTX are parsed, decoded and launched: anything but
`ptx.Error` is a bug. Random programs on whole numbers and floats are compiled by NVRTC and by g++:
a result that differs in a bit (NaN is NaN) is a bug. Each finding is printed with its seed, which
`--seed` repeats.
"""

import argparse
import ctypes
import random
import re
import shutil
import subprocess
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np

from lib import ptx

from .conftest import HEAD, HERE, compile_kernels, compile_text

CORPUS = (
    ("90a", "blocks"), ("90a", "hazards"), ("75", "kernels"), ("80", "tensor"), ("90a", "hopper"),
    ("75", "calls"),
)
WORDS = re.compile(r"[\w$.%]+|\S")
THREADS = 64


# -- edits of PTX ---------------------------------------------------------------------------------


def kernels_of(seed: int) -> str:
    """One kernel's or function's text out of the corpus, with what stands before the first."""
    arch, name = CORPUS[seed % len(CORPUS)]
    text = compile_kernels(f"compute_{arch}", str(HERE / f"{name}.cu"))
    starts = [m.start() for m in re.finditer(r"^\.(?:visible|weak|extern) ", text, re.M)]
    at = random.Random(seed).randrange(len(starts))
    return text[starts[at] : (starts + [len(text)])[at + 1]]


def mutated(text: str, chance: random.Random) -> str:
    """Drop, double, swap and garble pieces of PTX."""
    lines, pieces = text.splitlines(), WORDS.findall(text)
    for _ in range(chance.randint(1, 4)):
        i, j = chance.randrange(len(lines)), chance.randrange(len(lines))
        line = lines[i]
        match chance.randrange(7):
            case 0:
                del lines[i]
                lines.append("")
            case 1:
                lines[i], lines[j] = lines[j], lines[i]
            case 2:
                cut = chance.randrange(len(line) + 1)
                lines[i] = line[:cut] + chance.choice('{}[]();,@!|<>+-0.:%"/*\0é\n') + line[cut:]
            case 3:
                lines[i] = line[: chance.randrange(len(line) + 1)]
            case 4 | 5:
                found = list(WORDS.finditer(line))
                if found:
                    word = chance.choice(found)
                    lines[i] = line[: word.start()] + chance.choice(pieces) + line[word.end() :]
            case 6:
                lines[i] = re.sub(r"\d+", lambda m: str(chance.choice([0, 99, 2**31, 2**64])), line)
    return "\n".join(lines)


def attempt(text: str, **launch):
    """Parse, decode and, with options, run; anything but ptx.Error is a bug."""
    try:
        module = ptx.Module(text)
        for name in module.program.entries:
            function = module.get_function(name)
            if launch:
                sizes = (parameter.size for parameter in function.entry.parameters)
                args = [np.zeros(512, np.float32) if size == 8 else 3 for size in sizes]
                function(2, 128, args, turns=200, **launch)
    except ptx.Error:
        pass


def try_edit(seed: int):
    """Edit a kernel, or a whole module where functions call each other, and launch it."""
    chance = random.Random(seed)
    arch, name = CORPUS[seed % len(CORPUS)]
    if name == "calls":
        text = mutated(compile_kernels(f"compute_{arch}", str(HERE / f"{name}.cu")), chance)
    else:
        text = HEAD + mutated(kernels_of(seed), chance)
    launch = {"races": chance.random() < 0.5, "landing": chance.choice(["early", "late"])}
    attempt(text, **launch)


# -- programs -------------------------------------------------------------------------------------

PREFIX = """
typedef unsigned u32; typedef int s32; typedef unsigned long long u64; typedef long long s64;
FUNCTION s32 whole(float x) { return x > -1e9f && x < 1e9f ? (s32)x : 77; }
FUNCTION u32 quotient(u32 a, u32 b) { return b ? a / b : a; }
FUNCTION s32 rest(s32 a, s32 b) { return b && b != -1 ? a % b : b; }
FUNCTION s64 wide(s64 a, s64 b) { return b && b != -1 ? a / b : a; }
FUNCTION u32 deep(u32 n, u32 x) { return n ? deep(n - 1, x * 3 + n) ^ x : x; }
"""
WHOLE = {
    "u32": ("a + b", "a - b", "a * b", "a & b", "a ^ (b >> 3)", "a << (b & 31)", "a >> (b & 31)",
            "quotient(a, b)", "a > b ? a : b", "deep(b & 7, a)", "(u32)whole((float)(s32)a)"),
    "s32": ("(s32)((u32)a + (u32)b)", "(s32)((u32)a * (u32)b)", "rest(a, b)", "a >> (b & 31)",
            "a < b ? a : b", "a | ~b", "(s32)(((s64)a * b) >> 32)", "(s32)(short)a",
            "(signed char)b"),
    "u64": ("a + b", "a * b", "a << (b & 63)", "a >> (b & 63)", "a ^ ~b", "(u64)(u32)a * (u32)b",
            "a < b ? a - b : b - a"),
    "s64": ("(s64)((u64)a - (u64)b)", "wide(a, b)", "a >> (b & 63)", "a < b ? a : b",
            "(s64)(s32)a * (s32)b"),
}
FLOAT = (
    "a + b", "a - b", "a * b", "a / b", "fmaf(a, b, c)", "sqrtf(fabsf(a))", "fminf(a, b)",
    "fmaxf(a, b)", "floorf(a)", "a < b ? a : c", "(float)whole(a)", "truncf(b)", "-a",
    "(float)((double)a * b + c)", "(float)(u32)whole(a)",
)
KINDS = (*WHOLE, "float")


def program(seed: int) -> str:
    """Write the body of a random program: the same text for both compilers."""
    chance = random.Random(seed)
    names = {kind: [f"{kind}{i}" for i in range(3)] for kind in KINDS}
    lines = []
    for kind in KINDS:
        for i, name in enumerate(names[kind]):
            source = "f[(t * 5 + %d) %% 64]" if kind == "float" else "w[(t * 3 + %d) %% 64]"
            lines.append(f"{kind} {name} = ({kind}){source % (7 * i + len(kind))};")
    lines.append("u32 array[4] = {u320, u321, 3, 4};")

    def assignment() -> str:
        kind = chance.choice(KINDS)
        choices = FLOAT if kind == "float" else WHOLE[kind]
        text = chance.choice(choices)
        values = {letter: chance.choice(names[kind]) for letter in "abc"}
        text = re.sub(r"\b[abc]\b", lambda m: values[m[0]], text)
        target = chance.choice(names[kind])
        roll = chance.random()
        if roll < 0.1:
            value = f"whole({target})" if kind == "float" else target
            return f"array[{chance.choice(names['u32'])} & 3] += (u32){value};"
        if roll < 0.2:
            return f"{chance.choice(names['u32'])} ^= array[{chance.choice(names['s32'])} & 3];"
        if roll < 0.3 and kind != "float":
            other = chance.choice([k for k in WHOLE if k != kind])
            return f"{target} = ({kind}){chance.choice(names[other])};"
        return f"{target} = ({kind})({text});"

    for _ in range(chance.randint(5, 25)):
        roll = chance.random()
        if roll < 0.15:
            lines.append(f"if ({chance.choice(names['s32'])} < {chance.choice(names['s32'])}) "
                         f"{{ {assignment()} {assignment()} }} else {assignment()}")
        elif roll < 0.3:
            lines.append(f"for (u32 i = 0; i < ({chance.choice(names['u32'])} & 7); i++) "
                         f"{{ {assignment()} {assignment()} }}")
        else:
            lines.append(assignment())
    lines.append("u64 h = array[0] + array[1] * 3u + array[2] * 5u + array[3] * 7u;")
    for kind in WHOLE:
        lines += [f"h = h * 31 + (u64){name};" for name in names[kind]]
    lines.append("o[t] = h;")
    lines += [f"g[t * 3 + {i}] = {name};" for i, name in enumerate(names["float"])]
    return "\n".join(lines)


def inputs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Words and floats, the edges among them."""
    random_ = np.random.default_rng(seed)
    w = random_.integers(0, 2**63, THREADS, np.uint64)
    w[::3] = random_.choice(np.array([0, 1, 2, 31, 2**31, 2**32 - 1, 2**63, 2**64 - 1], "u8"), 22)
    f = (random_.standard_normal(THREADS) * 10.0 ** random_.integers(-3, 6, THREADS)).astype("f4")
    f[::5] = random_.choice(np.array([0, -0.0, 1, np.inf, 1e-40, 3e38, -1], "f4"), 13)
    return w, f


def by_emulator(body: str, w, f) -> tuple[np.ndarray, np.ndarray]:
    source = PREFIX.replace("FUNCTION", "__device__ __noinline__") + (
        'extern "C" __global__ void k(const u64* w, const float* f, u64* o, float* g) {\n'
        f"int t = threadIdx.x;\n{body}\n}}\n"
    )
    text = compile_text(source, options=("--fmad=false",))
    o, g = np.zeros(THREADS, np.uint64), np.zeros(3 * THREADS, np.float32)
    ptx.Module(text).get_function("k")(1, THREADS, (w, f, o, g), trace=False)
    return o, g


def by_compiler(body: str, w, f, folder: str) -> tuple[np.ndarray, np.ndarray]:
    source = "#include <cmath>\nusing namespace std;\n" + PREFIX.replace("FUNCTION", "static") + (
        'extern "C" void k(const u64* w, const float* f, u64* o, float* g) {\n'
        f"for (int t = 0; t < {THREADS}; t++) {{\n{body}\n}}\n}}\n"
    )
    path = Path(folder) / "program.cpp"
    library = Path(folder) / f"program{random.getrandbits(48):x}.so"
    path.write_text(source)
    options = ("-O1", "-w", "-fwrapv", "-ffp-contract=off", "-shared", "-fPIC")
    subprocess.run(["g++", *options, path, "-o", library], check=True, capture_output=True)
    o, g = np.zeros(THREADS, np.uint64), np.zeros(3 * THREADS, np.float32)
    ctypes.CDLL(str(library)).k(*(ctypes.c_void_p(a.ctypes.data) for a in (w, f, o, g)))
    return o, g


def try_program(seed: int):
    """Run a random program in the emulator and as machine code; raises where they differ."""
    body, (w, f) = program(seed), inputs(seed)
    with tempfile.TemporaryDirectory() as folder:
        exact = by_compiler(body, w, f, folder)
    mine = by_emulator(body, w, f)
    if not np.array_equal(mine[0], exact[0]):
        raise AssertionError(f"whole numbers differ:\n{body}")
    same = (mine[1].view(np.uint32) == exact[1].view(np.uint32)) | (
        np.isnan(mine[1]) & np.isnan(exact[1]))
    if not same.all():
        raise AssertionError(f"floats differ, {mine[1][~same][:3]} {exact[1][~same][:3]}:\n{body}")


def main() -> int:
    """Search until the time is over; the exit status is 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first try")
    given = parser.parse_args()
    end, seed = time.monotonic() + 60 * given.minutes, given.seed
    counts, found = {"edits": 0, "programs": 0}, 0
    while time.monotonic() < end:
        tries = [("edits", try_edit)] * 20
        if shutil.which("g++"):
            tries.append(("programs", try_program))
        for name, attempt_one in tries:
            seed += 1
            counts[name] += 1
            try:
                attempt_one(seed)
            except Exception:
                found += 1
                print(f"--- {name}, seed {seed}\n{traceback.format_exc()}", flush=True)
    print(f"{counts['edits']} edits of PTX, {counts['programs']} programs: {found} findings")
    return found > 0


if __name__ == "__main__":
    raise SystemExit(main())
