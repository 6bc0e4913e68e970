// 21: every shape: work is cut along K where tiles don't fill the chip, and rows have any length.
//
// Changes:    four kernels, of which the catalogue picks by shape. every_shape is 20 with the
//             last, incomplete wave of tiles cut into equal shares for all clusters (stream-K);
//             they are done first, so that summing the partials can hide behind whole tiles.
//             split_tile is for few tiles: one per block, no persistence, an early start; the
//             blocks of a cluster share a tile's K and sum through each other's shared memory
//             (split-K). Where rows of C are few its tiles have few, with wgmma's operands swapped.
//             pack copies a matrix whose rows TMA can't step over into rows that are multiples of
//             16 bytes; unaligned_tile is split_tile with warpgroups in TMA's place, which read
//             such rows as they are. Partials are summed in the order of K, whoever finishes last:
//             the same bits each run.
// Bottleneck: the SMs that 20 leaves idle in the last wave or from the start; rows it refuses.
// Launch:     every_shape as 20, with `parts` (2 tiles of floats per block), `arrivals` (2 ints per
//             block; zeros, and left zero) and `sharers`: the clusters among which the last wave is
//             cut, at most the grid's, enough that no share is longer than a tile; 0: it isn't cut.
//             split_tile: grid ceil(M / BM / CLUSTER_M) * ceil(N / BN / CLUSTER_N) blocks of each
//             CLUSTER_M * CLUSTER_N * CLUSTER_K; block 2 * BM + 32, or 2 * BN + 32 if SWAPPED;
//             dynamic shared memory for STAGES tiles and 1024 bytes; boxes as every_shape's.
//             unaligned_tile: as split_tile without CLUSTER_M and CLUSTER_N, and 128 * LOADERS
//             threads in place of 32.
//             pack: block X * Y of 128 threads, X a power of two, at most 128, from
//             ceil(columns / 8) on; grid (ceil(columns / (8 * X)), min(ceil(rows / Y), 65535)).
//             Each may be launched with programmatic stream serialization (grid.cuh).
// Runs on:    sm_90a.
//
// T, TC:      type of A and B, half or __nv_bfloat16; type of C: float, or T.
// STAGES:     tiles in the ring.
// B_BY_ROWS:  B is row-major, and its tiles come as slabs of 64 columns. Otherwise column-major.
// GROUP, CLUSTER_M, CLUSTER_N, STAGED, PING_PONG: as in 20.
// CLUSTER_K:  blocks of a cluster that share a tile's steps along K.
// SWAPPED:    a warpgroup multiplies 64 columns of B by BM rows of A, not 64 rows of A by BN
//             columns of B: BM may be any multiple of 8.
// LOADERS:    warpgroups that read the tiles of unaligned_tile.
#include "barrier.cuh"
#include "cluster.cuh"
#include "exchange.cuh"
#include "grid.cuh"
#include "mbarrier.cuh"
#include "pairs.cuh"
#include "raster.cuh"
#include "slices.cuh"
#include "slices_swapped.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "wgmma.cuh"
#include "wgmma_swapped.cuh"

__device__ inline void store_shared(unsigned to, float value)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(value) : "memory");
}

// C = alpha * sum + beta * C for two neighbours; where beta is 0, C isn't read.
template <bool WHOLE, class TC>
__device__ inline void update_pair(TC* c, int inside, float alpha, float2 sum, float beta)
{
    float2 pair = make_float2(alpha * sum.x, alpha * sum.y);
    if (beta != 0.0f) {
        const float2 old = read_pair<WHOLE>(c, inside);
        pair.x += beta * old.x, pair.y += beta * old.y;
    }
    write_pair<WHOLE>(c, inside, pair);
}

// Whether all rows of C begin on a multiple of so many bytes.
template <int BYTES, class TC>
__device__ inline bool begins_on(const TC* C, int N)
{
    return (reinterpret_cast<size_t>(C) | N * sizeof(TC)) % BYTES == 0;
}

template <int BYTES> struct VectorOf { using type = uint4; };
template <> struct VectorOf<2> { using type = uint2; };

// update_pair for four neighbours, which a vector holds.
template <class TC>
__device__ inline void update_four(TC* c, float alpha, float4 sum, float beta)
{
    using Pair = typename PairOf<TC>::type;
    using Vector = typename VectorOf<sizeof(TC)>::type;
    Vector four;
    Pair* pairs = reinterpret_cast<Pair*>(&four);
    float2 low = make_float2(alpha * sum.x, alpha * sum.y);
    float2 high = make_float2(alpha * sum.z, alpha * sum.w);
    if (beta != 0.0f) {
        four = *reinterpret_cast<const Vector*>(c);
        const float2 a = widen(pairs[0]), b = widen(pairs[1]);
        low.x += beta * a.x, low.y += beta * a.y, high.x += beta * b.x, high.y += beta * b.y;
    }
    narrow(pairs[0], low);
    narrow(pairs[1], high);
    *reinterpret_cast<Vector*>(c) = four;
}

// The 16 columns from `col` on and the 2 * SUMS rows from `row` on, as far as they lie in C, of a
// tile that comes out transposed: a lane's pairs are neighbours in a column.
template <int SUMS, class TC>
__device__ inline void update_columns(TC* C, int M, int N, int row, int col, float alpha,
                                      const float (&sum)[SUMS], float beta)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < SUMS; ++i) {
        const int y = row + i / 4 * 8 + lane % 4 * 2 + i % 2, x = col + lane / 4 + i / 2 % 2 * 8;
        if (y >= M || x >= N) continue;
        TC& c = C[(size_t)y * N + x];
        c = TC(beta == 0.0f ? alpha * sum[i] : alpha * sum[i] + beta * float(c));
    }
}

// An address that all lanes have, and that the compiler keeps in a register: it would work that of
// an mbarrier out anew in every step.
__device__ inline unsigned kept(unsigned address)
{
    return __shfl_sync(0xffffffff, address, 0);
}

// The descriptor of what lies so many bytes behind: one addition, as its low bits are the address.
__device__ inline unsigned long long behind(unsigned long long descriptor, int bytes)
{
    return descriptor >> 32 << 32 | unsigned(descriptor) + bytes / 16;
}

// 16 of K, from `k` on, of the stage whose tiles lie at `a` and `b`: 64 rows of A times BN columns
// of B, or, swapped, 64 columns of B times BM rows of A.
template <bool SWAPPED, int BM, int BN, class T, bool B_BY_ROWS, int SUMS>
__device__ inline void multiply(float (&sum)[SUMS], unsigned a, unsigned b, int k)
{
    constexpr int BK = 64;
    const auto of_a = behind(k_major(a), k * 2);
    const auto of_b = B_BY_ROWS ? behind(n_major(b, BK), k * 128) : behind(k_major(b), k * 2);
    if constexpr (SWAPPED) wgmma_swapped<BM, T, B_BY_ROWS>(sum, of_b, of_a);
    else wgmma<BN, T, B_BY_ROWS>(sum, of_a, of_b);
}

// Steps [from, to) along K of one tile.
struct Share {
    int tile, from, to;
};

// What one cluster does, in its order: what it has of the cut tiles, and whole ones.
struct Shares {
    int count;

    __device__ Shares(int tiles, int steps, int me, int clusters, int sharers)
        : steps(steps), me(me), clusters(clusters), rest(tiles % clusters), sharers(sharers)
    {
        if (sharers > rest) {  // equal shares of all their steps; none is longer than a tile
            const long long all = (long long)rest * steps, begin = all * me / sharers;
            length = me < sharers ? all * (me + 1) / sharers - begin : 0;
            tile = begin / steps, from = begin % steps;
            cut = (length > 0) + (from + length > steps);
        } else {
            tile = me, from = 0, length = steps;
            cut = me < rest;
        }
        count = cut + tiles / clusters;
    }

    __device__ Share operator[](int i) const
    {
        if (i >= cut) return {rest + me + (i - cut) * clusters, 0, steps};
        if (i == 0) return {tile, from, min(steps, from + length)};
        return {tile + 1, 0, from + length - steps};
    }

    // A warpgroup leaves its part of a cut tile's sum; who comes last adds up all parts, in their
    // order, and writes C's rows from `row` and columns from `col` on. Each cluster has room for
    // two tiles, the second for the one that it begins; there and in `arrivals` each warpgroup has
    // a place of PLACES.
    template <bool SWAPPED, int PLACES, int BLOCKS, int SUMS, class TC>
    __device__ void add_up(const float (&sum)[BLOCKS][SUMS], float* parts, int* arrivals,
                           int cut_tile, int place, int barrier, TC* C, int M, int N, int row,
                           int col, float alpha, float beta) const
    {
        constexpr int FOURS = SUMS / 4, ALL = BLOCKS * FOURS;
        constexpr int AHEAD = ALL % 8 ? 4 : ALL % 16 ? 8 : 16;
        static_assert(ALL % AHEAD == 0);
        const long long all = (long long)rest * steps, begins = (long long)cut_tile * steps;
        const int first = ((begins + 1) * sharers - 1) / all;
        const int last = ((begins + steps) * sharers - 1) / all;
        const int thread = threadIdx.x % 128, lane = threadIdx.x % 32;
        auto part = [&](int cluster) {
            const size_t room = 2 * cluster + (cluster == first);
            return reinterpret_cast<float4*>(parts) + (room * PLACES + place) * (ALL * 128) +
                   thread;
        };
        float4* mine = part(me);
#pragma unroll
        for (int i = 0; i < ALL; ++i) {
            const float* s = &sum[i / FOURS][i % FOURS * 4];
            mine[i * 128] = make_float4(s[0], s[1], s[2], s[3]);
        }
        __threadfence();
        barrier_sync(barrier, 128);
        __shared__ int earlier[3];
        int* arrived = &arrivals[cut_tile * PLACES + place];
        if (thread == 0) earlier[barrier] = atomicAdd(arrived, 1);
        barrier_sync(barrier, 128);
        if (earlier[barrier] != last - first) return;
        __threadfence();
        if (thread == 0) *arrived = 0;
        // The registers of `sum` are free now, and take many parts at a time.
#pragma unroll 1
        for (int i = 0; i < ALL; i += AHEAD) {
            float4 total[AHEAD] = {};
            for (int cluster = first; cluster <= last; ++cluster) {
                const float4* other = part(cluster) + i * 128;
                float4 v[AHEAD];
#pragma unroll
                for (int j = 0; j < AHEAD; ++j) v[j] = __ldcg(other + j * 128);
#pragma unroll
                for (int j = 0; j < AHEAD; ++j) {
                    total[j].x += v[j].x, total[j].y += v[j].y;
                    total[j].z += v[j].z, total[j].w += v[j].w;
                }
            }
#pragma unroll
            for (int j = 0; j < AHEAD; ++j) {
                const int along = (i + j) / FOURS * 64 + thread / 32 * 16;
                const int across = (i + j) % FOURS * 8;
                if constexpr (SWAPPED) {
                    update_columns(C, M, N, row + across, col + along, alpha,
                                   reinterpret_cast<const float (&)[4]>(total[j]), beta);
                    continue;
                }
                const int y = row + along + lane / 4, x = col + across + lane % 4 * 2;
                for (int h = 0; h < 2; ++h) {
                    const float2 pair = h == 0 ? make_float2(total[j].x, total[j].y)
                                               : make_float2(total[j].z, total[j].w);
                    TC* c = &C[(size_t)(y + 8 * h) * N + x];
                    const int inside = y + 8 * h < M ? N - x : 0;
                    if (N % 2 == 0) update_pair<true>(c, inside, alpha, pair, beta);
                    else update_pair<false>(c, inside, alpha, pair, beta);
                }
            }
        }
    }

private:
    int steps, me, clusters, rest, sharers;
    int tile, from, length, cut;  // of the cut tiles: where this cluster begins, how many parts
};

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int GROUP, int CLUSTER_M,
          int CLUSTER_N, int STAGED, bool PING_PONG, bool SWAPPED>
__global__ void __cluster_dims__(CLUSTER_M * CLUSTER_N, 1, 1) __launch_bounds__(384, 1)
every_shape(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
            const __grid_constant__ TensorMap B, float beta, TC* C,
            const __grid_constant__ TensorMap C_map, float* parts, int* arrivals, int sharers)
{
    constexpr int BK = 64;  // elements in a row of 128 bytes, the span of the swizzle
    constexpr int CONSUMERS = 2, TURNS = PING_PONG ? CONSUMERS : 1;
    // Of the tile's rows or columns, those of each warpgroup.
    constexpr int MINE = (SWAPPED ? BN : BM) / (PING_PONG ? 1 : CONSUMERS);
    constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2;
    constexpr int CLUSTER = CLUSTER_M * CLUSTER_N, SHARERS = CLUSTER_M + CLUSTER_N - 1;
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    const unsigned As = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned Bs = As + STAGES * A_BYTES, staging = Bs + STAGES * B_BYTES;
    const unsigned filled = kept(shared_address(full)), freed = kept(shared_address(empty));
    const int tiles_m = (M + CLUSTER_M * BM - 1) / (CLUSTER_M * BM);  // clusters' tiles
    const int tiles_n = (N + CLUSTER_N * BN - 1) / (CLUSTER_N * BN);
    const int steps = (K + BK - 1) / BK;
    const Shares shares(tiles_m * tiles_n, steps, blockIdx.x / CLUSTER, gridDim.x / CLUSTER,
                        sharers);
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
            for (int i = 0; i < shares.count; ++i) {
                const Share share = shares[i];
                const int2 tile = raster<GROUP>(share.tile, tiles_m, tiles_n);
                const int row0 = (tile.x * CLUSTER_M + rank_m) * BM;
                const int col0 = (tile.y * CLUSTER_N + rank_n) * BN;
                for (int step = share.from; step < share.to; ++step, ring.next()) {
                    const unsigned arrival = filled + 8 * ring.stage, k = step * BK;
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
        const int turn = PING_PONG ? warpgroup : 0;
        const int part = PING_PONG ? 0 : warpgroup * MINE;  // the first of them in the tile
        // A turn is passed on when the last tile of this one has been waited for: who waited for a
        // stage two rounds ahead would take the parity of an earlier round for its own.
        auto pass = [&](int next, int to) {
            if (PING_PONG && next < shares.count) barrier_arrive(3 + to, 256);
        };
        if (warpgroup == 1) pass(0, 0);
        if (turn == 1) ring.skip(shares[0].to - shares[0].from);
        for (int i = turn; i < shares.count; i += TURNS) {
            const Share share = shares[i];
            const int2 tile = raster<GROUP>(share.tile, tiles_m, tiles_n);
            const int row = (tile.x * CLUSTER_M + rank_m) * BM + (SWAPPED ? 0 : part);
            const int col = (tile.y * CLUSTER_N + rank_n) * BN + (SWAPPED ? part : 0);
            float sum[MINE / 64][(SWAPPED ? BM : BN) / 2] = {};
            if (PING_PONG) barrier_sync(3 + turn, 256);
            int before = -1;  // the stage that the products in flight read
            for (int step = share.from; step < share.to; ++step, ring.next()) {
                MARK(WAIT);
                mbarrier_wait(filled + 8 * ring.stage, ring.parity);
                MARK(COMPUTE);
                const unsigned a = As + ring.stage * A_BYTES + (SWAPPED ? 0 : part * 128);
                const unsigned b = Bs + ring.stage * B_BYTES + (SWAPPED ? part * 128 : 0);
                wgmma_fence();
#pragma unroll
                for (int kk = 0; kk < BK; kk += 16)
#pragma unroll
                    for (int m = 0; m < MINE / 64; ++m)
                        multiply<SWAPPED, BM, BN, T, B_BY_ROWS>(
                            sum[m], a + (SWAPPED ? 0 : m * 64 * 128),
                            b + (SWAPPED ? m * 64 * 128 : 0), kk);
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
                const int place = rank * CONSUMERS / TURNS + (PING_PONG ? 0 : warpgroup);
                constexpr int PLACES = CLUSTER * CONSUMERS / TURNS;
                shares.add_up<SWAPPED, PLACES>(sum, parts, arrivals, share.tile, place,
                                               1 + warpgroup, C, M, N, row, col, alpha, beta);
                continue;
            }
#pragma unroll
            for (int m = 0; m < MINE / 64; ++m) {
                const int y = row + (SWAPPED ? 0 : m * 64), x = col + (SWAPPED ? m * 64 : 0);
                const int warps = threadIdx.x / 32 % 4 * 16;  // of the 64, this warp's 16
                if constexpr (STAGED == 0 && SWAPPED)
                    update_columns(C, M, N, y, x + warps, alpha, sum[m], beta);
                else if constexpr (STAGED == 0)
                    update_fragment(C, M, N, y + warps, x, alpha, sum[m], beta);
                else if (beta == 0.0f)
                    store_tile<SWAPPED, false, STAGED>(C_map, slices, C, M, N, y, x, alpha, sum[m],
                                                       beta, warpgroup);
                else
                    store_tile<SWAPPED, true, STAGED>(C_map, slices, C, M, N, y, x, alpha, sum[m],
                                                      beta, warpgroup);
            }
        }
        if (STAGED > 0 && threadIdx.x % 128 == 0) tma_wait_read<0>();
    }
    TIMELINE_END;
}

// Whether tiles come by TMA; otherwise threads read them from the matrices themselves.
template <class Operand> constexpr bool BY_TMA = false;
template <> constexpr bool BY_TMA<TensorMap> = true;

// A step's tiles of A and B as a warpgroup reads them, a row of 64 elements per warp and two
// neighbours per lane, and leaves them in shared memory as TMA does.
template <int BM, int BN, bool B_BY_ROWS>
struct Tiles {
    static constexpr int PARTS = (BM + BN) / 4;
    unsigned short low[PARTS], high[PARTS];

    template <class T>
    __device__ void fetch(const T* A, const T* B, int M, int N, int K, int row0, int col0, int k)
    {
        read(0, BM, A, M, K, row0, k);
        if constexpr (!B_BY_ROWS) read(BM, BN, B, N, K, col0, k);
        else
#pragma unroll
            for (int n = 0; n < BN; n += 64) read(BM + n, 64, B, K, N, k, col0 + n);
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
    // `count` rows from `row` on, of 64 elements from `column` on; zeros outside of the matrix.
    template <class T>
    __device__ void read(int first, int count, const T* matrix, int rows, int columns, int row,
                         int column)
    {
        if (row + count <= rows && column + 64 <= columns)  // nothing to ask for each row
            read<true>(first, count, matrix, rows, columns, row, column);
        else read<false>(first, count, matrix, rows, columns, row, column);
    }

    // Elements are read one by one: a row may begin on any.
    template <bool INSIDE, class T>
    __device__ void read(int first, int count, const T* matrix, int rows, int columns, int row,
                         int column)
    {
        row += threadIdx.x / 32 % 4, column += threadIdx.x % 32 * 2;
        const size_t offset = (size_t)row * columns + column;
        const unsigned short* from = reinterpret_cast<const unsigned short*>(matrix) + offset;
        const bool one = INSIDE || column < columns, two = INSIDE || column + 1 < columns;
#pragma unroll
        for (int i = 0; i < count; i += 4, from += 4 * (size_t)columns) {
            const bool inside = INSIDE || row + i < rows;
            low[(first + i) / 4] = one && inside ? from[0] : 0;
            high[(first + i) / 4] = two && inside ? from[1] : 0;
        }
    }
};

// What a block of split_tile and of unaligned_tile does.
template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int CLUSTER_M,
          int CLUSTER_N, int CLUSTER_K, bool SWAPPED, int LOADERS, class Operand>
__device__ inline void compute_tile(int M, int N, int K, float alpha, const Operand& A,
                                    const Operand& B, float beta, TC* C)
{
    constexpr int BK = 64, CONSUMERS = (SWAPPED ? BN : BM) / 64;
    constexpr int SHARE_K = CLUSTER_M * CLUSTER_N;  // blocks of a cluster with the same steps of K
    constexpr int CLUSTER = SHARE_K * CLUSTER_K;
    constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2;
    constexpr int PITCH = BN + 4;  // floats in a row of partial sums: no two rows begin in one bank
    static_assert(CLUSTER_K == 1 || BM * PITCH * 4 <= STAGES * (A_BYTES + B_BYTES));
    static_assert(BY_TMA<Operand> || SHARE_K == 1);
    static_assert(LOADERS <= STAGES);  // or a wait could take the parity of an earlier round
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    const unsigned As = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned Bs = As + STAGES * A_BYTES;
    const unsigned filled = kept(shared_address(full)), freed = kept(shared_address(empty));
    const int tiles_m = (M + CLUSTER_M * BM - 1) / (CLUSTER_M * BM);
    const int tile = blockIdx.x / CLUSTER, rank = CLUSTER > 1 ? cluster_rank() : 0;
    const int rank_m = rank % CLUSTER_M, rank_n = rank / CLUSTER_M % CLUSTER_N;
    const int rank_k = rank / SHARE_K;
    const int row0 = (tile % tiles_m * CLUSTER_M + rank_m) * BM;
    const int col0 = (tile / tiles_m * CLUSTER_N + rank_n) * BN;
    // The blocks that share K take its steps in turn: what they load together lies together.
    const int steps = (K + BK - 1) / BK;
    // The same for all lanes of a warp, and known to be so.
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    TIMELINE_BEGIN;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier_init(filled + 8 * s, BY_TMA<Operand> ? 1 : 128);
            mbarrier_init(freed + 8 * s, (CLUSTER_M + CLUSTER_N - 1) * CONSUMERS);
        }
        mbarrier_init_fence();
        if constexpr (BY_TMA<Operand>) {
            tma_prefetch(A);
            tma_prefetch(B);
        }
    }
    if constexpr (CLUSTER > 1) cluster_barrier();
    else __syncthreads();
    grid_wait();
    grid_go();

    Ring<STAGES> ring;
    float sum[(SWAPPED ? BM : BN) / 2] = {};
    if (warp >= 4 * CONSUMERS) {
        if constexpr (!BY_TMA<Operand>) {
            // Warpgroups take the steps in turn: each has one on its way.
            constexpr int STRIDE = LOADERS * CLUSTER_K;
            const int loader = warp / 4 - CONSUMERS;
            Tiles<BM, BN, B_BY_ROWS> tiles;
            ring.skip(loader);
            for (int step = rank_k + loader * CLUSTER_K; step < steps;
                 step += STRIDE, ring.skip(LOADERS)) {
                // They are on their way while this thread waits for room.
                tiles.fetch(A, B, M, N, K, row0, col0, step * BK);
                MARK(WAIT);
                mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
                MARK(LOAD);
                tiles.store(As + ring.stage * A_BYTES, Bs + ring.stage * B_BYTES);
                fence_async_proxy();
                mbarrier_arrive(filled + 8 * ring.stage);
            }
        } else if (threadIdx.x % 32 == 0) {
            // Of the tiles that several blocks need, this one loads a part for all.
            constexpr int A_PART = BM / CLUSTER_N, B_PART = (B_BY_ROWS ? BK : BN) / CLUSTER_M;
            const int first = rank_k * SHARE_K + rank_n * CLUSTER_M;
            const unsigned short column_of_blocks = (1 << CLUSTER_M) - 1 << first;
            unsigned short row_of_blocks = 0;
            for (int n = 0; n < CLUSTER_N; ++n)
                row_of_blocks |= 1 << (rank_k * SHARE_K + n * CLUSTER_M + rank_m);
            for (int step = rank_k; step < steps; step += CLUSTER_K, ring.next()) {
                const unsigned arrival = filled + 8 * ring.stage, k = step * BK;
                const unsigned a = As + ring.stage * A_BYTES + rank_n * A_PART * 128;
                const unsigned b = Bs + ring.stage * B_BYTES + rank_m * B_PART * 128;
                MARK(WAIT);
                mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
                MARK(LOAD);
                mbarrier_expect(arrival, A_BYTES + B_BYTES);
                tma_load_shared<CLUSTER_N>(a, A, arrival, row0 + rank_n * A_PART, k, row_of_blocks);
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
            if constexpr (SHARE_K > 1 && CLUSTER_K == 1)
                for (int s = 0; s < STAGES; ++s, ring.next())
                    mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
        }
    } else {
        const int warpgroup = warp / 4;
        auto release = [&](int stage) {
            const int to = threadIdx.x % 128;
            if constexpr (SHARE_K > 1) {
                if (to < SHARE_K && (to % CLUSTER_M == rank_m || to / CLUSTER_M == rank_n))
                    mbarrier_arrive_at(freed + 8 * stage, rank_k * SHARE_K + to);
            } else {
                if (to == 0) mbarrier_arrive(freed + 8 * stage);
            }
        };
        int before = -1;
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
                multiply<SWAPPED, BM, BN, T, B_BY_ROWS>(sum, a, b, k);
            wgmma_commit();
            wgmma_wait<1>();
            if (before >= 0) release(before);
            before = ring.stage;
        }
        wgmma_wait<0>();
        if (SHARE_K > 1 && before >= 0) release(before);
        MARK(STORE);
        const int lane = threadIdx.x % 32;
        if constexpr (CLUSTER_K == 1) {
            const int y = row0 + (SWAPPED ? 0 : warp * 16), x = col0 + (SWAPPED ? warp * 16 : 0);
            if constexpr (sizeof(TC) == 2) {
                if (begins_on<16>(C, N)) update_vectors<SWAPPED>(C, M, N, y, x, alpha, sum, beta);
            }
            if (sizeof(TC) == 4 || !begins_on<16>(C, N)) {
                if constexpr (SWAPPED) update_columns(C, M, N, y, x, alpha, sum, beta);
                else update_fragment(C, M, N, y, x, alpha, sum, beta);
            }
        } else {
            // Partial sums take the place of the ring, of which no product is left to be read.
            barrier_sync(1, CONSUMERS * 128);
#pragma unroll
            for (int i = 0; i < (SWAPPED ? BM : BN) / 4; ++i) {
                const int along = warp * 16 + lane / 4 + i % 2 * 8;  // the warpgroups' 64 rows
                const int across = i / 2 * 8 + lane % 4 * 2;         // and wgmma's columns
                if constexpr (SWAPPED) {
                    store_shared(As + (across * PITCH + along) * 4, sum[2 * i]);
                    store_shared(As + ((across + 1) * PITCH + along) * 4, sum[2 * i + 1]);
                } else {
                    asm volatile("st.shared.v2.f32 [%0], {%1, %2};"
                                 ::"r"(As + (along * PITCH + across) * 4), "f"(sum[2 * i]),
                                 "f"(sum[2 * i + 1]) : "memory");
                }
            }
        }
    }
    if constexpr (CLUSTER_K > 1) {
        // Each block adds up the rows of its share, always in the same order.
        constexpr int ROWS = BM / CLUSTER_K, FOURS = ROWS * BN / 4;
        cluster_barrier();
        for (int i = threadIdx.x; i < FOURS; i += blockDim.x) {
            const int r = rank_k * ROWS + i / (BN / 4), c = i % (BN / 4) * 4;
            float4 part[CLUSTER_K];
#pragma unroll
            for (int k = 0; k < CLUSTER_K; ++k)
                part[k] = cluster_load(cluster_address(As + (r * PITCH + c) * 4,
                                                       k * SHARE_K + rank % SHARE_K));
#pragma unroll
            for (int k = 1; k < CLUSTER_K; ++k) {
                part[0].x += part[k].x, part[0].y += part[k].y;
                part[0].z += part[k].z, part[0].w += part[k].w;
            }
            const int inside = row0 + r < M ? N - (col0 + c) : 0;
            TC* to = &C[(size_t)(row0 + r) * N + col0 + c];
            const float2 low = make_float2(part[0].x, part[0].y);
            const float2 high = make_float2(part[0].z, part[0].w);
            if (begins_on<4 * sizeof(TC)>(C, N)) {
                if (inside > 0) update_four(to, alpha, part[0], beta);
            } else if (N % 2 == 0) {
                update_pair<true>(to, inside, alpha, low, beta);
                update_pair<true>(to + 2, inside - 2, alpha, high, beta);
            } else {
                update_pair<false>(to, inside, alpha, low, beta);
                update_pair<false>(to + 2, inside - 2, alpha, high, beta);
            }
        }
        cluster_barrier();  // no block leaves while another may read its sums
    }
    TIMELINE_END;
}

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int CLUSTER_M,
          int CLUSTER_N, int CLUSTER_K, bool SWAPPED>
__global__ void __cluster_dims__(CLUSTER_M * CLUSTER_N * CLUSTER_K, 1, 1)
__launch_bounds__(2 * (SWAPPED ? BN : BM) + 32)
split_tile(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
           const __grid_constant__ TensorMap B, float beta, TC* C)
{
    compute_tile<T, TC, BM, BN, STAGES, B_BY_ROWS, CLUSTER_M, CLUSTER_N, CLUSTER_K, SWAPPED, 1>(
        M, N, K, alpha, A, B, beta, C);
}

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int CLUSTER_K,
          bool SWAPPED, int LOADERS>
__global__ void __cluster_dims__(CLUSTER_K, 1, 1)
__launch_bounds__(2 * (SWAPPED ? BN : BM) + LOADERS * 128)
unaligned_tile(int M, int N, int K, float alpha, const T* A, const T* B, float beta, TC* C)
{
    compute_tile<T, TC, BM, BN, STAGES, B_BY_ROWS, 1, 1, CLUSTER_K, SWAPPED, LOADERS>(
        M, N, K, alpha, A, B, beta, C);
}

// Rows of `columns` elements, tight and perhaps on no boundary, into rows of `pitch` elements,
// which begin on multiples of 16 bytes; what lies between the rows has no meaning. One thread moves
// 8 elements of each of its rows; a block has several rows at a time where they are short.
// `behind`: the launch before this one packs too, the other matrix, and both may run at once.
template <class T>
__global__ void pack(int rows, int columns, const T* from, int pitch, T* to, int behind)
{
    const int column = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
    const size_t begin = reinterpret_cast<size_t>(from);
    const size_t end = begin + (size_t)rows * columns * sizeof(T);
    if (!behind) grid_wait();  // who may still read what `to` holds
    grid_go();
    const int first = column < columns ? blockIdx.y * blockDim.y + threadIdx.y : rows;
#pragma unroll 4
    for (int row = first; row < rows; row += gridDim.y * blockDim.y) {
        const size_t source = begin + ((size_t)row * columns + column) * sizeof(T);
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
    if (behind) grid_wait();  // who waits for this launch waits for the one before it too
}
