// Warp-specialised GEMM for sm_90a, as small as it can be: C = A B^T, A (M, K) and B (N, K) in half
// precision and row-major, C (M, N) float. One producer warp feeds a ring of three stages by TMA;
// two consumer warpgroups run wgmma m64n128k16, each on 64 rows of the 128 x 128 tile. In pair_gemm
// two blocks of a cluster share the tile of B: each loads half of it for both.
// SKIP_EXPECT leaves out the bytes that a copy brings, for a test of what is said then.

struct alignas(64) TensorMap { char bytes[128]; };

constexpr int BM = 128, BN = 128, BK = 64, STAGES = 3, CONSUMERS = 2;

__device__ inline unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ inline void init(unsigned barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}

__device__ inline void expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

__device__ inline void arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ inline void wait(unsigned barrier, unsigned parity) {
    asm volatile(
        "{\n"
        ".reg .pred P1;\n"
        "LAB_WAIT:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
        "@P1 bra DONE;\n"
        "bra LAB_WAIT;\n"
        "DONE:\n"
        "}\n" ::"r"(barrier), "r"(parity) : "memory");
}

__device__ inline void load(unsigned to, const TensorMap* map, unsigned barrier, int x, int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4}], [%2];" ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y) : "memory");
}

// K-major with the 128-byte swizzle: eight rows of 128 bytes are 1024 bytes.
__device__ inline unsigned long long descriptor(unsigned address) {
    return (unsigned long long)((address & 0x3FFFF) >> 4) | (1ull << 16) | (64ull << 32) |
           (1ull << 62);
}

__device__ inline void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ inline void wait_group() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

#define D8(i) "+f"(d[i]), "+f"(d[i+1]), "+f"(d[i+2]), "+f"(d[i+3]), "+f"(d[i+4]), "+f"(d[i+5]), \
    "+f"(d[i+6]), "+f"(d[i+7])

__device__ inline void mma(float (&d)[64], unsigned long long a, unsigned long long b, int keep) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, p, 1, 1, 0, 0;\n"
        "}\n"
        : D8(0), D8(8), D8(16), D8(24), D8(32), D8(40), D8(48), D8(56)
        : "l"(a), "l"(b), "r"(keep));
}

// The accumulators of m64n128: row and column of each of a lane's 64 values.
__device__ inline void store(const float (&d)[64], float* C, int row, int column, int M, int N) {
    int lane = threadIdx.x % 32, first = row + threadIdx.x % 128 / 32 * 16 + lane / 4;
    for (int i = 0; i < 64; ++i) {
        int y = first + i / 2 % 2 * 8, x = column + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (y < M && x < N) C[(size_t)y * N + x] = d[i];
    }
}

__global__ void __launch_bounds__(288) gemm(const __grid_constant__ TensorMap a_map,
                                            const __grid_constant__ TensorMap b_map, float* C,
                                            int M, int N, int K) {
    extern __shared__ __align__(1024) unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    constexpr int A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2;
    unsigned a = shared_address(storage), b = a + STAGES * A_BYTES;
    unsigned ready = shared_address(full), free = shared_address(empty);
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            init(ready + 8 * s, 1);
            init(free + 8 * s, CONSUMERS);
        }
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    int tiles = (K + BK - 1) / BK, row = blockIdx.y * BM, column = blockIdx.x * BN;
    if (threadIdx.x >= 256) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 256) {
            for (int t = 0; t < tiles; ++t) {
                int s = t % STAGES, round = t / STAGES;
                wait(free + 8 * s, (round & 1) ^ 1);
#ifdef SKIP_EXPECT
                arrive(ready + 8 * s);
#else
                expect(ready + 8 * s, A_BYTES + B_BYTES);
#endif
                load(a + s * A_BYTES, &a_map, ready + 8 * s, t * BK, row);
                load(b + s * B_BYTES, &b_map, ready + 8 * s, t * BK, column);
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        int group = threadIdx.x / 128;
        float d[64];
        for (int i = 0; i < 64; ++i) d[i] = 0;
        for (int t = 0; t < tiles; ++t) {
            int s = t % STAGES, round = t / STAGES;
            wait(ready + 8 * s, round & 1);
            fence();
            for (int k = 0; k < BK; k += 16)
                mma(d, descriptor(a + s * A_BYTES + group * 64 * 128 + 2 * k),
                    descriptor(b + s * B_BYTES + 2 * k), 1);
            commit();
            wait_group<0>();
            if (threadIdx.x % 128 == 0) arrive(free + 8 * s);
        }
        store(d, C, row + group * 64, column, M, N);
    }
}

__device__ inline unsigned rank() {
    unsigned r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

__device__ inline void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;"
                 ::: "memory");
}

__device__ inline void arrive_at(unsigned barrier, unsigned rank) {
    asm volatile(
        "{\n"
        ".reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
        "}\n" ::"r"(barrier), "r"(rank) : "memory");
}

__device__ inline void load_for(unsigned to, const TensorMap* map, unsigned barrier, int x, int y,
                                unsigned short mask) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;"
        ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(mask) : "memory");
}

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(288)
    pair_gemm(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
              float* C, int M, int N, int K) {
    extern __shared__ __align__(1024) unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    constexpr int A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2;
    unsigned a = shared_address(storage), b = a + STAGES * A_BYTES;
    unsigned ready = shared_address(full), free = shared_address(empty);
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            init(ready + 8 * s, 1);
            init(free + 8 * s, 2 * CONSUMERS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster_barrier();
    int tiles = (K + BK - 1) / BK, row = blockIdx.x * BM, column = blockIdx.y * BN;
    if (threadIdx.x >= 256) {
        if (threadIdx.x == 256) {
            int half = rank() * (BN / 2);
            for (int t = 0; t < tiles; ++t) {
                int s = t % STAGES, round = t / STAGES;
                wait(free + 8 * s, (round & 1) ^ 1);
                expect(ready + 8 * s, A_BYTES + B_BYTES);
                load(a + s * A_BYTES, &a_map, ready + 8 * s, t * BK, row);
                load_for(b + s * B_BYTES + half * 128, &b_map, ready + 8 * s, t * BK,
                         column + half, 3);
            }
        }
    } else {
        int group = threadIdx.x / 128;
        float d[64];
        for (int t = 0; t < tiles; ++t) {
            int s = t % STAGES, round = t / STAGES;
            wait(ready + 8 * s, round & 1);
            fence();
            for (int k = 0; k < BK; k += 16)
                mma(d, descriptor(a + s * A_BYTES + group * 64 * 128 + 2 * k),
                    descriptor(b + s * B_BYTES + 2 * k), t + k > 0);
            commit();
            wait_group<0>();
            if (threadIdx.x % 128 < 2) arrive_at(free + 8 * s, threadIdx.x % 128);
        }
        store(d, C, row + group * 64, column, M, N);
    }
    cluster_barrier();
}
