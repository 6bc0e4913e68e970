// Mistake: every turn of a ring waits for the parity of the first: the second wait is over at
//   once, or never.
// Cure: the parity flips with each turn of the ring.
// Launch: sm_90a grid 1 block 32 args int32[128]:arange int32[32]
// Says: hazard or error
#include "asm.cuh"

__global__ void stale_phase(const int* x, int* y)
{
    __shared__ Barrier barrier;
    __shared__ alignas(16) int s[32];
    if (threadIdx.x == 0) {
        init(&barrier, 1);
        fence_init();
    }
    __syncthreads();
    int sum = 0;
    for (int turn = 0; turn < 4; turn++) {
        if (threadIdx.x == 0) {
            arrive_expecting(&barrier, 128);
            bulk_load(s, &x[32 * turn], 128, &barrier);
        }
#ifdef CURED
        wait_for(&barrier, turn % 2);
#else
        wait_for(&barrier, 0);
#endif
        sum += s[31 - threadIdx.x];
        __syncthreads();
    }
    y[threadIdx.x] = sum;
}
