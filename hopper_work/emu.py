"""Run one configuration in the emulator: emu(cfg, M, N, K, alpha, beta, sms=..., races, schedule, landing)"""
import sys, os
sys.path.insert(0, '.'); sys.path.insert(0, 'hopper_work')
os.chdir('.')
import numpy as np
from pathlib import Path
from lib import ptx
from lib.compiler import compile_source
from lib.problem import Problem
from lib.tensor_maps import encode
from spec import Cfg, Thin, FILES
NO_MAP = np.zeros(1, "V128")[0]
SETTINGS = ({}, {"landing": "late"}, {"schedule": "random", "landing": "late", "seed": 3}, {"schedule": "highest"})

def emu(cfg, M, N, K, alpha=1.0, beta=0.0, sms=132, races=True, seed=0, text=None, trace=False, **opt):
    p = Problem(M, N, K, alpha, beta, cfg.dtype, cfg.out, "row" if cfg.rows else "column")
    A, B, C = p.inputs(seed)
    file = FILES[cfg.kernel][0]
    comp = compile_source(text or Path(file).read_text(), cfg.expr, 'sm_90a', cfg.defs, file, dynamic_bytes=cfg.shared)
    boxes = cfg.boxes
    if (N * C.itemsize) % 16 and 'C' in boxes: raise ValueError('use ST=0')
    mp = {k: encode({'A': A, 'B': B, 'C': C}[k], v, swizzle=128, l2_promotion=128) if K or k == 'C' else NO_MAP for k, v in boxes.items()}
    ints = tuple(map(np.int32, (M, N, K)))
    args = (*ints, np.float32(alpha), mp.get('A', A), mp.get('B', B), np.float32(beta), C)
    if cfg.kernel in (20, 21): args += (mp.get('C', NO_MAP),)
    grid = cfg.grid(M, N, K, sms)
    if cfg.kernel == 21: args += (np.full(grid * 2 * cfg.BM * cfg.BN, np.nan, 'f4'), np.zeros(2 * grid, 'i4'), np.int32(cfg.sharers(M, N, K, sms)))
    ref = p.reference(A, B, C)
    f = ptx.Module(comp.ptx, comp.arch).get_function(comp.name)
    l = f((grid, 1, 1), (cfg.threads, 1, 1), args, shared_mem=cfg.shared, races=races, trace=trace, **opt)
    v = p.judge(C, ref)
    if cfg.kernel == 21: assert not args[-2].any(), 'arrivals'
    return v, l

def check(cfg, *shape, settings=SETTINGS, **kw):
    import time
    for s in settings:
        t = time.time()
        try:
            v, l = emu(cfg, *shape, **kw, **s)
            bad = (not v.ok) or l.hazards
            print('BAD' if bad else 'ok ', cfg.key, shape, {k: x for k, x in kw.items() if k != 'text'}, s, str(v), f'{time.time()-t:.1f}s', flush=True)
            for h in (l.hazards or [])[:3]: print('    ', h)
        except Exception as e:
            print('EXC', cfg.key, shape, kw, s, type(e).__name__, str(e)[:800], flush=True)
