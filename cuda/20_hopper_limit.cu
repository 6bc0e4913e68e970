// 20: persistent blocks in clusters: no start and no end is waited for, and L2 traffic falls.
//
// Changes:    blocks are persistent and walk through tiles of C in an order that the L2 likes; the
//             producer runs ahead into the next tile while the consumers store this one. Blocks of
//             a cluster share tiles: each loads a part of A or B for all that need it (multicast).
//             The next step's products are issued before the last ones are waited for. C leaves
//             through shared memory, by TMA.
// Bottleneck: 19's start and end of each pair of tiles, its L2 traffic, its wait after each step.
// Launch:     grid a multiple of CLUSTER_M * CLUSTER_N, at most one block per SM; block 384;
//             dynamic shared memory for STAGES tiles, 2 * STAGED slices of 8 KiB and 1024 bytes.
//             Rows of A and B are multiples of 16 bytes, so aligned, and those of C too
//             unless STAGED is 0. Boxes: A (BM / CLUSTER_N, 64); B by rows (64 / CLUSTER_M, 64), by
//             columns (BN / CLUSTER_M, 64); C (64, 128 bytes). May be launched with programmatic
//             stream serialization (grid.cuh).
// Runs on:    sm_90a.
//
// T, TC:      type of A and B, half or __nv_bfloat16; type of C: float, or T.
// STAGES:     tiles in the ring.
// B_BY_ROWS:  B is row-major, and its tiles come as slabs of 64 columns. Otherwise column-major.
// GROUP:      rows of clusters' tiles in a band of the raster.
// CLUSTER_M:  blocks of a cluster whose tiles lie below each other in C, and share B's.
// CLUSTER_N:  blocks of a cluster whose tiles lie beside each other in C, and share A's.
// IN_FLIGHT:  steps whose products may still run when the next ones' are issued: 0 or 1.
// STAGED:     C goes through so many slices of shared memory, of each warpgroup, and the copy
//             engine; 0: from registers.
// PING_PONG:  the two warpgroups take tiles of their own in turn, and one stores while the other
//             multiplies. Otherwise each has half of the rows of every tile.
#include "barrier.cuh"
#include "cluster.cuh"
#include "grid.cuh"
#include "mbarrier.cuh"
#include "pairs.cuh"
#include "raster.cuh"
#include "slices.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int GROUP, int CLUSTER_M,
          int CLUSTER_N, int IN_FLIGHT, int STAGED, bool PING_PONG>
__global__ void __cluster_dims__(CLUSTER_M * CLUSTER_N, 1, 1) __launch_bounds__(384, 1)
hopper_limit(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
             const __grid_constant__ TensorMap B, float beta, TC* C,
             const __grid_constant__ TensorMap C_map)
{
    constexpr int BK = 64;  // elements in a row of 128 bytes, the span of the swizzle
    constexpr int CONSUMERS = 2, TURNS = PING_PONG ? CONSUMERS : 1;
    constexpr int ROWS = PING_PONG ? BM : BM / CONSUMERS;  // of a tile, for each warpgroup
    constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2;
    constexpr int CLUSTER = CLUSTER_M * CLUSTER_N, SHARERS = CLUSTER_M + CLUSTER_N - 1;
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    const unsigned As = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned Bs = As + STAGES * A_BYTES, staging = Bs + STAGES * B_BYTES;
    const unsigned filled = shared_address(full), freed = shared_address(empty);
    const int tiles_m = (M + CLUSTER_M * BM - 1) / (CLUSTER_M * BM);  // clusters' tiles
    const int tiles_n = (N + CLUSTER_N * BN - 1) / (CLUSTER_N * BN);
    const int first = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
    const int rank = CLUSTER > 1 ? cluster_rank() : 0;
    const int rank_m = rank % CLUSTER_M, rank_n = rank / CLUSTER_M;  // this block's place in them
    // The same for all lanes of a warp, and known to be so.
    const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    TIMELINE_BEGIN;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier_init(filled + 8 * s, 1);  // this block's producer, and the bytes it announces
            // A thread of each consumer of the blocks that this one loads for.
            mbarrier_init(freed + 8 * s, SHARERS * CONSUMERS / TURNS);
        }
        mbarrier_init_fence();
    }
    if constexpr (CLUSTER > 1) cluster_barrier();
    else __syncthreads();
    grid_wait();
    grid_go();

    Ring<STAGES> ring;
    if (warpgroup == CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == CONSUMERS * 128) {
            // Of the tiles that several blocks need, this one loads a part for all.
            constexpr int A_PART = BM / CLUSTER_N, B_PART = (B_BY_ROWS ? BK : BN) / CLUSTER_M;
            unsigned short row_of_blocks = 0;
            for (int n = 0; n < CLUSTER_N; ++n) row_of_blocks |= 1 << (n * CLUSTER_M + rank_m);
            const unsigned short column_of_blocks = (1 << CLUSTER_M) - 1 << rank_n * CLUSTER_M;
            for (int t = first; t < tiles_m * tiles_n; t += clusters) {
                const int2 tile = raster<GROUP>(t, tiles_m, tiles_n);
                const int row0 = (tile.x * CLUSTER_M + rank_m) * BM;
                const int col0 = (tile.y * CLUSTER_N + rank_n) * BN;
                for (int k = 0; k < K; k += BK, ring.next()) {
                    const unsigned arrival = filled + 8 * ring.stage;
                    const unsigned a = As + ring.stage * A_BYTES + rank_n * A_PART * 128;
                    const unsigned b = Bs + ring.stage * B_BYTES + rank_m * B_PART * 128;
                    MARK(WAIT);
                    mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
                    MARK(LOAD);
                    mbarrier_expect(arrival, A_BYTES + B_BYTES);
                    tma_load_shared<CLUSTER_N>(a, A, arrival, row0 + rank_n * A_PART, k,
                                               row_of_blocks);
                    if constexpr (B_BY_ROWS) {
#pragma unroll
                        for (int n = 0; n < BN; n += 64)
                            tma_load_shared<CLUSTER_M>(b + n * 128, B, arrival, k + rank_m * B_PART,
                                                       col0 + n, column_of_blocks);
                    } else {
                        tma_load_shared<CLUSTER_M>(b, B, arrival, col0 + rank_m * B_PART, k,
                                                   column_of_blocks);
                    }
                }
            }
            // The block stays until others' last arrivals on its barriers have come.
            if constexpr (CLUSTER > 1)
                for (int s = 0; s < STAGES; ++s, ring.next())
                    mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const unsigned slices = staging + warpgroup * STAGED * SLICE_BYTES;
        auto release = [&](int stage) {
            if constexpr (CLUSTER > 1) {
                const int to = threadIdx.x % 128;
                if (to < CLUSTER && (to % CLUSTER_M == rank_m || to / CLUSTER_M == rank_n))
                    mbarrier_arrive_at(freed + 8 * stage, to);
            } else {
                if (threadIdx.x % 128 == 0) mbarrier_arrive(freed + 8 * stage);
            }
        };
        const int steps = (K + BK - 1) / BK, turn = PING_PONG ? warpgroup : 0;
        const int part = PING_PONG ? 0 : warpgroup * ROWS;  // first row of the tile
        // A turn is passed on when the last tile of this one has been waited for: who waited for a
        // stage two rounds ahead would take the parity of an earlier round for its own.
        auto pass = [&](int next, int to) {
            if (PING_PONG && next < tiles_m * tiles_n) barrier_arrive(3 + to, 256);
        };
        if (warpgroup == 1) pass(first, 0);
        ring.skip(turn * steps);
        for (int t = first + turn * clusters; t < tiles_m * tiles_n; t += TURNS * clusters) {
            const int2 tile = raster<GROUP>(t, tiles_m, tiles_n);
            const int row = (tile.x * CLUSTER_M + rank_m) * BM + part;
            const int col = (tile.y * CLUSTER_N + rank_n) * BN;
            float sum[ROWS / 64][BN / 2] = {};
            if (PING_PONG) barrier_sync(3 + turn, 256);
            int before = -1;  // the stage that the products in flight read
            for (int k = 0; k < K; k += BK, ring.next()) {
                MARK(WAIT);
                mbarrier_wait(filled + 8 * ring.stage, ring.parity);
                MARK(COMPUTE);
                const unsigned a = As + ring.stage * A_BYTES + part * 128;
                const unsigned b = Bs + ring.stage * B_BYTES;
                wgmma_fence();
#pragma unroll
                for (int kk = 0; kk < BK; kk += 16)
#pragma unroll
                    for (int i = 0; i < ROWS / 64; ++i)
                        wgmma<BN, T, B_BY_ROWS>(sum[i], k_major(a + i * 64 * 128 + kk * 2),
                                                B_BY_ROWS ? n_major(b + kk * 128, BK)
                                                          : k_major(b + kk * 2));
                wgmma_commit();
                wgmma_wait<IN_FLIGHT>();
                if constexpr (IN_FLIGHT == 0) {
                    release(ring.stage);
                } else {
                    if (before >= 0) release(before);
                    before = ring.stage;
                }
            }
            pass(t + clusters, turn ^ 1);
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
