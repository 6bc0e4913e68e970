// 24: any row: A and B may have rows of any length, which TMA can't step over.
//
// Changes:    two ways. `pack` copies a matrix into rows that are multiples of 16 bytes, and a
//             kernel of 20 to 22 follows. any_row is 22 with warpgroups in TMA's place: they read
//             the rows as they are, element by element, a step ahead into registers, and leave them
//             in shared memory swizzled, as TMA would.
// Bottleneck: none: 17 to 23 refuse such rows. What reading twice, or by warps, costs.
// Launch:     any_row: as 22 without CLUSTER_M and CLUSTER_N, and 128 * LOADERS threads in place of
//             32. pack: block X * Y of 128 threads, X a power of two, at most 128, from
//             ceil(columns / 8) on; grid (ceil(columns / (8 * X)), min(ceil(rows / Y), 65535)).
//             Both may be launched with programmatic stream serialization (grid.cuh).
// Runs on:    sm_90a.
//
// LOADERS:    warpgroups that read tiles, of different steps in turn.
// S:          Strides, where A, B or C isn't tight, and for a batch (strides.cuh); else nothing.
// The rest:   as in 22.
#include "barrier.cuh"
#include "cluster.cuh"
#include "grid.cuh"
#include "mbarrier.cuh"
#include "multicast.cuh"
#include "operands_swapped.cuh"
#include "split_k.cuh"
#include "strides.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "updates.cuh"

// A step's tiles of A and B as a warpgroup reads them, a row of 64 elements per warp and two
// neighbours per lane, and leaves them in shared memory as TMA does.
template <int BM, int BN, bool B_BY_ROWS, bool A_BY_ROWS>
struct Tiles {
    static constexpr int PARTS = (BM + BN) / 4;
    unsigned short low[PARTS], high[PARTS];

    template <class T>
    __device__ void fetch(const Operands<T>& of, int M, int N, int K, int row0, int col0, int k)
    {
        if constexpr (A_BY_ROWS) read(0, BM, of.A, of.a, M, K, row0, k);
        else
#pragma unroll
            for (int m = 0; m < BM; m += 64) read(m, 64, of.A, of.a, K, M, k, row0 + m);
        if constexpr (!B_BY_ROWS) read(BM, BN, of.B, of.b, N, K, col0, k);
        else
#pragma unroll
            for (int n = 0; n < BN; n += 64) read(BM + n, 64, of.B, of.b, K, N, k, col0 + n);
    }

    __device__ void store(unsigned a, unsigned b)
    {
#pragma unroll
        for (int i = 0; i < PARTS; ++i) {
            const int row = i * 4 + threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
            const unsigned to = i * 4 < BM ? a + row * 128 : b + (row - BM) * 128;
            asm volatile("st.shared.v2.u16 [%0], {%1, %2};"
                         ::"r"(to + (lane / 4 ^ to / 128 % 8) * 16 + lane % 4 * 4), "h"(low[i]),
                         "h"(high[i]) : "memory");
        }
    }

private:
    // `count` rows from `row` on, of 64 elements from `column` on; zeros outside of the matrix,
    // whose rows lie `pitch` elements apart.
    template <class T>
    __device__ void read(int first, int count, const T* matrix, int pitch, int rows, int columns,
                         int row, int column)
    {
        if (row + count <= rows && column + 64 <= columns)  // nothing to ask for each row
            read<true>(first, count, matrix, pitch, rows, columns, row, column);
        else read<false>(first, count, matrix, pitch, rows, columns, row, column);
    }

    // Elements are read one by one: a row may begin on any.
    template <bool INSIDE, class T>
    __device__ void read(int first, int count, const T* matrix, int pitch, int rows, int columns,
                         int row, int column)
    {
        row += threadIdx.x / 32 % 4, column += threadIdx.x % 32 * 2;
        const size_t offset = (size_t)row * pitch + column;
        const unsigned short* from = reinterpret_cast<const unsigned short*>(matrix) + offset;
        const bool one = INSIDE || column < columns, two = INSIDE || column + 1 < columns;
#pragma unroll
        for (int i = 0; i < count; i += 4, from += 4 * (size_t)pitch) {
            const bool inside = INSIDE || row + i < rows;
            low[(first + i) / 4] = one && inside ? from[0] : 0;
            high[(first + i) / 4] = two && inside ? from[1] : 0;
        }
    }
};

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int CLUSTER_K,
          bool SWAPPED, int LOADERS, bool A_BY_ROWS = true, class... S>
__global__ void __cluster_dims__(CLUSTER_K, 1, 1)
__launch_bounds__(2 * (SWAPPED ? BN : BM) + LOADERS * 128)
any_row(int M, int N, int K, float alpha, const T* A, const T* B, float beta, TC* C, S... strides)
{
    constexpr int BK = 64, CONSUMERS = (SWAPPED ? BN : BM) / 64;
    constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2;
    static_assert(CLUSTER_K == 1 || BM * PITCH<BN> * 4 <= STAGES * (A_BYTES + B_BYTES));
    constexpr bool BATCH = sizeof...(S) > 0;
    static_assert(LOADERS <= STAGES);  // or a wait could take the parity of an earlier round
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    const unsigned As = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned Bs = As + STAGES * A_BYTES;
    const unsigned filled = kept(shared_address(full)), freed = kept(shared_address(empty));
    const int tiles_m = (M + BM - 1) / BM;
    const auto at = place(C, N, blockIdx.x / CLUSTER_K, tiles_m * ((N + BN - 1) / BN), strides...);
    const int tile = at.tile, rank_k = CLUSTER_K > 1 ? cluster_rank() : 0;
    const int row0 = tile % tiles_m * BM, col0 = tile / tiles_m * BN;
    // The blocks that share K take its steps in turn: what they load together lies together.
    const int steps = (K + BK - 1) / BK;
    // The same for all lanes of a warp, and known to be so.
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    TIMELINE_BEGIN;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {  // no copy engine and no other block arrives on them
            mbarrier_init(filled + 8 * s, 128);
            mbarrier_init(freed + 8 * s, CONSUMERS);
        }
    }
    meet<CLUSTER_K>();
    grid_wait();
    grid_go();

    Ring<STAGES> ring;
    if (warp >= 4 * CONSUMERS) {
        constexpr int STRIDE = LOADERS * CLUSTER_K;
        const int loader = warp / 4 - CONSUMERS;
        const auto of = operands(A, A_BY_ROWS ? K : M, B, B_BY_ROWS ? N : K, at.product, strides...);
        Tiles<BM, BN, B_BY_ROWS, A_BY_ROWS> tiles;
        ring.skip(loader);
        for (int step = rank_k + loader * CLUSTER_K; step < steps;
             step += STRIDE, ring.skip(LOADERS)) {
            // They are on their way while this thread waits for room.
            tiles.fetch(of, M, N, K, row0, col0, step * BK);
            MARK(WAIT);
            mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
            MARK(LOAD);
            tiles.store(As + ring.stage * A_BYTES, Bs + ring.stage * B_BYTES);
            fence_async_proxy();
            mbarrier_arrive(filled + 8 * ring.stage);
        }
    } else {
        const int warpgroup = warp / 4;
        float sum[(SWAPPED ? BM : BN) / 2] = {};
        int before = -1;  // the stage that the products in flight read
        for (int step = rank_k; step < steps; step += CLUSTER_K, ring.next()) {
            MARK(WAIT);
            mbarrier_wait(filled + 8 * ring.stage, ring.parity);
            MARK(COMPUTE);
            // Of the operand that the warpgroups divide, the 64 rows or columns of this one.
            constexpr int MINE = 64 * 128;
            const unsigned a = As + ring.stage * A_BYTES + (SWAPPED ? 0 : warpgroup * MINE);
            const unsigned b = Bs + ring.stage * B_BYTES + (SWAPPED ? warpgroup * MINE : 0);
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < BK; k += 16)
                multiply<SWAPPED, BM, BN, T, B_BY_ROWS, A_BY_ROWS>(sum, a, b, k);
            wgmma_commit();
            wgmma_wait<1>();
            if (before >= 0 && threadIdx.x % 128 == 0) mbarrier_arrive(freed + 8 * before);
            before = ring.stage;
        }
        wgmma_wait<0>();
        MARK(STORE);
        if constexpr (CLUSTER_K == 1) {
            const int y = row0 + (SWAPPED ? 0 : warp * 16), x = col0 + (SWAPPED ? warp * 16 : 0);
            if constexpr (BATCH)
                update_pitched<SWAPPED>(at.C, at.pitch, M, N, y, x, alpha, sum, beta);
            else update_tile<SWAPPED>(C, M, N, y, x, alpha, sum, beta);
        } else {
            // Partial sums take the place of the ring, of which no product is left to be read.
            barrier_sync(1, CONSUMERS * 128);
            leave_sums<SWAPPED, BN>(As, sum, warp);
        }
    }
    if constexpr (CLUSTER_K > 1)
        add_sums<BM, BN, CLUSTER_K, 1, BATCH>(As, 0, rank_k, at.C, M, N, row0, col0, alpha, beta,
                                              at.pitch);
    TIMELINE_END;
}

// Rows of `columns` elements, tight and perhaps on no boundary, into rows of `pitch` elements,
// which begin on multiples of 16 bytes; what lies between the rows has no meaning. With Strides
// `count` matrices, as its `a` and `next_a` say, into one behind the other. One thread moves
// 8 elements of each of its rows; a block has several rows at a time where they are short.
// `behind`: the launch before this one packs too, the other matrix, and both may run at once.
template <class T, class... S>
__global__ void pack(int rows, int columns, const T* from, int pitch, T* to, int behind,
                     S... strides)
{
    const int column = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
    const size_t begin = reinterpret_cast<size_t>(from);
    const size_t end = begin + span(rows, columns, strides...) * sizeof(T);
    if (!behind) grid_wait();  // who may still read what `to` holds
    grid_go();
    const int all = rows * products(strides...);
    const int first = column < columns ? blockIdx.y * blockDim.y + threadIdx.y : all;
#pragma unroll 4
    for (int row = first; row < all; row += gridDim.y * blockDim.y) {
        const size_t source = begin + (row_of(row, rows, columns, strides...) + column) * sizeof(T);
        const size_t aligned = source / 16 * 16;
        const int shift = source % 16 / 2;  // elements that the 8 lie behind a boundary
        unsigned words[8] = {};
        if (aligned >= begin && aligned + 32 <= end) {  // two aligned vectors hold them
            const uint4 a = *reinterpret_cast<const uint4*>(aligned);
            const uint4 b = *reinterpret_cast<const uint4*>(aligned + 16);
            words[0] = a.x, words[1] = a.y, words[2] = a.z, words[3] = a.w;
            words[4] = b.x, words[5] = b.y, words[6] = b.z, words[7] = b.w;
#pragma unroll
            for (int i = 0; i < 6; ++i) words[i] = shift & 4 ? words[i + 2] : words[i];
#pragma unroll
            for (int i = 0; i < 5; ++i) words[i] = shift & 2 ? words[i + 1] : words[i];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                words[i] = shift & 1 ? __funnelshift_r(words[i], words[i + 1], 16) : words[i];
        } else {  // at the ends of the matrix, where vectors would pass them
            const unsigned short* bits = reinterpret_cast<const unsigned short*>(source);
#pragma unroll
            for (int i = 0; i < 8; ++i)
                if (column + i < columns) words[i / 2] |= unsigned(bits[i]) << i % 2 * 16;
        }
        *reinterpret_cast<uint4*>(to + (size_t)row * pitch + column) =
            make_uint4(words[0], words[1], words[2], words[3]);
    }
    if (behind) grid_wait();  // so that a wait for this launch is one for the launch before it too
}
