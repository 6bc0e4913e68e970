// Mistake: the producer of a ring begins with parity 0, for buffers that nobody has filled yet and
//   nobody will free.
// Cure: it begins with parity 1: the phase before the first counts as complete.
// Seen: https://github.com/Dao-AILab/flash-attention/issues/1317
// Seen: https://github.com/tile-ai/tilelang/pull/3087
// Launch: sm_90a grid 1 block 64 args int32[128]:arange int32[32]
// Says: Deadlock
#include "asm.cuh"

__global__ void producer_parity(const int* x, int* y)
{
    __shared__ Barrier filled, freed;
    __shared__ alignas(16) int s[32];
    if (threadIdx.x == 0) {
        init(&filled, 1);
        init(&freed, 32);
        fence_init();
    }
    __syncthreads();
    if (threadIdx.x >= 32) {
        if (threadIdx.x > 32) return;
        for (int turn = 0; turn < 4; turn++) {
#ifdef CURED
            wait_for(&freed, (turn + 1) % 2);
#else
            wait_for(&freed, turn % 2);
#endif
            arrive_expecting(&filled, 128);
            bulk_load(s, &x[32 * turn], 128, &filled);
        }
    } else {
        int sum = 0;
        for (int turn = 0; turn < 4; turn++) {
            wait_for(&filled, turn % 2);
            sum += s[31 - threadIdx.x];
            fence_async();
            arrive(&freed);
        }
        y[threadIdx.x] = sum;
    }
}
