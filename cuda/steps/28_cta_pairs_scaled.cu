// 28 with block scales: elements of 8 or 4 bits, whose scales lie in tensor memory beside the sums.
//
// Changes:    the stages hold scales as well, and the thread that multiplies copies them to tensor
//             memory first, for each stage to columns of its own: an MMA that is under way may
//             still read those of the stage before. Of B each block has half of the columns, and
//             the scales of all.
// Launch:     28's, with maps of the scales of A and B: rows of 512 bytes, as 128 words, each an
//             atom of 128 rows (block_scales.cuh), those of the same rows in order along K;
//             boxes of ATOMS such rows, not swizzled. Elements are bytes to the maps: A (128, 128),
//             B (BN / 2, 128). Both lie along K, in rows of multiples of 16 bytes.
// Runs on:    sm_100a.
//
// Format: Mxfp8 or Nvfp4; the others are 28's.
#include "block_scales.cuh"
#include "cta_pairs.cuh"
#include "grid.cuh"
#include "launch_control.cuh"
#include "mbarrier.cuh"
#include "raster.cuh"
#include "rows.cuh"
#include "timeline.cuh"

template <class Format, class TC, int BM, int BN, int STAGES, int GROUP, int STAGED,
          int ACCUMULATORS, bool CONTROL>
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(192, 1)
scaled_pairs(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
             const __grid_constant__ TensorMap B, float beta, TC* C,
             const __grid_constant__ TensorMap C_map, const __grid_constant__ TensorMap A_scales,
             const __grid_constant__ TensorMap B_scales)
{
    constexpr int BK = Format::ROW;  // elements in a row of 128 bytes, the span of the swizzle
    constexpr int STORERS = 4, WIDTH = ROW_BYTES / sizeof(TC);  // columns of a slice
    constexpr int A_BYTES = BM * 128, B_BYTES = BN / 2 * 128;  // half of B
    constexpr int ATOMS = Format::ATOMS, B_ATOMS = BN / 128;  // for a step of K, of 128 rows each
    constexpr int SCALE_BYTES = (1 + B_ATOMS) * ATOMS * SCALE_ATOM;
    constexpr int SCALE_COLUMNS = (1 + B_ATOMS) * ATOMS * SCALE_ATOM_COLUMNS;
    constexpr int COLUMNS = 512;  // all of tensor memory
    static_assert(ACCUMULATORS * BN + STAGES * SCALE_COLUMNS <= COLUMNS);
    constexpr int SLOTS = ACCUMULATORS + 1;  // as far as loads may run ahead of stores
    constexpr int READERS = 2 * 32 * STORERS + 2 + 1;  // threads that store, load and multiply
    constexpr int VEC = STAGED == 0 ? 1 : 16 / sizeof(TC);  // elements of C that are read at once
    static_assert(BM == 128 && BN % 128 == 0 && STAGED <= 2);
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    __shared__ __align__(8) unsigned long long sums_full[ACCUMULATORS], sums_empty[ACCUMULATORS];
    __shared__ Answers<SLOTS> answers;
    __shared__ unsigned tensor;
    const unsigned As = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned Bs = As + STAGES * A_BYTES, staging = Bs + STAGES * B_BYTES;
    const unsigned Ss = staging + STORERS * STAGED * WARP_SLICE_BYTES;
    const unsigned filled = shared_address(full), freed = shared_address(empty);
    const unsigned ready = shared_address(sums_full), drained = shared_address(sums_empty);
    const int tiles_m = (M + 2 * BM - 1) / (2 * BM), tiles_n = (N + BN - 1) / BN;
    const int steps = (K + BK - 1) / BK, atoms = (K + BK / ATOMS - 1) / (BK / ATOMS);
    const int first = blockIdx.x / 2, rank = cluster_rank();
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
    if (warp == STORERS) pair_alloc<COLUMNS>(shared_address(&tensor));
    cluster_barrier();
    const unsigned sums = tensor;
    grid_wait();
    grid_go();

    Ring<STAGES> ring;
    Ring<ACCUMULATORS> turn;
    if (warp == STORERS + 1 && lane == 0) {
        for (int t = first; t < tiles_m * tiles_n; t = order.next(t)) {
            const int2 tile = raster<GROUP>(t, tiles_m, tiles_n);
            const int row = (2 * tile.x + rank) * BM, col = tile.y * BN;
            order.ask();
            for (int k = 0; k < K; k += BK, ring.next()) {
                const unsigned arrival = cluster_address(filled + 8 * ring.stage, LEADER);
                const unsigned a = As + ring.stage * A_BYTES, b = Bs + ring.stage * B_BYTES;
                const unsigned scales = Ss + ring.stage * SCALE_BYTES;
                MARK(WAIT);
                mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
                MARK(LOAD);
                if (rank == LEADER)
                    mbarrier_expect(filled + 8 * ring.stage, 2 * (A_BYTES + B_BYTES + SCALE_BYTES));
                pair_load(a, A, arrival, row, k / BK * 128);
                pair_load(b, B, arrival, col + rank * BN / 2, k / BK * 128);
                const int atom = k / BK * ATOMS;
                pair_load(scales, A_scales, arrival, row / 128 * atoms + atom, 0);
#pragma unroll
                for (int n = 0; n < B_ATOMS; ++n)
                    pair_load(scales + (1 + n) * ATOMS * SCALE_ATOM, B_scales, arrival,
                              (col / 128 + n) * atoms + atom, 0);
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
                const unsigned from = Ss + ring.stage * SCALE_BYTES;
                const unsigned scales = sums + ACCUMULATORS * BN + ring.stage * SCALE_COLUMNS;
                const unsigned of_b = scales + ATOMS * SCALE_ATOM_COLUMNS;
#pragma unroll
                for (int i = 0; i < ATOMS; ++i) {
                    pair_copy_scales(scales + i * SCALE_ATOM_COLUMNS, from + i * SCALE_ATOM);
#pragma unroll
                    for (int n = 0; n < B_ATOMS; ++n)
                        pair_copy_scales(of_b + (i * B_ATOMS + n) * SCALE_ATOM_COLUMNS,
                                         from + ((1 + n) * ATOMS + i) * SCALE_ATOM);
                }
#pragma unroll
                for (int i = 0; i < BK / Format::EACH; ++i) {
                    if (step * BK + i * Format::EACH >= K) break;  // no scales there
                    const int place = Format::atom(i) * SCALE_ATOM_COLUMNS;
                    pair_multiply_scaled<BN, Format>(
                        sum, tensor_descriptor(a + i * 32, 16, ATOM_BYTES),
                        tensor_descriptor(b + i * 32, 16, ATOM_BYTES), scales + place,
                        of_b + place * B_ATOMS, i, step > 0 || i > 0);
                }
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
    if (warp == STORERS) pair_free<COLUMNS>(sums);
    TIMELINE_END;
}
