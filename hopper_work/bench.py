"""On a GPU: python3 hopper_work/bench.py PLAN.json  -> table, JSON in $OUT."""
import ctypes, ctypes.util, glob, json, math, os, sys, time, statistics as st
from pathlib import Path
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import numpy as np
import cupy as cp
import ml_dtypes
from spec import Cfg, SIZE
OUT = Path(os.environ.get('OUT', '.'))

# ---------------------------------------------------------------- driver
cu = ctypes.CDLL('libcuda.so.1')
def encode(arr_ptr, shape, item, box, name, promo=2, pitch=None):
    room = ctypes.create_string_buffer(192)
    start = -(-ctypes.addressof(room) // 64) * 64
    kind = {'float16': 6, 'float32': 7, 'bfloat16': 9}[name]
    rank = 2
    code = cu.cuTensorMapEncodeTiled(
        ctypes.c_void_p(start), kind, ctypes.c_uint32(rank), ctypes.c_void_p(arr_ptr),
        (ctypes.c_uint64 * 2)(shape[1], shape[0]), (ctypes.c_uint64 * 1)((pitch or shape[1]) * item),
        (ctypes.c_uint32 * 2)(box[1], box[0]), (ctypes.c_uint32 * 2)(1, 1), 0, 3, promo, 0)
    if code: raise RuntimeError(f'encode {shape} {box}: {code}')
    return np.frombuffer(ctypes.string_at(start, 128), 'V128')[0]

class Kern:
    def __init__(self, cubin, name, shared, nonport=False):
        self.mod = cp.cuda.function.Module(); self.mod.load(cubin)
        self.f = self.mod.get_function(name)
        from cupy_backends.cuda.api import driver
        if shared > 48 * 1024 - 1024:
            driver.funcSetAttribute(self.f.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)
        if nonport: driver.funcSetAttribute(self.f.ptr, 14, 1)
        self.shared = shared

# ---------------------------------------------------------------- cublasLt
def load_lt():
    for pat in ('libcublasLt.so.13', 'libcublasLt.so'):
        try: return ctypes.CDLL(pat)
        except OSError: pass
    for g in glob.glob('/usr/local/lib/python3*/*-packages/nvidia/*/lib/libcublasLt.so*') + glob.glob('/usr/local/cuda*/lib64/libcublasLt.so*'):
        try: return ctypes.CDLL(g)
        except OSError: pass
    import torch; 
    for g in glob.glob(str(Path(torch.__file__).parent.parent / 'nvidia' / '**' / 'libcublasLt.so*'), recursive=True): return ctypes.CDLL(g)
class Heur(ctypes.Structure):
    _fields_ = [('algo', ctypes.c_uint64 * 8), ('ws', ctypes.c_size_t), ('state', ctypes.c_int), ('waves', ctypes.c_float), ('res', ctypes.c_int * 4)]
lt = load_lt(); LT = ctypes.c_void_p(); assert lt.cublasLtCreate(ctypes.byref(LT)) == 0
WS = cp.zeros(128 << 20, 'u1'); WSB = 128 << 20
CT = {'float16': 2, 'bfloat16': 14, 'float32': 0}
class Rival:
    def __init__(self, M, N, K, dtype, out, rows, count=64):
        c = ctypes
        self.desc = c.c_void_p(); assert lt.cublasLtMatmulDescCreate(c.byref(self.desc), 68, 0) == 0
        ta = c.c_int(0 if rows else 1); tb = c.c_int(0)
        lt.cublasLtMatmulDescSetAttribute(self.desc, 3, c.byref(ta), c.c_size_t(4)); lt.cublasLtMatmulDescSetAttribute(self.desc, 4, c.byref(tb), c.c_size_t(4))
        def lay(t, r, co, ld):
            p = c.c_void_p(); assert lt.cublasLtMatrixLayoutCreate(c.byref(p), CT[t], c.c_uint64(r), c.c_uint64(co), c.c_int64(ld)) == 0; return p
        self.la = lay(dtype, N, K, N) if rows else lay(dtype, K, N, K)
        self.lb = lay(dtype, K, M, K); self.lc = lay(out, N, M, N)
        pref = c.c_void_p(); lt.cublasLtMatmulPreferenceCreate(c.byref(pref))
        ws = c.c_uint64(WSB); lt.cublasLtMatmulPreferenceSetAttribute(pref, 1, c.byref(ws), c.c_size_t(8))
        res = (Heur * count)(); n = c.c_int()
        assert lt.cublasLtMatmulAlgoGetHeuristic(LT, self.desc, self.la, self.lb, self.lc, self.lc, pref, count, res, c.byref(n)) == 0
        self.algos = [res[i] for i in range(n.value) if res[i].state == 0]
    def run(self, i, A, B, C, alpha=1.0, beta=0.0):
        c = ctypes; a, b = c.c_float(alpha), c.c_float(beta)
        s = cp.cuda.get_current_stream().ptr
        code = lt.cublasLtMatmul(LT, self.desc, c.byref(a), c.c_void_p(B), self.la, c.c_void_p(A), self.lb, c.byref(b), c.c_void_p(C), self.lc, c.c_void_p(C), self.lc,
                          c.byref(self.algos[i].algo), c.c_void_p(WS.data.ptr), c.c_size_t(WSB), c.c_void_p(s))
        if code: raise RuntimeError(f'lt {code}')

# ---------------------------------------------------------------- arrays
def draw(rows, cols, dtype, rng):
    x = (rng.random((rows, cols), dtype='f4') * 2 - 1)
    if dtype == 'float16': return x.astype('f2')
    if dtype == 'bfloat16': # round to nearest even, by bits
        u = x.view('u4'); u = (u + (0x7fff + ((u >> 16) & 1))) >> 16
        return u.astype('u2')
    return x
def to_f(x, dtype, f='f4'):
    if dtype == 'bfloat16': return (x.astype('u4') << 16).view('f4').astype(f)
    return x.astype(f)
ODT = {'float32': 'f4', 'float16': 'f2', 'bfloat16': 'u2'}
def poison(C, out): C.fill(0x7fc0 if out == 'bfloat16' else float('nan'))

class Case:
    """A problem with rotated copies."""
    def __init__(self, M, N, K, dtype='float16', out='float32', rows=True, seed=1, least=150e6):
        self.M, self.N, self.K, self.dtype, self.out, self.rows = M, N, K, dtype, out, rows
        nb = (M * K + K * N) * 2 + M * N * SIZE[out]
        n = max(1, min(400, math.ceil(least / max(nb, 1))))
        rng = cp.random.default_rng(seed)
        self.sets = []
        for i in range(n):
            A, B = draw(M, K, dtype, rng), draw(*((K, N) if rows else (N, K)), dtype, rng)
            C = cp.empty((M, N), ODT[out]); poison(C, out)
            self.sets.append((A, B, C))
        cp.cuda.runtime.deviceSynchronize()
    @property
    def flops(self): return 2.0 * self.M * self.N * self.K
    def reference(self, i=0, f='f8'):
        A, B, _ = self.sets[i]
        a, b = to_f(A, self.dtype, f), to_f(B, self.dtype, f)
        return a @ (b if self.rows else b.T)

def error(C, ref, out):
    c = to_f(C, out, 'f8'); d = float(cp.linalg.norm(c - ref)); n = float(cp.linalg.norm(ref))
    return d / n if n else d

ACTIVE = {}
class LaunchConfig(ctypes.Structure):
    _fields_ = [('g', ctypes.c_uint * 3), ('b', ctypes.c_uint * 3), ('shared', ctypes.c_uint), ('stream', ctypes.c_void_p), ('attrs', ctypes.c_void_p), ('n', ctypes.c_uint)]
def max_clusters(f, size, threads, shared):
    if size == 1: return 132
    c = LaunchConfig(); c.g[:] = (size * 132, 1, 1); c.b[:] = (threads, 1, 1); c.shared = shared
    n = ctypes.c_int(); code = cu.cuOccupancyMaxActiveClusters(ctypes.byref(n), ctypes.c_void_p(f), ctypes.byref(c))
    print(f'   max active clusters of {size} at {shared} B: {n.value} (code {code})', flush=True)
    return n.value if code == 0 and n.value else 132 // size
NO_MAP = np.zeros(1, 'V128')[0]
class Ours:
    def __init__(self, cfg, man, case, sms=132):
        self.cfg = cfg
        m = man[cfg.key]
        if getattr(cfg, 'make', None): pass
        self.k = Kern((HERE / 'cubins' / m['cubin']).read_bytes(), m['name'], cfg.shared, cfg.CM * cfg.CN * cfg.CK > 8)
        self.args = []
        M, N, K = case.M, case.N, case.K
        bx = cfg.boxes
        pa = 3 if 'pa' in cfg.host else 0 if 'p0' in cfg.host else 2; pb = 3 if 'pb' in cfg.host else 0 if 'p0' in cfg.host else 2
        self.packs = []
        wa = K % 8 != 0; wb = (N if cfg.rows else K) % 8 != 0
        if (wa or wb) and bx:
            m = man['pack_' + cfg.dtype]
            self.pk = Kern((HERE / 'cubins' / m['cubin']).read_bytes(), m['name'], 0)
            r8 = lambda n: -(-n // 8) * 8
            sa, sb = case.sets[0][0].shape, case.sets[0][1].shape
            self.pa = cp.empty((sa[0], r8(sa[1])), 'u2') if wa else None
            self.pb = cp.empty((sb[0], r8(sb[1])), 'u2') if wb else None
        self.ws = None
        for A, B, C in case.sets:
            mp = {}; packs = []
            at, bt, ap, bp = A.data.ptr, B.data.ptr, None, None
            if self.packs is not None and bx:
                if wa: packs.append((A, self.pa)); at, ap = self.pa.data.ptr, self.pa.shape[1]
                if wb: packs.append((B, self.pb)); bt, bp = self.pb.data.ptr, self.pb.shape[1]
            self.packs.append(packs)
            if 'A' in bx: mp['A'] = encode(at, A.shape, 2, bx['A'], cfg.dtype, pa, ap) if K else NO_MAP
            if 'B' in bx: mp['B'] = encode(bt, B.shape, 2, bx['B'], cfg.dtype, pb, bp) if K else NO_MAP
            if 'C' in bx: mp['C'] = encode(C.data.ptr, C.shape, SIZE[cfg.out], bx['C'], cfg.out)
            a = [np.int32(M), np.int32(N), np.int32(K), None, mp.get('A', A), mp.get('B', B), None, C]
            if cfg.kernel in (20, 21): a.append(mp.get('C', NO_MAP))
            a += self.extra_args(case)
            self.args.append(a)
        self.grid = self.find_grid(M, N, K, sms)
        if cfg.kernel == 21:
            f = cp.full(132 * 2 * cfg.BM * cfg.BN, cp.nan, 'f4'); z = cp.zeros(2 * 132, 'i4')
            for a in self.args: a += [f, z, np.int32(cfg.sharers(M, N, K, self.sms))]
    def find_grid(self, M, N, K, sms):
        cfg = self.cfg
        if cfg.kernel not in (20, 21): return cfg.grid(M, N, K, sms)
        size = cfg.CM * cfg.CN * cfg.CK
        key = (cfg.shared, size)
        if key not in ACTIVE: ACTIVE[key] = max_clusters(self.k.f.ptr, size, cfg.threads, cfg.shared)
        self.sms = ACTIVE[key] * size
        return cfg.grid(M, N, K, self.sms)
    def extra_args(self, case): return []
    def run(self, i, alpha=1.0, beta=0.0):
        a = [*self.args[i]]; a[3] = np.float32(alpha); a[6] = np.float32(beta)
        for src, dst in self.packs[i]:
            r, c = src.shape
            launch(self.pk, (-(-c // 1024), min(r, 65535), 1), 128, [np.int32(r), np.int32(c), src, np.int32(dst.shape[1]), dst], 'pdl' in self.cfg.host)
        launch(self.k, self.grid, self.cfg.threads, a, 'pdl' in self.cfg.host)

class Attr(ctypes.Structure):
    _fields_ = [('id', ctypes.c_int), ('pad', ctypes.c_char * 4), ('value', ctypes.c_int * 16)]
PDL = Attr(); PDL.id = 6; PDL.value[0] = 1
def launch(k, grid, threads, args, pdl):
    grid = grid if isinstance(grid, tuple) else (grid, 1, 1)
    if not pdl: k.f(grid, (threads, 1, 1), tuple(args), shared_mem=k.shared); return
    keep = []
    for x in args:
        if isinstance(x, cp.ndarray): raw = np.uint64(x.data.ptr).tobytes()
        else: raw = x.tobytes()
        keep.append(ctypes.create_string_buffer(raw, len(raw)))
    ptrs = (ctypes.c_void_p * len(keep))(*[ctypes.addressof(q) for q in keep])
    c = LaunchConfig(); c.g[:] = grid; c.b[:] = (threads, 1, 1); c.shared = k.shared
    c.stream = cp.cuda.get_current_stream().ptr; c.attrs = ctypes.addressof(PDL); c.n = 1
    code = cu.cuLaunchKernelEx(ctypes.byref(c), ctypes.c_void_p(k.f.ptr), ptrs, None)
    if code: raise RuntimeError(f'cuLaunchKernelEx {code}')

class LtRun:
    def __init__(self, case, rival, i):
        self.c, self.r, self.i = case, rival, i
        self.p = [(A.data.ptr, B.data.ptr, C.data.ptr) for A, B, C in case.sets]
    def run(self, i, alpha=1.0, beta=0.0): self.r.run(self.i, *self.p[i], alpha, beta)

# ---------------------------------------------------------------- timing
try:
    import pynvml as nv; nv.nvmlInit(); H = nv.nvmlDeviceGetHandleByIndex(0)
except Exception as e: nv = None
STREAM = cp.cuda.Stream(non_blocking=True)
def graph(thing, n, sets):
    with STREAM:
        for i in range(min(2, sets)): thing.run(i % sets)
        STREAM.synchronize()
        STREAM.begin_capture()
        for i in range(n): thing.run(i % sets)
        g = STREAM.end_capture()
    return g
class Timed:
    def __init__(self, thing, sets, guess, unit_ms=5.0):
        self.thing = thing
        self.n = max(1, min(400, round(unit_ms * 1e-3 / guess)))
        if self.n > 1 and sets > 1: self.n = max(self.n, min(sets, 400))
        self.g = graph(thing, self.n, sets); self.samples = []; self.clocks = []; self.joules = []
    def turn(self, ms, energy=False):
        e0, e1 = cp.cuda.Event(), cp.cuda.Event()
        per = self.per if hasattr(self, 'per') else None
        reps = max(1, round(ms / (self.n * per * 1e3))) if per else 1
        if energy: STREAM.synchronize(); j0 = nv.nvmlDeviceGetTotalEnergyConsumption(H)
        e0.record(STREAM)
        for _ in range(reps): self.g.launch(STREAM)
        e1.record(STREAM)
        if nv and ms >= 10: 
            time.sleep(ms * 0.6e-3); self.clocks.append(nv.nvmlDeviceGetClockInfo(H, 1))
        e1.synchronize()
        if energy: self.joules.append((nv.nvmlDeviceGetTotalEnergyConsumption(H) - j0) * 1e-3 / (reps * self.n))
        s = cp.cuda.get_elapsed_time(e0, e1) * 1e-3 / (self.n * reps)
        if per is None: self.per = s
        else: self.samples.append(s)
        return s
    @property
    def med(self): return st.median(self.samples)

def probe(thing, sets):
    with STREAM:
        thing.run(0); thing.run(1 % sets)
        e0, e1 = cp.cuda.Event(), cp.cuda.Event(); e0.record(STREAM)
        for i in range(3): thing.run(i % sets)
        e1.record(STREAM); e1.synchronize()
    return cp.cuda.get_elapsed_time(e0, e1) * 1e-3 / 3

def best_of_lt(case, count=64, keep=1, unit=4.0):
    r = Rival(case.M, case.N, case.K, case.dtype, case.out, case.rows, count)
    got = []
    for i in range(len(r.algos)):
        t = LtRun(case, r, i)
        try: g = Timed(t, len(case.sets), probe(t, len(case.sets)), unit)
        except Exception as e: continue
        got.append((i, t, g))
    if not got: raise RuntimeError('no Lt algo')
    for rounds in range(2):
        for i, t, g in got:
            g.turn(1); g.turn(8)
    order = sorted(got, key=lambda x: x[2].samples[-1])
    return r, order, got[0]

def compare(case, cfgs, man, turn_ms=20, rounds=5, lts=3, energy=False, make=Ours, verbose=True):
    t0 = time.time()
    res = {'shape': (case.M, case.N, case.K), 'dtype': case.dtype, 'out': case.out, 'rows': case.rows, 'rows_': []}
    r, order, default = best_of_lt(case)
    n = len(case.sets)
    runs = {'LT': order[0][2]}
    if len(order) > 1 and lts > 1: runs['LT2'] = order[1][2]
    if default[0] != order[0][0]: runs['LTdef'] = default[2]
    # reference: Lt's own C, itself checked against f32
    A, B, C = case.sets[0]
    small = case.M * case.N <= 2**22
    ref = case.reference(0, 'f8') if small and case.M * case.N * case.K < 2**34 else None
    if ref is None:
        with STREAM: order[0][1].run(0)
        STREAM.synchronize(); ref = to_f(C, case.out, 'f8')
    tol = 4e-5 if case.out == 'float32' else (5e-3 if case.out == 'bfloat16' else 6e-4)
    for cfg in cfgs:
        try:
            t = make(cfg, man, case)
            poison(C, case.out); cp.cuda.runtime.deviceSynchronize()
            with STREAM: t.run(0)
            STREAM.synchronize()
            e = error(C, ref, case.out)
            if not e <= tol: print('WRONG', cfg.label, res['shape'], e, flush=True); res['rows_'].append(dict(key=cfg.key, wrong=e)); continue
            runs[cfg.label] = Timed(t, n, probe(t, n))
        except Exception as ex:
            print('FAILED', cfg.key, res['shape'], type(ex).__name__, str(ex)[:300], flush=True)
            if 'LAUNCH' in str(ex).upper() or 'ILLEGAL' in str(ex).upper(): raise
    del ref
    for x in runs.values():
        x.turn(1)
        for _ in range(2): x.per = x.turn(min(turn_ms, 30))
        x.samples.clear(); x.clocks.clear(); x.turn(turn_ms); x.samples.clear(); x.clocks.clear()
    names = list(runs)
    for k in range(rounds):
        for name in (names if k % 2 == 0 else names[::-1]): runs[name].turn(turn_ms, energy)
    base = runs['LT'].med
    table = sorted(runs.items(), key=lambda kv: kv[1].med)
    for name, x in table:
        res['rows_'].append(dict(key=name, us=x.med * 1e6, tf=case.flops / x.med / 1e12, ratio=base / x.med, mhz=st.median(x.clocks) if x.clocks else 0,
             j=st.median(x.joules) if x.joules else 0, spread=(max(x.samples) - min(x.samples)) / x.med))
    res['algos'] = len(r.algos); res['wall'] = time.time() - t0
    if verbose:
        print(f"== {case.M}x{case.N}x{case.K} {case.dtype[:4]}->{case.out[:4]} {'row' if case.rows else 'col'}  algos {len(r.algos)} wall {res['wall']:.1f}s", flush=True)
        for q in res['rows_'][:99]:
            if 'us' in q: print(f"  {q['key']:48s} {q['us']:9.2f} us {q['tf']:7.1f} TF  {q['ratio']:.3f}  {q['mhz']:.0f} MHz {q['j']*1e3:.1f} mJ sp {q['spread']:.3f}", flush=True)
    return res
