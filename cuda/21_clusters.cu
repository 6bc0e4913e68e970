// 21: clusters: blocks share tiles of A and B, and the order of tiles suits the L2.
//
// Changes:    blocks of a cluster, whose tiles lie side by side or below each other, need the same
//             tiles of A or B: each loads a part for all that need it (multicast), and a stage is
//             free when all of them have multiplied it. Clusters walk through C in bands, or along
//             Hilbert's curve: those that run at once share more rows and columns in the L2.
// Bottleneck: 20's bytes from the L2 and from DRAM, which cost power.
// Launch:     as 20, but grid a multiple of CLUSTER_M * CLUSTER_N. Boxes: A (BM / CLUSTER_N, 64); B
//             by rows (64 / CLUSTER_M, 64), by columns (BN / CLUSTER_M, 64); C (64, 128 bytes).
// Runs on:    sm_90a.
//
// GROUP:      rows of clusters' tiles in a band.
// HILBERT:    squares of GROUP * GROUP clusters' tiles go along Hilbert's curve; GROUP is a power
//             of two. Otherwise a band goes column by column.
// CLUSTER_M:  blocks of a cluster whose tiles lie below each other in C, and share B's.
// CLUSTER_N:  blocks of a cluster whose tiles lie beside each other in C, and share A's.
// The rest:   as in 20.
#include "barrier.cuh"
#include "grid.cuh"
#include "mbarrier.cuh"
#include "multicast.cuh"
#include "operands.cuh"
#include "order.cuh"
#include "pairs.cuh"
#include "slices.cuh"
#include "timeline.cuh"
#include "tma.cuh"

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int GROUP, bool HILBERT,
          int CLUSTER_M, int CLUSTER_N, int IN_FLIGHT, int STAGED, bool PING_PONG>
__global__ void __cluster_dims__(CLUSTER_M * CLUSTER_N, 1, 1) __launch_bounds__(384, 1)
clustered(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
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
    const int tiles_m = (M + CLUSTER_M * BM - 1) / (CLUSTER_M * BM);  // clusters' tiles
    const int tiles_n = (N + CLUSTER_N * BN - 1) / (CLUSTER_N * BN);
    constexpr int CLUSTER = CLUSTER_M * CLUSTER_N;
    const int first = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
    const Neighbours<CLUSTER_M, CLUSTER_N> neighbours(CLUSTER > 1 ? cluster_rank() : 0);
    // The same for all lanes of a warp, and known to be so.
    const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    TIMELINE_BEGIN;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier_init(filled + 8 * s, 1);  // this block's producer, and its bytes
            // A thread of each consumer of the blocks that this one loads for.
            mbarrier_init(freed + 8 * s, neighbours.SHARERS * CONSUMERS / TURNS);
        }
        mbarrier_init_fence();
    }
    meet<CLUSTER>();
    grid_wait();
    grid_go();

    Ring<STAGES> ring;
    if (warpgroup == CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == CONSUMERS * 128) {
            for (int t = first; t < tiles_m * tiles_n; t += clusters) {
                const int2 tile = ordered<GROUP, HILBERT>(t, tiles_m, tiles_n);
                const int row = (tile.x * CLUSTER_M + neighbours.m) * BM;
                const int col = (tile.y * CLUSTER_N + neighbours.n) * BN;
                for (int k = 0; k < K; k += BK, ring.next()) {
                    const unsigned arrival = filled + 8 * ring.stage;
                    const unsigned a = As + ring.stage * A_BYTES, b = Bs + ring.stage * B_BYTES;
                    MARK(WAIT);
                    mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
                    MARK(LOAD);
                    mbarrier_expect(arrival, A_BYTES + B_BYTES);
                    neighbours.template load<BM, BN, B_BY_ROWS>(a, A, b, B, arrival, row, col, k);
                }
            }
            neighbours.stay(freed, ring);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const unsigned slices = staging + warpgroup * STAGED * SLICE_BYTES;
        auto release = [&](int stage) {
            neighbours.release(freed + 8 * stage);
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
        for (int t = first + turn * clusters; t < tiles_m * tiles_n; t += TURNS * clusters) {
            const int2 tile = ordered<GROUP, HILBERT>(t, tiles_m, tiles_n);
            const int row = (tile.x * CLUSTER_M + neighbours.m) * BM + part;
            const int col = (tile.y * CLUSTER_N + neighbours.n) * BN;
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
