// WMMA fragments of 16×16, and what to do with them at the edge of a matrix.
//
// Which lane holds which element is not documented. So a fragment is loaded and stored whole, or
// each of its elements gets the same treatment.
#pragma once

#include <mma.h>

#include "epilogue.cuh"
#include "vector.cuh"

namespace wmma = nvcuda::wmma;

using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major>;
using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

enum {
    PAD = 8,                 // elements: rows of fragments meet different banks
    EDGE = 16 * (16 + PAD),  // floats: room in shared memory for one fragment
};

// The fragment of a matrix that begins at (row, col), zeros where it reaches over the edge. It goes
// through `edge`, which belongs to this warp alone, and asks nothing of rows and pointers.
template <typename Fragment>
__device__ inline void load_edge(
    Fragment& fragment, float* edge, const half* from, int rows, int cols, int row, int col)
{
    from += (size_t)row * cols + col;
    half* staged = reinterpret_cast<half*>(edge);
    __syncwarp();  // every lane has what was staged before
    for (int i = threadIdx.x % 32; i < 16 * 16; i += 32) {
        const int r = i / 16, c = i % 16;
        const bool inside = row + r < rows && col + c < cols;
        staged[r * (16 + PAD) + c] = inside ? from[(size_t)r * cols + c] : half(0.0f);
    }
    __syncwarp();
    wmma::load_matrix_sync(fragment, staged, 16 + PAD);
}

// C = alpha * sum + beta * C for the fragment that begins at (row, col). WHOLE: rows begin on 16
// bytes and C on 32, so that a fragment inside may be stored at once; others go through `edge`.
template <bool WHOLE>
__device__ inline void update_fragment(
    float* C, int M, int N, int row, int col, float alpha, Sum& sum, float beta, float* edge)
{
    float* to = &C[(size_t)row * N + col];
    if (WHOLE && row + 16 <= M && col + 16 <= N) {
        if (beta == 0.0f) {
            for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= alpha;
        } else {
            Sum c;
            wmma::load_matrix_sync(c, to, N, wmma::mem_row_major);
            for (int i = 0; i < sum.num_elements; ++i) sum.x[i] = alpha * sum.x[i] + beta * c.x[i];
        }
        wmma::store_matrix_sync(to, sum, N, wmma::mem_row_major);
        return;
    }
    __syncwarp();
    wmma::store_matrix_sync(edge, sum, 16 + PAD, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x % 32; i < 16 * 16; i += 32) {
        const int r = i / 16, c = i % 16;
        if (row + r < M && col + c < N)
            update(&to[(size_t)r * N + c], alpha, edge[r * (16 + PAD) + c], beta);
    }
}

// C = alpha * sum + beta * C for FN fragments side by side, from (row, col) on: laid down in the
// warp's own `slice`, 16 rows of 16 FN + PAD floats, and written from there row by row.
template <int VEC, int FN>
__device__ inline void update_slice(
    float* C, int M, int N, int row, int col, float alpha, const Sum (&sum)[FN], float beta,
    float* slice)
{
    constexpr int COLS = 16 * FN, STRIDE = COLS + PAD;
    __syncwarp();  // every lane has written what lay here before
#pragma unroll
    for (int j = 0; j < FN; ++j)
        wmma::store_matrix_sync(slice + 16 * j, sum[j], STRIDE, wmma::mem_row_major);
    __syncwarp();
#pragma unroll
    for (int i = threadIdx.x % 32 * VEC; i < 16 * COLS; i += 32 * VEC) {
        const int r = i / COLS, c = i % COLS;
        float values[VEC];
        load<VEC>(values, &slice[r * STRIDE + c]);
        if (row + r < M && col + c < N)
            update<VEC>(&C[(size_t)(row + r) * N + col + c], alpha, values, beta);
    }
}
