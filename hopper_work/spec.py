"""What each kernel's launch asks: expression, grid, block, shared bytes, boxes. Self-contained."""
from dataclasses import dataclass, field, asdict, replace
CU = {"float16": "half", "bfloat16": "__nv_bfloat16", "float32": "float"}
SIZE = {"float16": 2, "bfloat16": 2, "float32": 4}
FILES = {17: ("cuda/17_wgmma.cu", "wgmma_tiles"), 18: ("cuda/18_tma.cu", "tma_ring"),
         19: ("cuda/19_warp_specialization.cu", "warp_specialization"),
         20: ("cuda/20_hopper_limit.cu", "hopper_limit"), 21: ("cuda/21_every_shape.cu", "every_shape"), 22: ("cuda/21_every_shape.cu", "split_tile")}

cd = lambda a, b: -(-a // b)
LEAST = 8  # steps that a share of a cut tile has at least
@dataclass(frozen=True)
class Thin:
    """split_tile of 21: BM, BN, S stages, CM sharing B, CK sharing K."""
    BM: int = 64
    BN: int = 128
    S: int = 6
    CM: int = 1
    CK: int = 1
    dtype: str = "float16"
    out: str = "float32"
    rows: bool = True
    host: tuple = ('pdl',)
    defs: tuple = ()
    kernel = 22
    CN = 1
    ST = 0
    extra = ()
    @property
    def key(self):
        t = {"float16": "h", "bfloat16": "b", "float32": "s"}
        return f"thin_{self.BM}x{self.BN}x{self.S}_m{self.CM}k{self.CK}_{t[self.dtype]}{t[self.out]}{'r' if self.rows else 'c'}"
    @property
    def label(self): return self.key + ''.join('+' + h for h in self.host)
    @property
    def expr(self): return f"split_tile<{CU[self.dtype]}, {CU[self.out]}, {self.BM}, {self.BN}, {self.S}, {str(self.rows).lower()}, {self.CM}, {self.CK}>"
    @property
    def job(self): return (self.key, FILES[21][0], self.expr, [])
    @property
    def threads(self): return 2 * self.BM + 32
    @property
    def shared(self): return self.S * (self.BM + self.BN) * 128 + 1024
    @property
    def boxes(self): return {"A": (self.BM, 64), "B": (64 // self.CM, 64) if self.rows else (self.BN // self.CM, 64)}
    def grid(self, M, N, K, sms=132): return cd(M, self.BM * self.CM) * cd(N, self.BN) * self.CM * self.CK

@dataclass(frozen=True)
class Cfg:
    kernel: int
    BM: int = 128
    BN: int = 128
    S: int = 4
    G: int = 8
    CM: int = 1
    CN: int = 1
    CK: int = 1
    IF: int = 1
    ST: int = 2
    PP: bool = False
    dtype: str = "float16"
    out: str = "float32"
    rows: bool = True
    extra: tuple = ()
    defs: tuple = ()
    host: tuple = ()  # 'pdl', 'p256': how it is launched

    @property
    def key(self):
        b = f"{self.kernel}_{self.BM}x{self.BN}x{self.S}"
        if self.kernel >= 20:
            b += f"_c{self.CM}{self.CN}" + (f"{self.CK}" if self.kernel > 20 else "") + f"_i{self.IF}t{self.ST}{'pp' if self.PP else 'co'}"
        elif self.kernel == 19: b += 'pp' if self.PP else 'co'
        b += f"_g{self.G}"
        if self.extra: b += "_e" + "-".join(map(str, self.extra))
        t = {"float16": "h", "bfloat16": "b", "float32": "s"}
        return b + f"_{t[self.dtype]}{t[self.out]}{'r' if self.rows else 'c'}" + "".join(d.replace('-D', '_') for d in self.defs)

    @property
    def label(self): return self.key + ''.join('+' + h for h in self.host)

    @property
    def expr(self):
        T, TC = CU[self.dtype], CU[self.out]
        b = lambda x: str(bool(x)).lower()
        a = [T, TC, self.BM, self.BN, self.S, b(self.rows), self.G]
        if self.kernel == 19: a += [b(self.PP)]
        if self.kernel == 20: a += [self.CM, self.CN, self.IF, self.ST, b(self.PP)]
        if self.kernel == 21: a += [self.CM, self.CN, self.ST, b(self.PP)]
        a += [b(x) if isinstance(x, bool) else x for x in self.extra]
        return f"{FILES[self.kernel][1]}<{', '.join(map(str, a))}>"

    @property
    def job(self): return (self.key, FILES[self.kernel][0], self.expr, list(self.defs))

    @property
    def threads(self): return 2 * self.BM if self.kernel in (17, 18) else 384

    @property
    def shared(self):
        s = self.S * (self.BM + self.BN) * 128 + 1024
        if self.kernel >= 20: s += 2 * self.ST * 8192
        return s

    @property
    def boxes(self):
        if self.kernel == 17: return {}
        b = {"A": (self.BM // self.CN, 64), "B": (64 // self.CM, 64) if self.rows else (self.BN // self.CM, 64)}
        if self.kernel >= 20 and self.ST: b["C"] = (64, 128 // SIZE[self.out])
        return b

    def sharers(self, M, N, K, sms=132):
        if self.kernel != 21 or 'whole' in self.host: return 0
        clusters = sms // (self.CM * self.CN); steps = cd(K, 64)
        rest = cd(M, self.BM * self.CM) * cd(N, self.BN * self.CN) % clusters
        q = min(clusters, rest * steps // LEAST)
        return q if q > rest else 0

    def grid(self, M, N, K, sms=132):
        if self.kernel in (17, 18): return cd(M, self.BM) * cd(N, self.BN)
        if self.kernel == 19: return cd(cd(M, self.BM) * cd(N, self.BN), 2)
        c = self.CM * self.CN * self.CK
        t = cd(M, self.BM * self.CM) * cd(N, self.BN * self.CN)
        return min(max(t, self.sharers(M, N, K, sms)), sms // c) * c
