"""Compile a list of instantiations to cubins: build.py OUT spec.json -> OUT/*.cubin, OUT/manifest.json"""
import sys, json, re, hashlib, os
from pathlib import Path
sys.path.insert(0, '.')
os.chdir('.')
from concurrent.futures import ProcessPoolExecutor

def one(job):
    from lib import compiler
    from lib.compiler import compile_nvrtc, toolkit_includes, INCLUDE, nvrtc_version
    key, file, expr, defs = job
    text = Path(file).read_text()
    opts = ["-arch=sm_90a", "--ptxas-options=-v", "--std=c++17", "-lineinfo", f"-I{INCLUDE}", *toolkit_includes(), "-no-cache", *defs]
    m = compile_nvrtc(text, [expr], opts, Path(file).name)
    log = m.log
    regs = re.search(r"Used (\d+) registers", log); sp = re.search(r"(\d+) bytes spill stores", log)
    warn = [l for l in log.splitlines() if 'C75' in l or 'arning' in l or 'erializ' in l]
    return key, m.names[0], m.cubin, int(regs[1]), int(sp[1]) if sp else 0, warn

def build(jobs, out):
    out = Path(out); out.mkdir(parents=True, exist_ok=True)
    mf = out / 'manifest.json'
    old = json.loads(mf.read_text()) if mf.exists() else {}
    inc = ''.join(p.read_text() for p in sorted(Path('cuda/include').glob('*.cuh')))
    todo, manifest = [], {}
    for key, file, expr, defs in jobs:
        h = hashlib.sha1((Path(file).read_text() + inc + expr + repr(defs)).encode()).hexdigest()[:16]
        if key in old and old[key]['hash'] == h and (out / old[key]['cubin']).exists():
            manifest[key] = old[key]
        else:
            todo.append(((key, file, expr, defs), h))
    with ProcessPoolExecutor(2) as ex:
        futs = [(ex.submit(one, j), j, h) for j, h in todo]
        for f, j, h in futs:
            try:
                key, name, cubin, regs, spill, warn = f.result()
            except Exception as e:
                print('FAILED', j[0], str(e)[:1500]); continue
            (out / f'{h}.cubin').write_bytes(cubin)
            manifest[key] = dict(hash=h, cubin=f'{h}.cubin', name=name, regs=regs, spill=spill, expr=j[2])
            if spill or warn or len(todo) < 12: print(key, 'regs', regs, 'spill', spill, *warn, sep='  ', flush=True)
    mf.write_text(json.dumps(manifest, indent=1))
    used = {m['cubin'] for m in manifest.values()}
    for p in out.glob('*.cubin'):
        if p.name not in used: p.unlink()
    return manifest
