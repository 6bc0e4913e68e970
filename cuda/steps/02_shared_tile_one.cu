// Between 01 and 02: only one of the two tiles is in shared memory; and 02 in another order of tiles.
//
// Launch:  that of 02.
// Runs on: sm_75 and later.
//
// A_SHARED, B_SHARED: whether that matrix is read through a tile, as in 02, or directly, as in 01.
// GROUP:              rows of blocks that run side by side; with 1 the order is that of 02.
#include "epilogue.cuh"
#include "raster.cuh"
#include "timeline.cuh"

template <int TILE, bool A_SHARED, bool B_SHARED, int GROUP>
__global__ void __launch_bounds__(TILE * TILE, 2)  // as many blocks per SM as in 02
shared_tile_one(
    int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int index = blockIdx.x + gridDim.x * blockIdx.y;
    const int2 block = GROUP == 1 ? make_int2(blockIdx.y, blockIdx.x)
                                  : raster<GROUP>(index, gridDim.y, gridDim.x);
    const int row = block.x * TILE + ty;
    const int col = block.y * TILE + tx;
    // Direct reads outside the matrices give the last row or column, whose result is not stored.
    const float* const a_row = &A[(size_t)min(row, M - 1) * K];
    const float* const b_col = &B[min(col, N - 1)];
    TIMELINE_BEGIN;

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        MARK(LOAD);
        float a = 0.0f, b = 0.0f;
        if (A_SHARED && row < M && k0 + tx < K) a = A[(size_t)row * K + k0 + tx];
        if (B_SHARED && k0 + ty < K && col < N) b = B[(size_t)(k0 + ty) * N + col];
        MARK_ARRIVAL(a, b);
        if (A_SHARED) As[ty][tx] = a;
        if (B_SHARED) Bs[ty][tx] = b;
        MARK(BARRIER);
        __syncthreads();  // the tiles are whole before anyone reads them

        MARK(COMPUTE);
        auto step = [&](int k) {
            a = A_SHARED ? As[ty][k] : a_row[k0 + k];
            b = B_SHARED ? Bs[k][tx] : b_col[(size_t)(k0 + k) * N];
            sum += a * b;
        };
        if (k0 + TILE <= K) {
#pragma unroll(A_SHARED && B_SHARED ? TILE : 8)  // more direct reads at once take registers
            for (int k = 0; k < TILE; ++k) step(k);
        } else {
            for (int k = 0; k0 + k < K; ++k) step(k);
        }
        MARK(BARRIER);
        __syncthreads();  // everyone has read them before they are overwritten
    }

    MARK(STORE);
    if (row < M && col < N) update(&C[(size_t)row * N + col], alpha, sum, beta);
    TIMELINE_END;
}
