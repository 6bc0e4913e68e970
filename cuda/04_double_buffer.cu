// 04: two tiles of A and two of B: while a block computes from one pair, it fills the other.
//
// Changes:    the next tiles are asked for before the present ones are used; one barrier a tile.
// Bottleneck: the wait for global memory between a tile and the next.
// Launch:     grid (ceil(N / TILE), ceil(M / TILE)), block (TILE, TILE), TILE = 32; any M, N, K.
// Runs on:    sm_75 and later.
//
// STAGED = false: what was loaded is stored to shared memory at once, as tutorials have it.
// STAGED = true:  it stays in registers until the present tiles have been computed on.
#include "epilogue.cuh"
#include "timeline.cuh"

template <int TILE, bool STAGED>
__global__ void __launch_bounds__(TILE * TILE)
double_buffer(
    int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    __shared__ float As[2][TILE][TILE + 1], Bs[2][TILE][TILE + 1];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int col = blockIdx.x * TILE + tx;
    // Outside the matrices the tiles hold zeros, which add nothing to the sum.
    auto load_a = [&](unsigned k) { return row < M && k < K ? A[(size_t)row * K + k] : 0.0f; };
    auto load_b = [&](unsigned k) { return k < K && col < N ? B[(size_t)k * N + col] : 0.0f; };
    TIMELINE_BEGIN;

    // Prologue: nothing to compute on yet, so the first load hides behind nothing.
    MARK(LOAD);
    float a = load_a(tx), b = load_b(ty);
    MARK_ARRIVAL(a, b);
    As[0][ty][tx] = a;
    Bs[0][ty][tx] = b;
    MARK(BARRIER);
    __syncthreads();

    float sum = 0.0f;
    int now = 0;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        const int next = 1 - now;
        MARK(LOAD);
        a = load_a(k0 + TILE + tx);
        b = load_b(k0 + TILE + ty);
        if (!STAGED) {  // a store needs its value: the warp waits here, before it computes
            MARK_ARRIVAL(a, b);
            As[next][ty][tx] = a;
            Bs[next][ty][tx] = b;
        }

        MARK(COMPUTE);
#pragma unroll
        for (int k = 0; k < TILE; ++k) sum += As[now][ty][k] * Bs[now][k][tx];

        if (STAGED) {  // or here, when it has computed
            MARK_ARRIVAL(a, b);
            As[next][ty][tx] = a;
            Bs[next][ty][tx] = b;
        }
        MARK(BARRIER);
        __syncthreads();  // the next tiles are whole, and everyone has read the present ones
        now = next;
    }

    MARK(STORE);
    if (row < M && col < N) update(&C[(size_t)row * N + col], alpha, sum, beta);
    TIMELINE_END;
}
