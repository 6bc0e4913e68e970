// 07 in small: 02 with padded tiles and a second pair of them, as tutorials have it.
//
// Launch:  that of 02.
// Runs on: sm_75 and later.
//
// BUFFERS: pairs of tiles: with 2, one barrier a tile is enough.
// STAGED:  loaded values wait in registers while the block computes; otherwise they are stored at
//          once, and a warp waits for them before it computes.
// UNROLL:  tiles of a pass of the loop: with 2, each of two buffers has a constant address.
#include "epilogue.cuh"
#include "timeline.cuh"

template <int TILE, int BUFFERS, bool STAGED, int UNROLL>
__global__ void __launch_bounds__(TILE * TILE)
double_buffer_tile(
    int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    constexpr bool AHEAD = STAGED || BUFFERS == 2;  // the next tiles are asked for, or these
    static_assert(UNROLL == 1 || UNROLL % BUFFERS == 0, "a step of a pass has its buffer");
    __shared__ float As[BUFFERS][TILE][TILE + 1], Bs[BUFFERS][TILE][TILE + 1];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int col = blockIdx.x * TILE + tx;
    TIMELINE_BEGIN;

    float a, b, sum = 0.0f;
    // Outside the matrices the tiles hold zeros, which add nothing to the sum.
    auto load = [&](int k0) {
        MARK(LOAD);
        const unsigned ka = k0 + tx, kb = k0 + ty;
        a = row < M && ka < K ? A[(size_t)row * K + ka] : 0.0f;
        b = kb < K && col < N ? B[(size_t)kb * N + col] : 0.0f;
    };
    auto store = [&](int buffer) {
        MARK_ARRIVAL(a, b);
        As[buffer][ty][tx] = a;
        Bs[buffer][ty][tx] = b;
    };
    auto barrier = [&] {
        MARK(BARRIER);
        __syncthreads();
    };

    if (AHEAD) {  // nothing to compute on yet, so the first load hides behind nothing
        load(0);
        store(0);
        barrier();
    }
    for (int k0 = 0; k0 < K; k0 += UNROLL * TILE) {
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            if (u > 0 && k0 + u * TILE >= K) break;
            const int now = UNROLL == 1 ? k0 / TILE % BUFFERS : u % BUFFERS;
            const int next = (now + 1) % BUFFERS;
            if (AHEAD) {
                load(k0 + (u + 1) * TILE);
                if (!STAGED) store(next);  // the warp waits here, before it computes
            } else {
                load(k0 + u * TILE);
                store(0);
                barrier();  // the tiles are whole before anyone reads them
            }
            MARK(COMPUTE);
#pragma unroll
            for (int k = 0; k < TILE; ++k) sum += As[now][ty][k] * Bs[now][k][tx];
            if (BUFFERS == 1) barrier();  // everyone has read them before they are overwritten
            if (STAGED) store(next);      // or here, when it has computed
            if (AHEAD) barrier();         // the next tiles are whole
        }
    }

    MARK(STORE);
    if (row < M && col < N) update(&C[(size_t)row * N + col], alpha, sum, beta);
    TIMELINE_END;
}
