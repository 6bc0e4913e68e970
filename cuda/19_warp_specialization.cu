// 17: machines of their own copy and multiply; the warps only say what and when.
//
// Changes:    the copy engine (TMA) brings tiles, already swizzled, for one thread's request; wgmma
//             multiplies them from shared memory, four warps at once. One warp asks for tiles, two
//             warpgroups ask for products, and mbarriers tell each of the other's progress.
// Bottleneck: 16's mma instruction, and the registers and issue slots that its copies, its address
//             arithmetic and its fragments of A and B cost.
// Launch:     grid ceil(M / BM) * ceil(N / BN), block 384, dynamic shared memory for STAGES tiles
//             and 1024 bytes. Rows of A and of B must be multiples of 16 bytes.
// Runs on:    sm_90a.
//
// T, TC:      type of A and B, half or __nv_bfloat16; type of C: float, or T.
// STAGES:     tiles in the ring.
// B_BY_ROWS:  B is row-major, and its tiles come as slabs of 64 columns. Otherwise column-major.
// GROUP:      rows of tiles in a band of the raster.
#include "mbarrier.cuh"
#include "pairs.cuh"
#include "raster.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int GROUP>
__global__ void __launch_bounds__(384, 1)
tma_wgmma(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
          const __grid_constant__ TensorMap B, float beta, TC* C)
{
    constexpr int BK = 64;  // elements in a row of 128 bytes, the span of the swizzle
    constexpr int CONSUMERS = 2, ROWS = BM / CONSUMERS;  // warpgroups, and a warpgroup's rows
    constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2;
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    const unsigned As = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned Bs = As + STAGES * A_BYTES;
    const unsigned filled = shared_address(full), freed = shared_address(empty);
    const int2 tile = raster<GROUP>(blockIdx.x, (M + BM - 1) / BM, (N + BN - 1) / BN);
    const int row0 = tile.x * BM, col0 = tile.y * BN, steps = (K + BK - 1) / BK;
    // The same for all lanes of a warp, and known to be so.
    const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    TIMELINE_BEGIN;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier_init(filled + 8 * s, 1);         // the producer, and the bytes it announces
            mbarrier_init(freed + 8 * s, CONSUMERS);  // one thread of each
        }
        mbarrier_init_fence();
    }
    __syncthreads();

    Ring<STAGES> ring;
    if (warpgroup == CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == CONSUMERS * 128) {
            for (int k = 0; k < K; k += BK, ring.next()) {
                const unsigned arrival = filled + 8 * ring.stage;
                MARK(WAIT);
                mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
                MARK(LOAD);
                mbarrier_expect(arrival, A_BYTES + B_BYTES);
                tma_load(As + ring.stage * A_BYTES, A, arrival, row0, k);
                const unsigned b = Bs + ring.stage * B_BYTES;
                if constexpr (B_BY_ROWS) {
#pragma unroll
                    for (int n = 0; n < BN; n += 64)
                        tma_load(b + n * BK * 2, B, arrival, k, col0 + n);
                } else {
                    tma_load(b, B, arrival, col0, k);
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float sum[ROWS / 64][BN / 2] = {};
        for (int step = 0; step < steps; ++step, ring.next()) {
            MARK(WAIT);
            mbarrier_wait(filled + 8 * ring.stage, ring.parity);
            MARK(COMPUTE);
            const unsigned a = As + ring.stage * A_BYTES + warpgroup * ROWS * 128;
            const unsigned b = Bs + ring.stage * B_BYTES;
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < BK; k += 16)
#pragma unroll
                for (int i = 0; i < ROWS / 64; ++i)
                    wgmma<BN, T, B_BY_ROWS>(sum[i], k_major(a + i * 64 * 128 + k * 2),
                                            B_BY_ROWS ? n_major(b + k * 128, BK)
                                                      : k_major(b + k * 2));
            wgmma_commit();
            wgmma_wait<0>();
            if (threadIdx.x % 128 == 0) mbarrier_arrive(freed + 8 * ring.stage);
        }

        MARK(STORE);
        const int row = row0 + warpgroup * ROWS + threadIdx.x / 32 % 4 * 16;
#pragma unroll
        for (int i = 0; i < ROWS / 64; ++i)
            update_fragment(C, M, N, row + i * 64, col0, alpha, sum[i], beta);
    }
    TIMELINE_END;
}
