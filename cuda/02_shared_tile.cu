// 02: a block loads a tile of A and a tile of B into shared memory, and all its threads use both.
//
// Changes:    each float is fetched from global memory once a block, not once a warp.
// Bottleneck: 01's requests to global memory, two for every multiply-add of a warp.
// Launch:     grid (ceil(N / TILE), ceil(M / TILE)), block (TILE, TILE), TILE = 32; any M, N, K.
// Runs on:    sm_75 and later.
#include "epilogue.cuh"
#include "timeline.cuh"

template <int TILE>
__global__ void __launch_bounds__(TILE * TILE)
shared_tile(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
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
        As[ty][tx] = a;
        Bs[ty][tx] = b;
        MARK(BARRIER);
        __syncthreads();  // the tiles are whole before anyone reads them

        MARK(COMPUTE);
#pragma unroll
        for (int k = 0; k < TILE; ++k) sum += As[ty][k] * Bs[k][tx];
        MARK(BARRIER);
        __syncthreads();  // everyone has read them before they are overwritten
    }

    MARK(STORE);
    if (row < M && col < N) update(&C[(size_t)row * N + col], alpha, sum, beta);
    TIMELINE_END;
}
