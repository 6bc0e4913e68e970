// 23: stream-K: the tiles of the last, incomplete wave are cut along K into equal shares.
//
// Changes:    these tiles, and those of one whole wave with them, are cut into as many shares of
//             equal length as there are clusters; they are done first, so that summing the parts
//             can hide behind whole tiles. Parts are summed in the order of K, whoever finishes
//             last: the same bits each run. No block waits for another outside of its cluster.
// Bottleneck: the SMs that 21 leaves idle in the last wave.
// Launch:     as 21, with `parts` (2 tiles of floats per block), `arrivals` (4 ints per block;
//             zeros, and left zero), `cut_tiles` and `sharers`: the first tiles are cut among so
//             many clusters, at most the grid's, and no share is longer than two tiles; 0 and 1: none
//             is cut.
//             A by columns: boxes (64 / CLUSTER_N, 64). A batch, or a C that isn't tight: STAGED is
//             0, the tiles are those of all products, maps have three dimensions, the products the
//             slowest.
// Runs on:    sm_90a.
//
// GROUP:      rows of clusters' tiles in a band of the raster.
// A_BY_ROWS:  A is row-major; column-major, its tiles come as slabs of 64 rows.
// S:          Strides, for a batch or a C that isn't tight (strides.cuh); else nothing.
// The rest:   as in 21.
#include "barrier.cuh"
#include "grid.cuh"
#include "mbarrier.cuh"
#include "multicast.cuh"
#include "operands.cuh"
#include "pairs.cuh"
#include "pitched.cuh"
#include "raster.cuh"
#include "slices.cuh"
#include "stream_k.cuh"
#include "strides.cuh"
#include "timeline.cuh"
#include "tma.cuh"

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int GROUP, int CLUSTER_M,
          int CLUSTER_N, int STAGED, bool PING_PONG, bool A_BY_ROWS = true, class... S>
__global__ void __cluster_dims__(CLUSTER_M * CLUSTER_N, 1, 1) __launch_bounds__(384, 1)
stream_k(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
         const __grid_constant__ TensorMap B, float beta, TC* C,
         const __grid_constant__ TensorMap C_map, float* parts, int* arrivals, int cut_tiles,
         int sharers, S... strides)
{
    constexpr int BK = 64;  // elements in a row of 128 bytes, the span of the swizzle
    constexpr int CONSUMERS = 2, TURNS = PING_PONG ? CONSUMERS : 1;
    constexpr int ROWS = PING_PONG ? BM : BM / CONSUMERS;  // of a tile, for each warpgroup
    constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2;
    constexpr bool BATCH = sizeof...(S) > 0;
    static_assert(!BATCH || STAGED == 0);
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    const unsigned As = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned Bs = As + STAGES * A_BYTES, staging = Bs + STAGES * B_BYTES;
    const unsigned filled = kept(shared_address(full)), freed = kept(shared_address(empty));
    const int tiles_m = (M + CLUSTER_M * BM - 1) / (CLUSTER_M * BM);  // clusters' tiles
    const int tiles_n = (N + CLUSTER_N * BN - 1) / (CLUSTER_N * BN);
    constexpr int CLUSTER = CLUSTER_M * CLUSTER_N;
    const int steps = (K + BK - 1) / BK, tiles = tiles_m * tiles_n;  // of one product
    const Shares shares(tiles * products(strides...), steps, blockIdx.x / CLUSTER, gridDim.x / CLUSTER,
                        cut_tiles, sharers);
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
            for (int i = 0; i < shares.count; ++i) {
                const Share share = shares[i];
                const auto at = place(C, N, share.tile, tiles, strides...);
                const int2 tile = raster<GROUP>(at.tile, tiles_m, tiles_n);
                const int row = (tile.x * CLUSTER_M + neighbours.m) * BM;
                const int col = (tile.y * CLUSTER_N + neighbours.n) * BN;
                for (int step = share.from; step < share.to; ++step, ring.next()) {
                    const unsigned arrival = filled + 8 * ring.stage;
                    const unsigned a = As + ring.stage * A_BYTES, b = Bs + ring.stage * B_BYTES;
                    MARK(WAIT);
                    mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
                    MARK(LOAD);
                    mbarrier_expect(arrival, A_BYTES + B_BYTES);
                    neighbours.template load<BM, BN, B_BY_ROWS, A_BY_ROWS, BATCH>(
                        a, A, b, B, arrival, row, col, step * BK, at.product);
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
        const int turn = PING_PONG ? warpgroup : 0;
        const int part = PING_PONG ? 0 : warpgroup * ROWS;  // first row of the tile
        // A parity tells a round of the ring only from the one before, so nobody may wait two
        // rounds ahead: a turn is passed on when its last tile has been waited for.
        auto pass = [&](int next, int to) {
            if (PING_PONG && next < shares.count) barrier_arrive(3 + to, 256);
        };
        if (warpgroup == 1) pass(0, 0);
        if (turn == 1) ring.skip(shares[0].to - shares[0].from);
        for (int i = turn; i < shares.count; i += TURNS) {
            const Share share = shares[i];
            const auto at = place(C, N, share.tile, tiles, strides...);
            const int2 tile = raster<GROUP>(at.tile, tiles_m, tiles_n);
            const int row = (tile.x * CLUSTER_M + neighbours.m) * BM + part;
            const int col = (tile.y * CLUSTER_N + neighbours.n) * BN;
            float sum[ROWS / 64][BN / 2] = {};
            if (PING_PONG) barrier_sync(3 + turn, 256);
            int before = -1;  // the stage that the products in flight read
            for (int step = share.from; step < share.to; ++step, ring.next()) {
                MARK(WAIT);
                mbarrier_wait(filled + 8 * ring.stage, ring.parity);
                MARK(COMPUTE);
                const unsigned a = As + ring.stage * A_BYTES + part * 128;
                const unsigned b = Bs + ring.stage * B_BYTES;
                wgmma_fence();
#pragma unroll
                for (int k = 0; k < BK; k += 16)
#pragma unroll
                    for (int m = 0; m < ROWS / 64; ++m)
                        multiply<BN, T, B_BY_ROWS, A_BY_ROWS>(sum[m], a + m * 64 * 128, b, k);
                wgmma_commit();
                wgmma_wait<1>();
                if (before >= 0) release(before);
                before = ring.stage;
            }
            pass(i + 1, turn ^ 1);
            wgmma_wait<0>();
            if (before >= 0) release(before);
            MARK(STORE);
            if (PING_PONG && i + 1 < shares.count) ring.skip(shares[i + 1].to - shares[i + 1].from);
            if (share.to - share.from < steps) {
                constexpr int PLACES = CLUSTER * CONSUMERS / TURNS;
                const int part_of = (neighbours.n * CLUSTER_M + neighbours.m) * CONSUMERS / TURNS +
                                    (PING_PONG ? 0 : warpgroup);
                if (!shares.add_up<PLACES>(sum, parts, arrivals, share.tile, part_of, 1 + warpgroup))
                    continue;
            }
#pragma unroll
            for (int m = 0; m < ROWS / 64; ++m) {
                const int y = row + m * 64;
                if constexpr (BATCH)
                    update_pitched<false>(at.C, at.pitch, M, N, y + threadIdx.x / 32 % 4 * 16, col,
                                          alpha, sum[m], beta);
                else if constexpr (STAGED == 0)
                    update_fragment(C, M, N, y + threadIdx.x / 32 % 4 * 16, col, alpha, sum[m],
                                    beta);
                else if (beta == 0.0f)
                    store_slices<false, STAGED>(C_map, slices, C, M, N, y, col, alpha, sum[m],
                                                beta, warpgroup);
                else
                    store_slices<true, STAGED>(C_map, slices, C, M, N, y, col, alpha, sum[m],
                                               beta, warpgroup);
            }
        }
        if (STAGED > 0 && threadIdx.x % 128 == 0) tma_wait_read<0>();
    }
    TIMELINE_END;
}
