from plan5 import *
import rule
from shapes import draw
REQ = [((s,) * 3, {}) for s in (512, 1024, 2048, 4096, 8192)] + [((16384, 16384, 1024), {}), ((128, 128, 16384), {}), ((4096, 128, 4096), {}), ((33, 4096, 4096), {}), ((1000,) * 3, {}), ((4095, 4097, 4093), {})]
REQ += [((s,) * 3, BF) for s in (2048, 4096, 8192)]
LLAMA = [((m, n, k), {}) for m in (16, 4096) for n, k in ((4096, 4096), (6144, 4096), (14336, 4096), (28672, 4096), (4096, 14336))]
def jobs():
    seen = {}
    for s, kw in [*REQ, *LLAMA, *((x, {}) for x in draw(1, 2)), ((8, 4, 8), {}), ((7, 7, 7), {}), ((64, 64, 64), BF)]:
        for c in rule.candidates(*s, **kw): seen[c.key] = c.job
    return list(seen.values())
def groups():
    k = dict(turn_ms=6, rounds=3)
    for s in (*draw(1, 24), (3000, 1000, 2000), (700, 6000, 3000), (768, 6144, 3072), (2048, 2048, 2048), (1500, 1500, 1500), (1000, 1000, 1000), (1024,)*3):
        yield s, {}, thin((192, 192, 4, 1, 1), (192, 192, 4, 2, 1), (192, 128, 5, 1, 1), (128, 192, 5, 1, 1), (64, 128, 8, 1, 4)), k
def profile(): return ()
def hot_groups():
    h = dict(turn_ms=500, rounds=3, lts=3, energy=True)
    yield (4096,) * 3, {}, [W(4), P(4), D(4)], h
    yield (4096,) * 3, BF, [W(4, **BF), W(6, **BF), P(6, **BF)], h
    yield (8192,) * 3, {}, [W(4), P(6)], h
    yield (8192,) * 3, BF, [W(4, **BF), P(6, **BF)], h
    yield (16384, 16384, 1024), {}, [P(6), P(16)], h
    yield (2048,) * 3, {}, [W(4), W1(4), D(4)], dict(turn_ms=100, rounds=5)
    yield (2048,) * 3, BF, [W(4, **BF), W1(4, **BF), D(4, **BF)], dict(turn_ms=100, rounds=5)
g0 = groups
def groups():
    yield from g0()
    yield from hot_groups()
j0 = jobs
def jobs():
    seen = {j[0]: j for j in j0()}
    for s, kw, cfgs, o in groups():
        for c in cfgs: seen[c.key] = c.job
    return list(seen.values())
