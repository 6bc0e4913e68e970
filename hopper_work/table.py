import json, sys, math
R=json.load(open(sys.argv[1])); held=[]
import final
picks={}
for s,kw,cfgs,o in final.groups(): picks[(*s,kw.get('dtype','float16'))]=[c.label for c in cfgs]
heldset={s for s,_ in final.HELD}
logs=[];hl=[]
for r in R:
    s=tuple(r['shape']); rows={q['key']:q for q in r['rows_'] if 'us' in q}
    lt=[(q['us'],n) for n,q in rows.items() if n.startswith('LT')]; best=min(lt)
    d=rows.get('LTdef') or min((rows[n] for _,n in lt), key=lambda q:q['us']) 
    p=picks[(*s,r['dtype'])]
    a=rows.get(p[0]); b=rows.get(p[1])
    if not a: print(s,'MISSING',p); continue
    ra=best[0]/a['us']
    print(f"{'x'.join(map(str,s)):18s} {r['dtype'][:4]} ours {a['us']:8.1f}us {a['tf']:6.1f}TF | def {d['us']:8.1f} | best {best[0]:8.1f} {rows[best[1]]['tf']:6.1f}TF | ratio {ra:.3f} (2nd {best[0]/b['us'] if b else 0:.3f}) {a['j']*1e3:.0f}/{rows[best[1]]['j']*1e3:.0f} mJ {p[0]} wrong={[q['key'] for q in r['rows_'] if 'wrong' in q]}")
    (hl if s in heldset else logs).append((ra, s, r['dtype']))
for n,l in (('required',[x for x in logs]),('required fp16',[x for x in logs if x[2]=='float16']),('held',hl),('all fp16',[x for x in logs+hl if x[2]=='float16'])):
    print(n, len(l), 'geomean', round(math.exp(sum(math.log(x[0]) for x in l)/len(l)),3), 'least', min(l))
