// 20: persistent blocks: a tile's end and the next one's start are hidden behind products.
//
// Changes:    blocks stay on their SM and walk through tiles of C; the producer runs ahead into the
//             next tile while the consumers store this one. The next step's products are issued
//             before the last ones are waited for (IN_FLIGHT). C leaves through shared memory, by
//             TMA (STAGED). In ping-pong a warpgroup stores while the other multiplies, for as many
//             tiles as there are.
// Bottleneck: 19's start and end of each pair of tiles, and its wait after each step.
// Launch:     grid at most one block per SM; block 384; dynamic shared memory for STAGES tiles,
//             2 * STAGED slices of 8 KiB and 1024 bytes. Rows of A and B are multiples of 16 bytes,
//             so aligned, and those of C too unless STAGED is 0. Boxes: A (BM, 64); B by rows
//             (64, 64), by columns (BN, 64); C (64, 128 bytes). May be launched with programmatic
//             stream serialization (grid.cuh).
// Runs on:    sm_90a.
//
// T, TC:      type of A and B, half or __nv_bfloat16; type of C: float, or T.
// STAGES:     tiles in the ring.
// B_BY_ROWS:  B is row-major, and its tiles come as slabs of 64 columns. Otherwise column-major.
// GROUP:      rows of tiles in a band of the raster.
// IN_FLIGHT:  steps whose products may still run when the next ones' are issued: 0 or 1.
// STAGED:     C goes through so many slices of shared memory, of each warpgroup, and the copy
//             engine; 0: from registers.
// PING_PONG:  the two warpgroups take tiles of their own in turn. Otherwise each has half of the
//             rows of every tile.
#include "barrier.cuh"
#include "grid.cuh"
#include "mbarrier.cuh"
#include "operands.cuh"
#include "pairs.cuh"
#include "raster.cuh"
#include "slices.cuh"
#include "timeline.cuh"
#include "tma.cuh"

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int GROUP, int IN_FLIGHT,
          int STAGED, bool PING_PONG>
__global__ void __launch_bounds__(384, 1)
persistent(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
           const __grid_constant__ TensorMap B, float beta, TC* C,
           const __grid_constant__ TensorMap C_map)
{
    constexpr int BK = 64;  // elements in a row of 128 bytes, the span of the swizzle
    constexpr int CONSUMERS = 2, TURNS = PING_PONG ? CONSUMERS : 1;
    constexpr int ROWS = PING_PONG ? BM : BM / CONSUMERS;  // of a tile, for each warpgroup
    constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2;
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    const unsigned As = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned Bs = As + STAGES * A_BYTES, staging = Bs + STAGES * B_BYTES;
    const unsigned filled = kept(shared_address(full)), freed = kept(shared_address(empty));
    const int tiles_m = (M + BM - 1) / BM, tiles_n = (N + BN - 1) / BN;
    const int first = blockIdx.x, blocks = gridDim.x;
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
    grid_wait();
    grid_go();

    Ring<STAGES> ring;
    if (warpgroup == CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == CONSUMERS * 128) {
            for (int t = first; t < tiles_m * tiles_n; t += blocks) {
                const int2 tile = raster<GROUP>(t, tiles_m, tiles_n);
                const int row = tile.x * BM, col = tile.y * BN;
                for (int k = 0; k < K; k += BK, ring.next()) {
                    const unsigned arrival = filled + 8 * ring.stage;
                    const unsigned a = As + ring.stage * A_BYTES, b = Bs + ring.stage * B_BYTES;
                    MARK(WAIT);
                    mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
                    MARK(LOAD);
                    mbarrier_expect(arrival, A_BYTES + B_BYTES);
                    tma_load(a, A, arrival, row, k);
                    if constexpr (B_BY_ROWS) {
#pragma unroll
                        for (int n = 0; n < BN; n += 64)
                            tma_load(b + n * 128, B, arrival, k, col + n);
                    } else {
                        tma_load(b, B, arrival, col, k);
                    }
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const unsigned slices = staging + warpgroup * STAGED * SLICE_BYTES;
        auto release = [&](int stage) {
            if (threadIdx.x % 128 == 0) mbarrier_arrive(freed + 8 * stage);
        };
        const int steps = (K + BK - 1) / BK, turn = PING_PONG ? warpgroup : 0;
        const int part = PING_PONG ? 0 : warpgroup * ROWS;  // first row of the tile
        // A parity tells a round of the ring only from the one before, so nobody may wait two
        // rounds ahead: a turn is passed on when its last tile has been waited for.
        auto pass = [&](int next, int to) {
            if (PING_PONG && next < tiles_m * tiles_n) barrier_arrive(3 + to, 256);
        };
        if (warpgroup == 1) pass(first, 0);
        ring.skip(turn * steps);
        for (int t = first + turn * blocks; t < tiles_m * tiles_n; t += TURNS * blocks) {
            const int2 tile = raster<GROUP>(t, tiles_m, tiles_n);
            const int row = tile.x * BM + part, col = tile.y * BN;
            float sum[ROWS / 64][BN / 2] = {};
            if (PING_PONG) barrier_sync(3 + turn, 256);
            int before = -1;  // the stage that the products in flight read
            for (int step = 0; step < steps; ++step, ring.next()) {
                MARK(WAIT);
                mbarrier_wait(filled + 8 * ring.stage, ring.parity);
                MARK(COMPUTE);
                const unsigned a = As + ring.stage * A_BYTES + part * 128;
                const unsigned b = Bs + ring.stage * B_BYTES;
                wgmma_fence();
#pragma unroll
                for (int k = 0; k < BK; k += 16)
#pragma unroll
                    for (int i = 0; i < ROWS / 64; ++i)
                        multiply<BN, T, B_BY_ROWS>(sum[i], a + i * 64 * 128, b, k);
                wgmma_commit();
                wgmma_wait<IN_FLIGHT>();
                if constexpr (IN_FLIGHT == 0) {
                    release(ring.stage);
                } else {
                    if (before >= 0) release(before);
                    before = ring.stage;
                }
            }
            pass(t + blocks, turn ^ 1);
            if constexpr (IN_FLIGHT == 1) {
                wgmma_wait<0>();
                if (before >= 0) release(before);
            }
            MARK(STORE);
#pragma unroll
            for (int i = 0; i < ROWS / 64; ++i) {
                const int y = row + i * 64;
                if constexpr (STAGED == 0)
                    update_fragment(C, M, N, y + threadIdx.x / 32 % 4 * 16, col, alpha, sum[i],
                                    beta);
                else if (beta == 0.0f)
                    store_slices<false, STAGED>(C_map, slices, C, M, N, y, col, alpha, sum[i],
                                                beta, warpgroup);
                else
                    store_slices<true, STAGED>(C_map, slices, C, M, N, y, col, alpha, sum[i],
                                               beta, warpgroup);
            }
            ring.skip((TURNS - 1) * steps);
        }
        if (STAGED > 0 && threadIdx.x % 128 == 0) tma_wait_read<0>();
    }
    TIMELINE_END;
}
