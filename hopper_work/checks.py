"""Correctness on a GPU: ragged shapes, alpha and beta, poison, repeated bits; each against float64."""
from bench import *
import rule
BENCH_DRAW = draw
man = json.loads((HERE / 'cubins' / 'manifest.json').read_text())
BF = dict(dtype='bfloat16', out='bfloat16', rows=False)
import plan9; from plan9 import Cfg, Thin, W, P
K1 = lambda **k: [Cfg(17, 128, 256, 4, **k), Cfg(18, 128, 256, 4, **k), Cfg(19, 128, 256, 4, **k), Cfg(19, 128, 128, 6, **k), Cfg(19, 128, 128, 6, PP=True, **k)]
bad = n = 0
for kw in ({}, BF):
    for s in ((1, 8, 8), (129, 264, 72), (333, 1000, 520), (2049, 776, 136), (640, 2048, 4104), (31, 97, 1003), (257, 129, 65), (5, 8, 0)):
        case = Case(*s, **kw, least=1)
        for c in [*rule.candidates(*s, **kw), *K1(**kw), W(4, host=('pdl',), **kw), P(4, host=('pdl',), **kw)]:
            if c.key not in man: continue
            if c.kernel in (17, 18, 19, 20) and (s[2] % 8 or (s[1] if case.rows else s[2]) % 8): continue
            if c.kernel in (20, 21) and c.ST and s[1] * SIZE[c.out] % 16: continue
            t = Ours(c, man, case)
            for al, be in ((1.0, 0.0), (0.5, -2.0)):
                C = case.sets[0][2]; got = []
                C0 = BENCH_DRAW(s[0], s[1], case.out, cp.random.default_rng(3))
                for rep in range(2):
                    if be: C[...] = C0
                    else: poison(C, case.out)
                    cp.cuda.runtime.deviceSynchronize()
                    with STREAM: t.run(0, al, be)
                    STREAM.synchronize(); got.append(C.copy())
                ref = al * case.reference() + (be * to_f(C0, case.out, 'f8') if be else 0)
                e = error(C, ref, case.out); n += 1
                same = bool((got[0].view('u1') == got[1].view('u1')).all())
                if not (e <= (2e-6 if case.out == 'float32' else 4e-3)) or not same: bad += 1; print('BAD', c.label, s, al, be, e, same, flush=True)
        del case
print('checks', n, 'bad', bad)
