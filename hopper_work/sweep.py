import json, sys, time
from bench import *
import importlib; groups = importlib.import_module(sys.argv[2]).groups
man = json.loads((HERE / 'cubins' / 'manifest.json').read_text())
T0 = time.time(); allres = []
for (shape, kw, cfgs, opts) in groups():
    if time.time() - T0 > float(sys.argv[1]): print('out of time before', shape); break
    case = Case(*shape, **kw)
    cfgs = [c for c in cfgs if c.key in man]
    try: allres.append(compare(case, cfgs, man, **opts))
    except Exception as e:
        import traceback; traceback.print_exc(); print('GROUP FAILED', shape, e)
        break
    del case; cp.get_default_memory_pool().free_all_blocks()
    (OUT / 'results.json').write_text(json.dumps(allres))
print('total', time.time() - T0)
