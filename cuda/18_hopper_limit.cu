// 18: every SM busy to the end, and no machine of it waiting for another.
//
// Changes:    blocks stay, and walk through tiles of C in 17's order; the producer is tiles ahead
//             while the consumers store. The blocks of a cluster share tiles of B, of which each
//             loads a part for all (multicast). Products of one step run while the next step's are
//             issued. C leaves through shared memory, by TMA.
// Bottleneck: 17's start and end of each tile, its traffic with the L2, its wait after each step.
// Launch:     grid a multiple of CLUSTER, at most BLOCKS an SM; block 384, or 288 if BLOCKS is 2;
//             dynamic shared memory for STAGES tiles, 2 * STAGED slices of 8 KiB and 1024 bytes.
//             Rows of A and B must be multiples of 16 bytes, and those of C if STAGED isn't 0.
// Runs on:    sm_90a.
//
// T, TC:      type of A and B, half or __nv_bfloat16; type of C: float, or T.
// STAGES:     tiles in the ring.
// B_BY_ROWS:  B is row-major, and its tiles come as slabs of 64 columns. Otherwise column-major.
// GROUP:      rows of clusters' tiles in a band of the raster.
// CLUSTER:    blocks of a cluster; their tiles lie below each other in C.
// IN_FLIGHT:  steps whose products may still run when the next ones' are issued: 0 or 1.
// STAGED:     C goes through so many slices of shared memory, of each warpgroup, and the copy
//             engine; 0: from registers.
// PING_PONG:  the two warpgroups take tiles of their own in turn, and one stores while the other
//             multiplies. Otherwise each has half of the rows of every tile.
// BLOCKS:     blocks an SM holds; 2 was slower, and no variant has it. With 1, the producer's
//             warpgroup gives registers to the others.
#include "barrier.cuh"
#include "cluster.cuh"
#include "mbarrier.cuh"
#include "pairs.cuh"
#include "raster.cuh"
#include "stmatrix.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

constexpr int SLICE_BYTES = 64 * 128;

// A warpgroup's 64×N sums, as slices whose rows have 128 bytes: from registers to shared memory, and
// from there by the copy engine. `staging` is room for BUFFERS slices, which the warpgroup's first
// thread knows to have been read before they are written again. READS: beta is not 0; otherwise C
// isn't read.
template <bool READS, int BUFFERS, int SUMS, class TC>
__device__ inline void store_slices(const TensorMap& C_map, unsigned staging, const TC* C, int M,
                                    int N, int row, int col, float alpha, const float (&sum)[SUMS],
                                    float beta, int warpgroup)
{
    constexpr int COLS = 128 / sizeof(TC), BLOCKS = COLS / 8;
    static_assert(SUMS * 2 / COLS % BUFFERS == 0);
    using Pair = typename PairOf<TC>::type;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const int y = row + warp * 16 + lane / 4, x = col + lane % 4 * 2;
    const bool leader = threadIdx.x % 128 == 0;
#pragma unroll
    for (int slice = 0; slice < SUMS * 2 / COLS; ++slice) {
        const unsigned buffer = staging + slice % BUFFERS * SLICE_BYTES;
        Pair pairs[BLOCKS][2];  // of each 8 columns, in this row and 8 rows below
        float2 old[BLOCKS][2];
        if constexpr (READS) {
#pragma unroll
            for (int i = 0; i < 2 * BLOCKS; ++i) {
                const int r = y + i % 2 * 8, c = x + slice * COLS + i / 2 * 8;
                old[i / 2][i % 2] = read_pair<true>(&C[(size_t)r * N + c], r < M ? N - c : 0);
            }
        }
#pragma unroll
        for (int i = 0; i < 2 * BLOCKS; ++i) {
            const float* s = &sum[4 * (slice * BLOCKS + i / 2) + i % 2 * 2];
            float2 pair = make_float2(alpha * s[0], alpha * s[1]);
            if constexpr (READS)
                pair.x += beta * old[i / 2][i % 2].x, pair.y += beta * old[i / 2][i % 2].y;
            narrow(pairs[i / 2][i % 2], pair);
        }
        if (leader) tma_wait_read<BUFFERS - 1>();  // what was in this buffer has left it
        barrier_sync(1 + warpgroup, 128);
        if constexpr (sizeof(TC) == 2) {
            // Lane l's row of matrix l / 8: 16 rows, and then the next chunk of 8 columns.
            const int r = warp * 16 + lane % 16;
#pragma unroll
            for (int j = 0; j < BLOCKS; j += 2)
                stmatrix(buffer + r * 128 + ((j + lane / 16) ^ r % 8) * 16,
                         reinterpret_cast<const unsigned (&)[4]>(pairs[j]));
        } else {
            const int r = warp * 16 + lane / 4;
#pragma unroll
            for (int i = 0; i < 2 * BLOCKS; ++i) {
                const int chunk = i / 2 * 2 + lane % 4 / 2;
                const unsigned to = buffer + (r + i % 2 * 8) * 128 + (chunk ^ r % 8) * 16;
                const float2& pair = reinterpret_cast<const float2&>(pairs[i / 2][i % 2]);
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};"
                             ::"r"(to + lane % 2 * 8), "f"(pair.x), "f"(pair.y) : "memory");
            }
        }
        fence_async_proxy();
        barrier_sync(1 + warpgroup, 128);
        if (leader) {
            tma_store(C_map, buffer, row, col + slice * COLS);
            tma_commit();
        }
    }
}

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int GROUP, int CLUSTER,
          int IN_FLIGHT, int STAGED, bool PING_PONG, int BLOCKS>
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(BLOCKS == 1 ? 384 : 288, BLOCKS)
hopper_limit(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
             const __grid_constant__ TensorMap B, float beta, TC* C,
             const __grid_constant__ TensorMap C_map)
{
    constexpr int BK = 64;  // elements in a row of 128 bytes, the span of the swizzle
    constexpr int CONSUMERS = 2, TURNS = PING_PONG ? CONSUMERS : 1;
    constexpr int ROWS = PING_PONG ? BM : BM / CONSUMERS;  // of a tile, for each warpgroup
    constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2;
    constexpr unsigned short EVERYONE = (1 << CLUSTER) - 1;
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    const unsigned As = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned Bs = As + STAGES * A_BYTES, staging = Bs + STAGES * B_BYTES;
    const unsigned filled = shared_address(full), freed = shared_address(empty);
    const int tiles_m = (M + CLUSTER * BM - 1) / (CLUSTER * BM), tiles_n = (N + BN - 1) / BN;
    const int first = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
    const int rank = CLUSTER > 1 ? cluster_rank() : 0;
    // The same for all lanes of a warp, and known to be so.
    const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    TIMELINE_BEGIN;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier_init(filled + 8 * s, 1);  // this block's producer, and the bytes it announces
            mbarrier_init(freed + 8 * s, CLUSTER * CONSUMERS / TURNS);  // a thread of each consumer
        }
        mbarrier_init_fence();
    }
    if constexpr (CLUSTER > 1) cluster_barrier();
    else __syncthreads();

    Ring<STAGES> ring;
    if (warpgroup == CONSUMERS) {
        if constexpr (BLOCKS == 1) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == CONSUMERS * 128) {
            for (int t = first; t < tiles_m * tiles_n; t += clusters) {
                const int2 tile = raster<GROUP>(t, tiles_m, tiles_n);
                const int row0 = (tile.x * CLUSTER + rank) * BM, col0 = tile.y * BN;
                for (int k = 0; k < K; k += BK, ring.next()) {
                    const unsigned arrival = filled + 8 * ring.stage;
                    const unsigned b = Bs + ring.stage * B_BYTES;
                    MARK(WAIT);
                    mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
                    MARK(LOAD);
                    mbarrier_expect(arrival, A_BYTES + B_BYTES);
                    tma_load(As + ring.stage * A_BYTES, A, arrival, row0, k);
                    // This block's part of B's tile, for every block of the cluster.
                    constexpr int PART = BN / CLUSTER, SLAB = B_BY_ROWS ? 64 : PART;
#pragma unroll
                    for (int i = 0; i < PART; i += SLAB) {
                        const int n = rank * PART + i;
                        const int row = B_BY_ROWS ? k : col0 + n, col = B_BY_ROWS ? col0 + n : k;
                        if constexpr (CLUSTER > 1)
                            tma_load_multicast(b + n * 128, B, arrival, row, col, EVERYONE);
                        else
                            tma_load(b + n * 128, B, arrival, row, col);
                    }
                }
            }
        }
    } else {
        if constexpr (BLOCKS == 1) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const unsigned slices = staging + warpgroup * STAGED * SLICE_BYTES;
        auto release = [&](int stage) {
            if constexpr (CLUSTER > 1) {
                if (threadIdx.x % 128 < CLUSTER)
                    mbarrier_arrive_at(freed + 8 * stage, threadIdx.x % 128);
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
            const int row = (tile.x * CLUSTER + rank) * BM + part, col = tile.y * BN;
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
    // No block leaves while another may still arrive on its barriers.
    if constexpr (CLUSTER > 1) cluster_barrier();
    TIMELINE_END;
}
