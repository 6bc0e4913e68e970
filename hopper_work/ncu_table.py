import csv, json, sys, io
text = open(sys.argv[1]).read(); names = json.load(open(sys.argv[2]))
lines = text.splitlines(); i = next(k for k, l in enumerate(lines) if l.startswith('"ID"'))
rows = list(csv.DictReader(io.StringIO('\n'.join(lines[i:]))))[1:]
k = 0
# an LT may be several kernels; ours one (or as named)
it = iter(rows); 
print(len(rows), 'kernels', len(names), 'names')
g = lambda r, m: float(r[m].replace(',', ''))
for r in rows:
    print(f"{r['Kernel Name'][:90]:90s} cyc {g(r,'sm__cycles_elapsed.max'):11.0f} tensor {g(r,'sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed'):5.1f} L2 {g(r,'lts__t_bytes.sum')/1e9:7.3f} DRAM r {g(r,'dram__bytes_read.sum')/1e9:6.3f} w {g(r,'dram__bytes_write.sum')/1e9:6.3f} us {g(r,'gpu__time_duration.sum')/1e3:.1f}")
for n in names: print(n)
