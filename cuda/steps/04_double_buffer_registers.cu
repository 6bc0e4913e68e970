// Between 03 and 04: the next tiles wait in registers, and there is one buffer of shared memory.
//
// Launch:  that of 04.
// Runs on: sm_75 and later.
#include "epilogue.cuh"
#include "timeline.cuh"

template <int TILE>
__global__ void __launch_bounds__(TILE * TILE)
double_buffer_registers(
    int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    __shared__ float As[TILE][TILE + 1], Bs[TILE][TILE + 1];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int col = blockIdx.x * TILE + tx;
    // Outside the matrices the tiles hold zeros, which add nothing to the sum.
    auto load_a = [&](unsigned k) { return row < M && k < K ? A[(size_t)row * K + k] : 0.0f; };
    auto load_b = [&](unsigned k) { return k < K && col < N ? B[(size_t)k * N + col] : 0.0f; };
    TIMELINE_BEGIN;

    MARK(LOAD);
    float a = load_a(tx), b = load_b(ty);
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        MARK_ARRIVAL(a, b);
        As[ty][tx] = a;
        Bs[ty][tx] = b;
        MARK(BARRIER);
        __syncthreads();  // the tiles are whole before anyone reads them

        MARK(LOAD);
        a = load_a(k0 + TILE + tx);
        b = load_b(k0 + TILE + ty);
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
