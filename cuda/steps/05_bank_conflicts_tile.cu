// 05 in small: 02 with its tiles laid out otherwise, where padding only hurts.
//
// Launch:  that of 02.
// Runs on: sm_75 and later.
//
// PAD:    unused floats at the end of each row, which shift the next row by as many banks.
// LAYOUT: how A's tile lies in shared memory.
#include "epilogue.cuh"
#include "timeline.cuh"

enum Layout {
    ROWS,      // As[row][k], as in 02
    COLUMNS,   // As[k][row]: the tile transposed on its way in
    SWIZZLED,  // As[k][row ^ k]: transposed, each of its rows in an order of its own
};

template <int TILE, int PAD, Layout LAYOUT>
__global__ void __launch_bounds__(TILE * TILE, 2)  // two blocks an SM, swizzled or not
bank_conflicts_tile(
    int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    __shared__ float As[TILE][TILE + PAD], Bs[TILE][TILE + PAD];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int col = blockIdx.x * TILE + tx;
    TIMELINE_BEGIN;

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        MARK(LOAD);
        // Outside the matrices the tiles hold zeros, which add nothing to the sum.
        float a = row < M && k0 + tx < K ? A[(size_t)row * K + k0 + tx] : 0.0f;
        float b = k0 + ty < K && col < N ? B[(size_t)(k0 + ty) * N + col] : 0.0f;
        MARK_ARRIVAL(a, b);
        if (LAYOUT == ROWS) As[ty][tx] = a;
        if (LAYOUT == COLUMNS) As[tx][ty] = a;
        if (LAYOUT == SWIZZLED) As[tx][ty ^ tx] = a;
        Bs[ty][tx] = b;
        MARK(BARRIER);
        __syncthreads();  // the tiles are whole before anyone reads them

        MARK(COMPUTE);
#pragma unroll
        for (int k = 0; k < TILE; ++k) {
            if (LAYOUT == ROWS) a = As[ty][k];
            if (LAYOUT == COLUMNS) a = As[k][ty];
            if (LAYOUT == SWIZZLED) a = As[k][ty ^ k];
            sum += a * Bs[k][tx];
        }
        MARK(BARRIER);
        __syncthreads();  // everyone has read them before they are overwritten
    }

    MARK(STORE);
    if (row < M && col < N) update(&C[(size_t)row * N + col], alpha, sum, beta);
    TIMELINE_END;
}
