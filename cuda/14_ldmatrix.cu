// 14: fragments by ldmatrix, products by mma.sync, layouts that are documented.
//
// Changes:    a warp names the rows that it wants and multiplies with mma, whose registers it
//             knows; 128×128×32 in one buffer, so that two blocks share an SM.
// Bottleneck: 13's fragments, which can only be loaded as the compiler likes.
// Launch:     grid (ceil(N / BN), ceil(M / BM)), block 32 * BM / WM * BN / WN; any M, N, K. VEC = 8
//             asks for N and K that are multiples of 8 and pointers aligned to 16 bytes; VEC = 1
//             for nothing.
// Runs on:    sm_75 and later; with MMA_K = 16 sm_80 and later.
//
// MMA_K:          depth of a product, 8 or 16: mma.m16n8k8 twice, or mma.m16n8k16 once.
// SWAPPED = true: the worklog's first attempt, kept because it is instructive. For the tile of B
//                 the lane's number is taken as a column where it must be a row. Never right.
#include "halves.cuh"
#include "ldmatrix.cuh"
#include "product.cuh"
#include "timeline.cuh"
#include "vector.cuh"

template <int BM, int BN, int BK, int WM, int WN, int VEC, int MMA_K,
          bool SWAPPED>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN))
ldmatrix_mma(int M, int N, int K, float alpha, const half* A, const half* B, float beta, float* C)
{
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
    constexpr int TM = WM / 16, TN = WN / 8;  // products of 16×8 that make a warp's tile
    constexpr int PAIR = VEC == 8 ? 2 : 1;    // a lane's neighbours in C, stored at once
    constexpr int A_STEP = THREADS / (BK / VEC), B_STEP = THREADS / (BN / VEC);
    constexpr int A_LOADS = BM / A_STEP, B_LOADS = BK / B_STEP;
    static_assert(A_LOADS * VEC * THREADS == BM * BK && B_LOADS * VEC * THREADS == BK * BN);
    // Eight halves of padding: the rows of an 8×8 matrix, 16 bytes each, meet different banks.
    __shared__ __align__(16) half As[BM][BK + 8], Bs[BK][BN + 8];
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int am = tid / (BK / VEC), ak = tid % (BK / VEC) * VEC;
    const int bk = tid / (BN / VEC), bn = tid % (BN / VEC) * VEC;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int ty = warp / (BN / WN) * WM, tx = warp % (BN / WN) * WN;
    // The row of eight halves whose address this lane gives, in 16×16 elements of either tile.
    const int down = lane % 16, across = lane / 16 * 8;
    TIMELINE_BEGIN;

    const half* from_a = &A[(size_t)(row0 + am) * K + ak];
    const half* from_b = &B[(size_t)bk * N + col0 + bn];
    float sum[TM][TN][4] = {};
    for (int left = K; left > 0; left -= BK) {
        MARK(LOAD);
        Pack<VEC> a[A_LOADS], b[B_LOADS];
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const bool inside = row0 + am + i * A_STEP < M && ak < left;
            a[i] = load<VEC>(&from_a[(size_t)(i * A_STEP) * K], inside);
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const bool inside = bk + i * B_STEP < left && col0 + bn < N;
            b[i] = load<VEC>(&from_b[(size_t)(i * B_STEP) * N], inside);
        }
        from_a += BK;
        from_b += (size_t)BK * N;
        MARK_ARRIVAL(a, b);
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) store<VEC>(&As[am + i * A_STEP][ak], a[i]);
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) store<VEC>(&Bs[bk + i * B_STEP][bn], b[i]);
        MARK(BARRIER);
        __syncthreads();  // the tiles are whole before anyone reads them

        MARK(COMPUTE);
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned a_k[TM][4];
#pragma unroll
            for (int i = 0; i < TM; ++i)
                ldmatrix(a_k[i], shared_address(&As[ty + 16 * i + down][k + across]));
#pragma unroll
            for (int j = 0; j < TN / 2; ++j) {
                const half* row = SWAPPED ? &Bs[k + across][tx + 16 * j + down]
                                          : &Bs[k + down][tx + 16 * j + across];
                unsigned b_k[4];  // 16×16 of B: for two tiles of C beside each other
                ldmatrix_trans(b_k, shared_address(row));
                // 16×16 of A and 16×8 of B: one product of that depth, or two of half of it.
#pragma unroll
                for (int h = 0; h < 16 / MMA_K; ++h)
#pragma unroll
                    for (int i = 0; i < TM; ++i)
#pragma unroll
                        for (int c = 0; c < 2; ++c)
                            mma<MMA_K>(sum[i][2 * j + c], a_k[i], &b_k[2 * c], h);
            }
        }
        MARK(BARRIER);
        __syncthreads();  // everyone has read them before they are overwritten
    }

    MARK(STORE);
    const int row = row0 + ty + lane / 4, col = col0 + tx + lane % 4 * 2;
    float* to = &C[(size_t)row * N + col];
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            if (row + 16 * i + 8 * h >= M) break;
#pragma unroll
            for (int j = 0; j < TN; ++j)
#pragma unroll
                for (int c = 0; c < 2; c += PAIR)
                    if (col + 8 * j + c < N)
                        update<PAIR>(&to[8 * j + c], alpha, &sum[i][j][2 * h + c], beta);
            to += (size_t)8 * N;
        }
    TIMELINE_END;
}
