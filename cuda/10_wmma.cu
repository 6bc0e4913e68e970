// 10: tensor cores. A warp multiplies 16×16 fragments, loaded straight from global memory.
//
// Changes:    A and B are halves; a warp's wmma replaces 4096 multiply-adds of single threads.
// Bottleneck: the FP32 units, which need an instruction for every 32 multiply-adds.
// Launch:     grid (ceil(N / BN), ceil(M / BM)), BM = 16 * FM * WARPS_M, BN = 16 * FN * WARPS_N,
//             block 32 * WARPS_M * WARPS_N; any M, N, K. VEC = 8 asks for N and K that are
//             multiples of 8 and pointers aligned to 32 bytes; VEC = 1 for nothing.
// Runs on:    sm_75 and later.
//
// FM, FN:    fragments of C that a warp owns, down and across.
// B_BY_ROWS: B is K×N, row by row; otherwise it is kept column by column.
#include "timeline.cuh"
#include "wmma.cuh"

template <bool BY_ROWS> struct FragmentOfB { using type = FragmentB; };
template <> struct FragmentOfB<false> {
    using type = wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major>;
};

template <int WARPS_M, int WARPS_N, int FM, int FN, bool B_BY_ROWS, int VEC>
__global__ void __launch_bounds__(32 * WARPS_M * WARPS_N)
wmma_direct(int M, int N, int K, float alpha, const half* A, const half* B, float beta, float* C)
{
    constexpr bool WHOLE = VEC == 8;
    __shared__ __align__(32) float edges[WARPS_M * WARPS_N][EDGE];
    const int warp = threadIdx.x / 32;
    const int row = (blockIdx.y * WARPS_M + warp / WARPS_N) * 16 * FM;
    const int col = (blockIdx.x * WARPS_N + warp % WARPS_N) * 16 * FN;
    if (row >= M || col >= N) return;  // no barrier of the block follows
    TIMELINE_BEGIN;

    Sum sum[FM][FN];
#pragma unroll
    for (int i = 0; i < FM; ++i)
#pragma unroll
        for (int j = 0; j < FN; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
    FragmentA a[FM];
    typename FragmentOfB<B_BY_ROWS>::type b[FN];
    auto multiply = [&] {
#pragma unroll
        for (int i = 0; i < FM; ++i)
#pragma unroll
            for (int j = 0; j < FN; ++j) wmma::mma_sync(sum[i][j], a[i], b[j], sum[i][j]);
    };
    const bool inside = row + 16 * FM <= M && col + 16 * FN <= N;
    int k = 0;
    if (WHOLE && inside) {
        const half* from_a = &A[(size_t)row * K];
        const half* from_b = &B[B_BY_ROWS ? col : (size_t)col * K];
        for (; k + 16 <= K; k += 16) {
            MARK(LOAD);
#pragma unroll
            for (int i = 0; i < FM; ++i)
                wmma::load_matrix_sync(a[i], from_a + (size_t)(16 * i) * K, K);
#pragma unroll
            for (int j = 0; j < FN; ++j)
                if (B_BY_ROWS) wmma::load_matrix_sync(b[j], from_b + 16 * j, N);
                else wmma::load_matrix_sync(b[j], from_b + (size_t)(16 * j) * K, K);
            from_a += 16;
            from_b += B_BY_ROWS ? (size_t)16 * N : 16;
            MARK_ARRIVAL(a, b);
            multiply();
        }
    }
    for (; k < K; k += 16) {  // what reaches over an edge, or whose rows begin anywhere
        MARK(LOAD);
#pragma unroll
        for (int i = 0; i < FM; ++i) load_edge(a[i], edges[warp], A, M, K, row + 16 * i, k);
#pragma unroll
        for (int j = 0; j < FN; ++j)
            if (B_BY_ROWS) load_edge(b[j], edges[warp], B, K, N, k, col + 16 * j);
            else load_edge(b[j], edges[warp], B, N, K, col + 16 * j, k);  // its transpose, by rows
        MARK_ARRIVAL(a, b);
        multiply();
    }

    MARK(STORE);
#pragma unroll
    for (int i = 0; i < FM; ++i)
#pragma unroll
        for (int j = 0; j < FN; ++j) {
            const int r = row + 16 * i, c = col + 16 * j;
            if (r < M && c < N)
                update_fragment<WHOLE>(C, M, N, r, c, alpha, sum[i][j], beta, edges[warp]);
        }
    TIMELINE_END;
}
