import json, math, random, sys
from rule import *
from shapes import draw
HELD = set(draw(2, 24))
import rule
data = {}
for f in ('r3', 'r4', 'r5', 'r7', 'r8', 'r11', 'final1'):
    for r in json.load(open(f'results/{f}.json')):
        k = (*r['shape'], r['dtype'], r['out'], r['rows'])
        if f == 'final1' and tuple(r['shape']) in HELD: continue
        d = data.setdefault(k, {})
        lt = min(q['us'] for q in r['rows_'] if 'us' in q and q['key'].startswith('LT'))
        for q in r['rows_']:
            if 'us' in q: 
                n = 'LT' if q['key'].startswith('LT') else q['key']
                d.setdefault(n, []).append(q['us'] / lt)
data = {k: {n: sorted(v)[len(v) // 2] for n, v in d.items()} for k, d in data.items()}
def evaluate(p, show=False):
    tot = n = 0; worst = []
    for k, d in data.items():
        c = [x for x in candidates(*k) if x.label in d]
        if len(c) < 3: continue
        pick = min(c, key=lambda x: predict(x, *k[:3], p)); best = min(d[x.label] for x in c)
        r = math.log(d[pick.label] / best); tot += r + 3 * r * r; n += 1
        worst.append((r, k[:3], k[3][:1], pick.label, round(1 / d[pick.label], 3), round(1 / best, 3), min(c, key=lambda x: d[x.label]).label))
    if show:
        for w in sorted(worst, reverse=True): print(*w)
    return tot / n, n

import itertools
res=[]
for a,m,c,l in itertools.product((1,1.15,1.3,1.45),(1.1,1.35,1.6),(600,1100,1600),(1.054,1.2)):
    q=dict(K0, fit=a, misfit=m, cluster=c, lone=l); e,_=evaluate(q)
    k=(1024,1024,1024); pick=choose(*k, p=q).label
    res.append((round(e,4),a,m,c,l,pick, choose(16384,16384,1024,p=q).label[:14], choose(2048,2048,2048,p=q).label[:14]))
for r in sorted(res)[:14]: print(*r)
for r in sorted(x for x in res if 'm1k1' in x[5])[:6]: print('*',*r)
