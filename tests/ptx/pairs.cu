// A GEMM for pairs of blocks on Blackwell (sm_100a): each block loads half of A and half of B, one
// thread multiplies for both, and each stores its own half of the tile.
//
// C = A B, of whole tiles of 256 x BN, B by columns. Launch: clusters of 2 blocks of 128 threads, two
// blocks a tile, dynamic shared memory for STAGES tiles and 1024 bytes. Boxes: A (128, 64), B (BN/2, 64),
// swizzled by 128 bytes.
#include <cuda_fp16.h>

#include "mbarrier.cuh"
#include "tma.cuh"

// By the mask, CUTLASS's, both blocks' bytes are counted at the barrier of the first.
__device__ inline void pair_load(unsigned to, const TensorMap& map, unsigned barrier, int row, int k)
{
    asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier"
                 "::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(to), "l"(&map), "r"(k), "r"(row), "r"(barrier & 0xFEFFFFFF) : "memory");
}

__device__ inline unsigned long long descriptor(unsigned address)
{
    return (address & 0x3FFFF) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 46 | 2ull << 61;
}

template <int BN>
__device__ inline void pair_mma(unsigned d, unsigned long long a, unsigned long long b, bool adds)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %4, 0;\n"
                 "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;\n}\n"
                 ::"r"(d), "l"(a), "l"(b), "r"(1u << 4 | BN / 8u << 17 | 256u / 16 << 24),
                   "r"(unsigned(adds)) : "memory");
}

__device__ inline void pair_commit(unsigned barrier)
{
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
                 ".multicast::cluster.b64 [%0], %1;"
                 ::"r"(barrier), "h"((unsigned short)3) : "memory");
}

__device__ inline void both()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

template <int BN, int STAGES>
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128, 1)
pair_gemm(int N, int K, const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B,
          float* C)
{
    constexpr int A_BYTES = 128 * 128, BYTES = A_BYTES + BN / 2 * 128;
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES + 1];
    __shared__ unsigned tensor;
    const unsigned tiles = (shared_address(storage) + 1023) / 1024 * 1024;
    const unsigned filled = shared_address(barriers), freed = filled + 8 * STAGES;
    const unsigned ready = freed + 8 * STAGES;
    const int rank = blockIdx.x % 2, tile = blockIdx.x / 2, across = N / BN;
    const int m = tile / across * 256 + rank * 128, n = tile % across * BN;
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), lane = threadIdx.x % 32;

    if (threadIdx.x == 0) {
        for (int i = 0; i < 2 * STAGES + 1; ++i) mbarrier_init(filled + 8 * i, 1);
        mbarrier_init_fence();
    }
    both();  // the barriers are there, and the other block runs
    if (warp == 1)
        asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;"
                     ::"r"(shared_address(&tensor)), "n"(BN) : "memory");
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    both();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    const unsigned sums = tensor;

    if (warp == 0 && lane == 0) {
        for (int k = 0, i = 0; k < K; k += 64, ++i) {
            const int stage = i % STAGES;
            const unsigned a = tiles + stage * BYTES, arrival = filled + 8 * stage;
            mbarrier_wait(freed + 8 * stage, (i / STAGES + 1) & 1);
            if (rank == 0) mbarrier_expect(arrival, 2 * BYTES);
            pair_load(a, A, arrival, m, k);
            pair_load(a + A_BYTES, B, arrival, n + rank * BN / 2, k);
        }
        for (int i = K / 64; i < K / 64 + STAGES; ++i)  // the last commits arrive in both blocks
            mbarrier_wait(freed + 8 * (i % STAGES), (i / STAGES + 1) & 1);
    } else if (warp == 1 && lane == 0 && rank == 0) {
        for (int i = 0; i < K / 64; ++i) {
            const int stage = i % STAGES;
            const unsigned a = tiles + stage * BYTES;
            mbarrier_wait(filled + 8 * stage, i / STAGES & 1);
            asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
            for (int k = 0; k < 64; k += 16)
                pair_mma<BN>(sums, descriptor(a + k * 2), descriptor(a + A_BYTES + k * 2), i || k);
            pair_commit(freed + 8 * stage);
        }
        pair_commit(ready);
    }
    __syncwarp();
    mbarrier_wait(ready, 0);
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    for (int j = 0; j < BN; ++j) {
        float value;
        asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];\n"
                     "tcgen05.wait::ld.sync.aligned;"
                     : "=f"(value) : "r"(sums + j + (warp * 32 << 16)) : "memory");
        C[size_t(m + threadIdx.x) * N + n + j] = value;
    }
    both();
    if (warp == 1)
        asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;"
                     ::"r"(sums), "n"(BN) : "memory");
}
