// 25: a fused epilogue: bias, activation and residual meet the sums in registers.
//
// Changes:    before 20's slices are stored, each sum becomes what the next layer wants of it
//             (fused.cuh). The epilogue is one argument of the template: what it lacks compiles to
//             nothing. In ping-pong all of it runs while the other warpgroup multiplies.
// Bottleneck: a kernel behind the product, which reads C from DRAM and writes it again.
// Launch:     as 21, and rows of C, bias and residual are multiples of 16 bytes, aligned, STAGED or
//             not. Box of C, which has N / 2 columns under SwiGLU: (64, 128 bytes). `amax` holds a
//             float's bits, and grows. What an epilogue lacks is never read. `apart` has any grid,
//             takes rows of any length, tight, of which VEC elements are a group, and a product of
//             FP32 where `fused` has A. BN that 64 doesn't divide: B is column by column, and columns
//             that fill no slice leave from registers.
// Runs on:    sm_90a.
//
// E:          Epilogue<activation, has bias, has residual, has amax>.
// EARLY:      a lane's biases come into registers before its last products end, where nothing else
//             hides them.
// VEC:        elements of C that a thread of `apart` has at a time.
// The rest:   as in 21, with IN_FLIGHT 1 and bands of tiles.
#include "barrier.cuh"
#include "fused_slices.cuh"
#include "grid.cuh"
#include "mbarrier.cuh"
#include "multicast.cuh"
#include "operands.cuh"
#include "raster.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "wgmma_widths.cuh"

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int GROUP, int CLUSTER_M,
          int CLUSTER_N, int STAGED, bool PING_PONG, bool EARLY, class E>
__global__ void __cluster_dims__(CLUSTER_M * CLUSTER_N, 1, 1) __launch_bounds__(384, 1)
fused(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
      const __grid_constant__ TensorMap B, float beta, TC* C,
      const __grid_constant__ TensorMap C_map, const TC* bias, const TC* residual, unsigned* amax)
{
    constexpr int BK = 64;  // elements in a row of 128 bytes, the span of the swizzle
    constexpr int CONSUMERS = 2, TURNS = PING_PONG ? CONSUMERS : 1;
    constexpr int ROWS = PING_PONG ? BM : BM / CONSUMERS;  // of a tile, for each warpgroup
    constexpr int EACH = ROWS * BN > 64 * 256 ? 2 : 4;  // blocks of 8 columns that registers hold
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
                const int2 tile = raster<GROUP>(t, tiles_m, tiles_n);
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
        Fused<E, TC> epilogue = {C, bias, residual, M, N / E::FOLD};
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
            const int2 tile = raster<GROUP>(t, tiles_m, tiles_n);
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
                        if constexpr (BN % 64 == 0)
                            multiply<BN, T, B_BY_ROWS>(sum[i], a + i * 64 * 128, b, k);
                        else
                            wgmma_width<BN, T>(sum[i], of_a(a + i * 64 * 128, k), of_b<false>(b, k));
                wgmma_commit();
                wgmma_wait<1>();
                if (before >= 0) release(before);
                before = ring.stage;
            }
            pass(t + clusters, turn ^ 1);
            typename PairOf<TC>::type held[EARLY ? BN / 8 : 1];
            if constexpr (EARLY) epilogue.fetch(held, col);
            wgmma_wait<0>();
            if (before >= 0) release(before);
            MARK(STORE);
#pragma unroll
            for (int i = 0; i < ROWS / 64; ++i) {
                const int y = row + i * 64;
                if (beta == 0.0f)
                    store<false, STAGED, EACH>(epilogue, C_map, slices, C, y, col, alpha,
                                               sum[i], held, beta, warpgroup);
                else
                    store<true, STAGED, EACH>(epilogue, C_map, slices, C, y, col, alpha,
                                              sum[i], held, beta, warpgroup);
            }
            ring.skip((TURNS - 1) * steps);
        }
        epilogue.report(amax);
        if (STAGED > 0 && threadIdx.x % 128 == 0) tma_wait_read<0>();
    }
    TIMELINE_END;
}

// The same epilogue of a product that lies in memory: what fusing saves, and what there is for rows
// that `fused` can't take.
template <class TC, int VEC, class E>
__global__ void __launch_bounds__(256)
apart(int M, int N, int groups, float alpha, const float* product, const TC* bias, float beta,
      TC* C, const TC* residual, unsigned* amax)
{
    struct alignas(VEC * sizeof(TC)) Vector { TC values[VEC]; };
    Fused<E, TC> epilogue = {C, bias, residual, M, N / E::FOLD};
    grid_wait();
    grid_go();
    const size_t count = (size_t)M * groups, stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        const size_t row = i / groups;
        const int col = i % groups * VEC;
        const size_t at = row * epilogue.N + col;
        Vector made, old, beside;
        if (beta != 0.0f) old = *reinterpret_cast<const Vector*>(C + at);
        if (E::RESIDUAL) beside = *reinterpret_cast<const Vector*>(residual + at);
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
            // Of SwiGLU's 16 columns the first eight are gates.
            const int c = E::FOLD == 2 ? (col + j) / 8 * 16 + (col + j) % 8 : col + j;
            float in[E::FOLD];
#pragma unroll
            for (int f = 0; f < E::FOLD; ++f) {
                in[f] = alpha * product[row * N + c + 8 * f];
                if (beta != 0.0f) in[f] += beta * float(old.values[j]);
                if (E::BIAS) in[f] += float(bias[c + 8 * f]);
            }
            float y = E::of(in[0], in[E::FOLD - 1]);
            if (E::RESIDUAL) y += float(beside.values[j]);
            if (E::AMAX) epilogue.see(y);
            made.values[j] = TC(y);
        }
        *reinterpret_cast<Vector*>(C + at) = made;
    }
    epilogue.report(amax);
}
