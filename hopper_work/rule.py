"""Which instantiation of 21 a problem gets: the one with the least predicted time. No table of sizes."""
from spec import Cfg, Thin, SIZE, cd
SMS = 132
# Machine: cycles at about 1.7 GHz.
K0 = dict(power=2.45e-6, slope=20.58, sharp=4.0, narrow=1.436, cut=1.489, start=4200.0, persist=1852.0, cluster=612.7, wave=3461.0, store=0.098, l2=6478.0, ingest=70.6, dram=1894.0, split=2119.0, pp_idle=0.5, eff=0.944, latency=1500.0, lone=1.054, packs=3500.0, pack_bytes=1782.0, fit=1.0, misfit=1.35)

def candidates(M, N, K, dtype='float16', out='float32', rows=True):
    k = dict(dtype=dtype, out=out, rows=rows)
    st = (N * SIZE[out]) % 16 == 0
    WH = ('pdl', 'whole')
    G = lambda g: g
    c = [Cfg(21, 128, 256, 4, 4, 2, 1, ST=2 if st else 0, host=WH, **k), Cfg(21, 128, 192, 5, 6, 2, 1, PP=True, ST=1 if st else 0, host=WH, **k),
         Cfg(21, 128, 128, 6, 4, 2, 1, PP=True, ST=2 if st else 0, host=WH, **k), Cfg(21, 128, 256, 4, 4, 1, 1, ST=2 if st else 0, host=WH, **k)]
    c += [Thin(*x, **k) for x in THIN]
    return c
THIN = ((64, 64, 8, 1, 1), (64, 64, 8, 1, 2), (64, 64, 8, 1, 4), (64, 64, 8, 1, 8), (64, 128, 8, 1, 1), (64, 128, 4, 1, 1), (64, 128, 8, 2, 1), (128, 64, 8, 1, 1), (128, 128, 6, 1, 1), (128, 128, 3, 1, 1), (64, 256, 5, 1, 1), (128, 128, 6, 2, 1),
        (64, 128, 8, 1, 2), (64, 128, 8, 1, 4), (128, 192, 5, 1, 1), (128, 192, 5, 2, 1), (64, 192, 6, 1, 1), (192, 192, 4, 1, 1), (192, 192, 4, 2, 1), (192, 128, 5, 1, 1))

def predict(c, M, N, K, p=K0):
    """Cycles."""
    steps = cd(K, 64); thin = isinstance(c, Thin); CK = c.CK if thin else 1; CM, CN = c.CM, c.CN
    tm, tn = cd(M, c.BM * CM) * CM, cd(N, c.BN * CN) * CN
    tiles = tm * tn; s = cd(steps, CK); blocks = tiles * CK
    per_sm = min(227 * 1024 // (c.shared + 1024), 2048 // c.threads) if thin else 1
    rows = c.BM / CN + c.BN / CM                                    # rows of 128 bytes that a block asks of the L2, a step
    active = min(blocks, SMS * per_sm)
    busy = min(blocks, SMS)
    share = active / busy                                           # blocks that share an SM
    mma = c.BM * c.BN * 64 / 2048 / p['eff']
    if thin and c.BM == 64 or (not thin and c.PP and tiles <= SMS): mma *= p['lone'] if share < 1.5 else 1
    step = max(mma, (c.BM + c.BN) * 128 / p['ingest'], rows * 128 * busy / (p['fit'] * p['l2'])) * share
    misfit = (K * 2) % 128 != 0 or (N * 2) % 128 != 0 and c.rows
    if misfit: step = max(step, rows * 128 * p['misfit'] * busy / p['l2'] * share)
    waves = cd(blocks, SMS * per_sm)
    tail = p['store'] * c.BM * c.BN * (SIZE[c.out] / 4) * share
    once = s * step
    item = SIZE[c.out]
    if thin: t = p['start'] + waves * (once + p['wave'] + tail) + (p['cluster'] if CM * CK > 1 else 0) + (p['split'] + 150 * CK if CK > 1 else 0)
    elif c.PP: t = p['start'] + p['persist'] + p['cluster'] + waves * once + p['latency'] + 2 * tail + (0 if waves > 1 else 0)
    else: t = p['start'] + p['persist'] + (p['cluster'] if CM * CN > 1 else 0) + waves * (once + tail + p['latency'])
    # DRAM: A once, B once, C once; rows of tiles in flight decide nothing here
    bytes_ = (M * K + K * N) * 2 + M * N * item
    # partial sharing: few blocks can't draw the whole bandwidth
    inflight = active * c.S * (c.BM + c.BN) * 128 if thin else active * c.S * (c.BM + c.BN) * 128
    d = p['start'] + 1500 + bytes_ / p['dram'] * (p['narrow'] if c.BN < 128 and K * N > 4 * M * K else 1) * (p['cut'] if CK > 1 else 1)
    # Long products run at the clock that the power limit leaves: what a block asks of the L2 costs energy.
    w = 2.0 * M * N * K * p['power'] * (1 + p['slope'] * rows / (c.BM * c.BN))
    t = (t ** p['sharp'] + d ** p['sharp'] + w ** p['sharp']) ** (1 / p['sharp'])  # they overlap, not quite
    if K % 8 or (N % 8 if c.rows else K % 8):
        pb = (M * K * 2 if K % 8 else 0) + ((K * N * 2) if (N if c.rows else K) % 8 else 0)
        t += p['packs'] + 2 * pb / p['pack_bytes']
    return t

def choose(M, N, K, dtype='float16', out='float32', rows=True, p=K0):
    return min(candidates(M, N, K, dtype, out, rows), key=lambda c: predict(c, M, N, K, p))
