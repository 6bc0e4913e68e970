from plan9 import REQ, LLAMA
import rule
from spec import Cfg, Thin
from shapes import draw
HELD = [(s, {}) for s in draw(3, 24)]
def best2(s, kw):
    c = sorted(rule.candidates(*s, **kw), key=lambda x: rule.predict(x, *s))
    return c[:2]
def groups():
    cool = dict(turn_ms=20, rounds=6, lts=3); hot = dict(turn_ms=300, rounds=4, lts=3, energy=True)
    for s, kw in [*REQ, *LLAMA]:
        f = 2.0 * s[0] * s[1] * s[2]
        yield s, kw, best2(s, kw), (hot if f > 1e11 and s[0] % 2 == 0 else cool)
    for s, kw in HELD: yield s, kw, best2(s, kw), cool
def profile(): return ()
def jobs():
    seen = {}
    for s, kw, cfgs, o in groups():
        for c in cfgs: seen[c.key] = c.job
    return list(seen.values())
if __name__ == '__main__':
    for s, kw, cfgs, o in groups(): print(s, kw.get('dtype', ''), [c.label for c in cfgs])
