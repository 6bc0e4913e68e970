// 01: one thread computes one element of C, straight from global memory.
//
// Changes:    nothing yet; this is where the ladder starts.
// Bottleneck: every multiply-add asks memory for two floats.
// Launch:     grid (ceil(N / TILE), ceil(M / TILE)), block (TILE, TILE), TILE = 32; any M, N, K.
// Runs on:    sm_75 and later.
//
// COALESCED = true:  neighbouring threads of a warp own neighbouring columns of C.
// COALESCED = false: they own neighbouring rows, and each load scatters over memory.
#include "epilogue.cuh"
#include "timeline.cuh"

template <int TILE, bool COALESCED>
__global__ void __launch_bounds__(TILE * TILE)
naive(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    const int row = blockIdx.y * TILE + (COALESCED ? threadIdx.y : threadIdx.x);
    const int col = blockIdx.x * TILE + (COALESCED ? threadIdx.x : threadIdx.y);
    if (row >= M || col >= N) return;
    TIMELINE_BEGIN;

    float sum = 0.0f;
    TIMELINE_UNROLL
    for (int k = 0; k < K; ++k) {
        TIMELINE_SAMPLE(k % 4 == 0);  // a mark costs as much as a step
        MARK(LOAD);
        float a = A[(size_t)row * K + k];
        float b = B[(size_t)k * N + col];
        MARK_ARRIVAL(a, b);
        sum += a * b;
    }

    TIMELINE_SAMPLE(true);
    MARK(STORE);
    update(&C[(size_t)row * N + col], alpha, sum, beta);
    TIMELINE_END;
}
