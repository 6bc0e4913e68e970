# mutants of 21 (small), counted: which are found
from emu import *
import spec; spec.LEAST = 1
from lib.ptx import mutants as mm
from lib.ptx.errors import Error
import time, sys
def study(cfg, shape, kw, budget=100):
    p = Problem(*shape, kw.get('alpha', 1.0), kw.get('beta', 0.0), cfg.dtype, cfg.out, "row" if cfg.rows else "column")
    file = FILES[cfg.kernel][0]
    comp = compile_source(Path(file).read_text(), cfg.expr, 'sm_90a', (), file, dynamic_bytes=cfg.shared)
    A, B, C0 = p.inputs(0); ref = p.reference(A, B, C0)
    t0 = time.time()
    for m in mm.mutants(comp.ptx, comp.name):
        found = None
        for s in mm.SETTINGS:
            C = C0.copy()
            mp = {k: encode({'A': A, 'B': B, 'C': C}[k], v, swizzle=128, l2_promotion=128) for k, v in cfg.boxes.items()}
            args = (*map(np.int32, shape), np.float32(p.alpha), mp.get('A', A), mp.get('B', B), np.float32(p.beta), C)
            if cfg.kernel in (20, 21): args += (mp.get('C', NO_MAP),)
            grid = cfg.grid(*shape, kw.get('sms', 132))
            if cfg.kernel == 21: args += (np.full(grid * 2 * cfg.BM * cfg.BN, np.nan, 'f4'), np.zeros(2 * grid, 'i4'), np.int32(cfg.sharers(*shape, kw.get('sms', 132))))
            try:
                f = ptx.Module(m.text, comp.arch).get_function(comp.name)
                l = f((grid, 1, 1), (cfg.threads, 1, 1), args, shared_mem=cfg.shared, races=True, trace=False, **s)
                v = p.judge(C, ref)
                if l.hazards or not v.ok: found = 'hazard' if l.hazards else 'wrong'; break
            except Error as e: found = type(e).__name__; break
        print('FOUND ' if found else 'MISSED', found, m.cuda and (Path(m.cuda[0]).name, m.cuda[1]), str(m)[:110], flush=True)
        if time.time() - t0 > budget: print('budget'); break
which = sys.argv[1]
if which == '17': study(Cfg(17,64,64,3), (64,64,320), {}, 200)
if which == '18': study(Cfg(18,128,64,3), (128,64,400), {}, 200)
if which == '19': study(Cfg(19,64,64,3,PP=True), (64,128,400), {}, 200)
if which == 'thin': study(Thin(128,64,2,1,2), (128,64,520), {}, 400)
if which == '21': study(Cfg(21,64,64,3,CM=2,PP=True,ST=0), (300,64,400), dict(sms=4), 300)
