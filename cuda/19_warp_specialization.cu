// 19: warp specialization: a producer warpgroup loads, two consumer warpgroups multiply.
//
// Changes:    the producer does nothing but keep the ring full, and setmaxnreg moves its registers
//             to the consumers. A block has two tiles of C: both consumers work on each of them,
//             half of the rows each (cooperative), or each takes one, in turn, so that one stores
//             while the other multiplies (ping-pong).
// Bottleneck: 18's thread 0, which waits for the slowest warpgroup before it may request the next
//             tile, and delays its own warpgroup's products meanwhile.
// Launch:     grid ceil(ceil(M / BM) * ceil(N / BN) / 2), block 384, dynamic shared memory for
//             STAGES tiles and 1024 bytes. Rows of A and B must be multiples of 16 bytes and
//             so aligned. Boxes: A (BM, 64); B by rows (64, 64), by columns (BN, 64).
// Runs on:    sm_90a.
//
// T, TC:      type of A and B, half or __nv_bfloat16; type of C: float, or T.
// STAGES:     tiles in the ring.
// B_BY_ROWS:  B is row-major, and its tiles come as slabs of 64 columns. Otherwise column-major.
// GROUP:      rows of tiles in a band of the raster.
// PING_PONG:  the consumers take a tile each. Otherwise each has half of the rows of both.
#include "barrier.cuh"
#include "mbarrier.cuh"
#include "pairs.cuh"
#include "raster.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int GROUP, bool PING_PONG>
__global__ void __launch_bounds__(384, 1)
warp_specialization(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
                    const __grid_constant__ TensorMap B, float beta, TC* C)
{
    constexpr int BK = 64;  // elements in a row of 128 bytes, the span of the swizzle
    constexpr int CONSUMERS = 2, TILES = 2, TURNS = PING_PONG ? CONSUMERS : 1;
    constexpr int ROWS = PING_PONG ? BM : BM / CONSUMERS;  // of a tile, for each warpgroup
    constexpr int A_BYTES = BM * BK * 2, STAGE_BYTES = A_BYTES + BK * BN * 2;
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    const unsigned tiles = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned filled = shared_address(full), freed = shared_address(empty);
    const int tiles_m = (M + BM - 1) / BM, tiles_n = (N + BN - 1) / BN, steps = (K + BK - 1) / BK;
    const int first = blockIdx.x * TILES, last = min(first + TILES, tiles_m * tiles_n);
    // The same for all lanes of a warp, and known to be so.
    const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    TIMELINE_BEGIN;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier_init(filled + 8 * s, 1);                  // the producer, and its bytes
            mbarrier_init(freed + 8 * s, CONSUMERS / TURNS);  // one thread of each consumer
        }
        mbarrier_init_fence();
    }
    __syncthreads();

    Ring<STAGES> ring;
    if (warpgroup == CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == CONSUMERS * 128) {
            for (int t = first; t < last; ++t) {
                const int2 tile = raster<GROUP>(t, tiles_m, tiles_n);
                for (int k = 0; k < K; k += BK, ring.next()) {
                    const unsigned a = tiles + ring.stage * STAGE_BYTES, b = a + A_BYTES;
                    const unsigned arrival = filled + 8 * ring.stage;
                    MARK(WAIT);
                    mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
                    MARK(LOAD);
                    mbarrier_expect(arrival, STAGE_BYTES);
                    tma_load(a, A, arrival, tile.x * BM, k);
                    if constexpr (B_BY_ROWS) {
#pragma unroll
                        for (int n = 0; n < BN; n += 64)
                            tma_load(b + n * 128, B, arrival, k, tile.y * BN + n);
                    } else {
                        tma_load(b, B, arrival, tile.y * BN, k);
                    }
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int turn = PING_PONG ? warpgroup : 0, part = PING_PONG ? 0 : warpgroup * ROWS;
        ring.skip(turn * steps);
        for (int t = first + turn; t < last; t += TURNS) {
            const int2 tile = raster<GROUP>(t, tiles_m, tiles_n);
            float sum[ROWS / 64][BN / 2] = {};
            // A parity tells a round of the ring only from the one before, so nobody may wait two
            // rounds ahead: the second begins when the first has seen its last tile.
            if (turn == 1) barrier_sync(1, 256);
            for (int step = 0; step < steps; ++step, ring.next()) {
                MARK(WAIT);
                mbarrier_wait(filled + 8 * ring.stage, ring.parity);
                MARK(COMPUTE);
                const unsigned a = tiles + ring.stage * STAGE_BYTES + part * 128;
                const unsigned b = tiles + ring.stage * STAGE_BYTES + A_BYTES;
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
            if (PING_PONG && turn == 0 && last - first == TILES) barrier_arrive(1, 256);

            MARK(STORE);
            const int row = tile.x * BM + part + threadIdx.x / 32 % 4 * 16;
#pragma unroll
            for (int i = 0; i < ROWS / 64; ++i)
                update_fragment(C, M, N, row + i * 64, tile.y * BN, alpha, sum[i], beta);
        }
    }
    TIMELINE_END;
}
