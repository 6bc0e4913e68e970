// 14 with the order of its copies fixed.
//
// Changes:    a __syncwarp between the loads of global memory and the stores of the tiles, over
//             which ptxas moves none of either.
// Launch:     as 14.
// Runs on:    sm_80 and later.
//
// LATE:       a thread's last load stands behind its first store, where ptxas puts it in 14.
#include "halves.cuh"
#include "ldmatrix.cuh"
#include "product.cuh"
#include "timeline.cuh"
#include "vector.cuh"

template <int BM, int BN, int BK, int WM, int WN, int VEC, bool LATE>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN))
ldmatrix_loads(
    int M, int N, int K, float alpha, const half* A, const half* B, float beta, float* C)
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
        auto load_b = [&](int i) {
            const bool inside = bk + i * B_STEP < left && col0 + bn < N;
            b[i] = load<VEC>(&from_b[(size_t)(i * B_STEP) * N], inside);
        };
#pragma unroll
        for (int i = 0; i < B_LOADS - LATE; ++i) load_b(i);
        if (LATE) store<VEC>(&As[am][ak], a[0]);
        __syncwarp();  // ptxas moves no access to memory over it
        if (LATE) load_b(B_LOADS - 1);
        from_a += BK;
        from_b += (size_t)BK * N;
        MARK_ARRIVAL(a, b);
#pragma unroll
        for (int i = LATE; i < A_LOADS; ++i) store<VEC>(&As[am + i * A_STEP][ak], a[i]);
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
                unsigned b_k[4];  // 16×16 of B: for two tiles of C beside each other
                ldmatrix_trans(b_k, shared_address(&Bs[k + down][tx + 16 * j + across]));
#pragma unroll
                for (int i = 0; i < TM; ++i)
#pragma unroll
                    for (int c = 0; c < 2; ++c) mma<16>(sum[i][2 * j + c], a_k[i], &b_k[2 * c], 0);
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
