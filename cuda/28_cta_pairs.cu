// 28: a pair of blocks multiplies together, and each loads half of B.
//
// Changes:    two blocks of a cluster compute a tile of 2 BM rows: one thread of the first one
//             multiplies for both, from the shared memory of both, so each loads its rows of A and
//             half of B. What this thread waits for arrives in its block, from both. The next tile
//             is that of a cluster which has not begun (CONTROL).
// Bottleneck: 27's shared memory: all of B's tile in each block, read for 128 rows.
// Launch:     clusters of two blocks; grid two blocks per tile of 2 BM rows, or without CONTROL at
//             most one per SM; block 192; dynamic shared memory for STAGES tiles (BM rows of A,
//             BN / 2 columns of B), 4 * STAGED slices of 4 KiB and 1024 bytes. Rows of A and B are
//             multiples of 16 bytes, so aligned, and those of C too unless STAGED is 0. Boxes: A
//             (128, 64); B by rows (64, 64), by columns (BN / 2, 64); C (32, 128 bytes), all
//             swizzled by 128 bytes. May be launched with programmatic stream serialization
//             (grid.cuh).
// Runs on:    sm_100a.
//
// T, TC:        type of A and B, half or __nv_bfloat16; type of C: float, or T.
// STAGES:       tiles in the ring.
// B_BY_ROWS:    B is row-major, and its tiles come as slabs of 64 columns. Otherwise column-major.
// GROUP:        rows of tiles in a band of the raster.
// STAGED:       C goes through so many slices of shared memory, of each warp that stores, and the
//               copy engine; 0: from registers.
// ACCUMULATORS: tiles of sums in tensor memory, in turns: 1 or 2.
// CONTROL:      a pair's next tile is that of a cluster that it cancels. Otherwise the pairs go
//               through the tiles in turns.
#include "cta_pairs.cuh"
#include "grid.cuh"
#include "launch_control.cuh"
#include "mbarrier.cuh"
#include "raster.cuh"
#include "rows.cuh"
#include "timeline.cuh"

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int GROUP, int STAGED,
          int ACCUMULATORS, bool CONTROL>
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(192, 1)
cta_pairs(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
             const __grid_constant__ TensorMap B, float beta, TC* C,
             const __grid_constant__ TensorMap C_map)
{
    constexpr int BK = 64;  // elements in a row of 128 bytes, the span of the swizzle
    constexpr int STORERS = 4, WIDTH = ROW_BYTES / sizeof(TC);  // columns of a slice
    constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN / 2 * 2;  // half of B
    constexpr int SLOTS = ACCUMULATORS + 1;  // as far as loads may run ahead of stores
    constexpr int READERS = 2 * 32 * STORERS + 2 + 1;  // threads that store, load and multiply
    constexpr int VEC = STAGED == 0 ? 1 : 16 / sizeof(TC);  // elements of C that are read at once
    static_assert(BM == 128 && BN % (STAGED == 2 ? 2 * WIDTH : WIDTH) == 0 && STAGED <= 2);
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    __shared__ __align__(8) unsigned long long sums_full[ACCUMULATORS], sums_empty[ACCUMULATORS];
    __shared__ Answers<SLOTS> answers;
    __shared__ unsigned tensor;
    const unsigned As = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned Bs = As + STAGES * A_BYTES, staging = Bs + STAGES * B_BYTES;
    const unsigned filled = shared_address(full), freed = shared_address(empty);
    const unsigned ready = shared_address(sums_full), drained = shared_address(sums_empty);
    const int tiles_m = (M + 2 * BM - 1) / (2 * BM), tiles_n = (N + BN - 1) / BN;
    const int steps = (K + BK - 1) / BK, first = blockIdx.x / 2, rank = cluster_rank();
    // The same for all lanes of a warp, and known to be so.
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    Tiles<CONTROL, SLOTS> order(answers, rank);
    TIMELINE_BEGIN;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier_init(filled + 8 * s, 1);  // the leader's thread that loads, and both's bytes
            mbarrier_init(freed + 8 * s, 1);   // a commit
        }
        for (int i = 0; i < ACCUMULATORS; ++i) {
            mbarrier_init(ready + 8 * i, 1);                   // a commit
            mbarrier_init(drained + 8 * i, 2 * 32 * STORERS);  // the threads of both that store
        }
        order.init(READERS);
        mbarrier_init_fence();
    }
    cluster_barrier();  // the other block runs, and has its barriers
    if (warp == STORERS) pair_alloc<ACCUMULATORS * BN>(shared_address(&tensor));
    cluster_barrier();
    const unsigned sums = tensor;
    grid_wait();
    grid_go();

    Ring<STAGES> ring;
    Ring<ACCUMULATORS> turn;
    if (warp == STORERS + 1 && lane == 0) {
        for (int t = first; t < tiles_m * tiles_n; t = order.next(t)) {
            const int2 tile = raster<GROUP>(t, tiles_m, tiles_n);
            const int row = (2 * tile.x + rank) * BM, col = tile.y * BN + rank * BN / 2;
            order.ask();
            for (int k = 0; k < K; k += BK, ring.next()) {
                const unsigned arrival = cluster_address(filled + 8 * ring.stage, LEADER);
                const unsigned a = As + ring.stage * A_BYTES, b = Bs + ring.stage * B_BYTES;
                MARK(WAIT);
                mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
                MARK(LOAD);
                if (rank == LEADER)
                    mbarrier_expect(filled + 8 * ring.stage, 2 * (A_BYTES + B_BYTES));
                pair_load(a, A, arrival, row, k);
                if constexpr (B_BY_ROWS) {
#pragma unroll
                    for (int n = 0; n < BN / 2; n += 64)
                        pair_load(b + n * 128, B, arrival, k, col + n);
                } else {
                    pair_load(b, B, arrival, col, k);
                }
            }
        }
        // The last commits arrive in both blocks, so neither ends before.
        for (int s = 0; s < STAGES; ++s, ring.next())
            mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
    } else if (warp == STORERS && lane == 0 && rank == LEADER) {
        for (int t = first; t < tiles_m * tiles_n; t = order.next(t), turn.next()) {
            const unsigned sum = sums + turn.stage * BN;
            MARK(WAIT);
            mbarrier_wait(drained + 8 * turn.stage, turn.parity ^ 1);
            for (int step = 0; step < steps; ++step, ring.next()) {
                MARK(WAIT);
                mbarrier_wait(filled + 8 * ring.stage, ring.parity);
                fence_after_sync();  // behind both waits
                MARK(COMPUTE);
                const unsigned a = As + ring.stage * A_BYTES, b = Bs + ring.stage * B_BYTES;
#pragma unroll
                for (int k = 0; k < BK; k += 16)
                    pair_multiply<BN, T, B_BY_ROWS>(sum, of_a(a, k), of_b<B_BY_ROWS>(b, k),
                                                    step > 0 || k > 0);
                pair_commit(freed + 8 * ring.stage);  // when these have read the stage of both
            }
            pair_commit(ready + 8 * turn.stage);
        }
    } else if (warp < STORERS) {
        const unsigned slices = staging + warp * STAGED * WARP_SLICE_BYTES;
        for (int t = first; t < tiles_m * tiles_n; t = order.next(t), turn.next()) {
            const int2 tile = raster<GROUP>(t, tiles_m, tiles_n);
            const int row = (2 * tile.x + rank) * BM + warp * 32, col = tile.y * BN;
            MARK(WAIT);
            mbarrier_wait(ready + 8 * turn.stage, turn.parity);
            fence_after_sync();
            MARK(STORE);
            for (int n = 0; n < BN; n += WIDTH) {
                float sum[WIDTH] = {};
                if (steps > 0) {
                    const unsigned from = sums + turn.stage * BN + n + (warp * 32 << 16);
#pragma unroll
                    for (int i = 0; i < WIDTH; i += 32) tensor_load(&sum[i], from + i);
                    tensor_wait();
                }
                TC* c = &C[(size_t)(row + lane) * N + col + n];
                const int inside = row + lane < M ? N - col - n : 0;
                scale_row<VEC>(sum, c, inside, alpha, beta);
                if constexpr (STAGED == 0) {
                    store_row(c, inside, sum);
                } else {
                    if (lane == 0) tma_wait_read<STAGED - 1>();  // what was in the slice has left
                    __syncwarp();
                    const int slice = n / WIDTH % STAGED;
                    stage_rows<WIDTH, TC>(C_map, slices + slice * WARP_SLICE_BYTES, row, col + n,
                                          sum);
                }
            }
            fence_before_sync();
            mbarrier_arrive_at(drained + 8 * turn.stage, LEADER);
        }
        if (STAGED > 0 && lane == 0) tma_wait_read<0>();
    }
    cluster_barrier();
    if (warp == STORERS) pair_free<ACCUMULATORS * BN>(sums);
    TIMELINE_END;
}
