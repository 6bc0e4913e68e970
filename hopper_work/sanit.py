from bench import *
import rule
from spec import Cfg, Thin
man = json.loads((HERE / 'cubins' / 'manifest.json').read_text())
case = Case(300, 520, 200, least=1)
todo = [Cfg(17, 128, 256, 4), Cfg(18, 128, 256, 4), Cfg(19, 128, 256, 4), Cfg(19, 128, 128, 6, PP=True), Cfg(21, 128, 192, 5, 6, 2, 1, PP=True, ST=1), Cfg(21, 128, 256, 4, 4, 2, 1, ST=2), Thin(64, 128, 8, 2, 1, host=()), Thin(64, 64, 8, 1, 4, host=())]
import spec; spec.LEAST = 1
for c in todo:
    if c.key not in man: print('no', c.key); continue
    t = Ours(c, man, case); C = case.sets[0][2]; poison(C, case.out); cp.cuda.runtime.deviceSynchronize()
    with STREAM: t.run(0)
    STREAM.synchronize(); print(c.label, t.grid, error(C, case.reference(), case.out), flush=True)
odd = Case(131, 97, 133, least=1)
t = Ours(Thin(64, 128, 8, 1, 1, host=()), man, odd)
with STREAM: t.run(0)
STREAM.synchronize(); print('odd', error(odd.sets[0][2], odd.reference(), odd.out))
