// Mistake: a bulk copy refills a stage that has been read through the generic proxy, and no
//   barrier waits for the readers.
// Cure: a barrier between the last read and the copy.
// Seen: https://github.com/NVIDIA/TransformerEngine/pull/2695
// Seen: https://github.com/deepseek-ai/DeepEP/pull/642
// Launch: sm_90a grid 1 block 64 args int32[256]:arange int32[64]
// Says: race
#include "asm.cuh"

__global__ void load_over_a_read(const int* x, int* y)
{
    __shared__ Barrier barrier;
    __shared__ alignas(16) int s[64];
    if (threadIdx.x == 0) {
        init(&barrier, 1);
        fence_init();
    }
    __syncthreads();
    int sum = 0;
    for (int turn = 0; turn < 4; turn++) {
        if (threadIdx.x == 0) {
            arrive_expecting(&barrier, 256);
            bulk_load(s, &x[64 * turn], 256, &barrier);
        }
        wait_for(&barrier, turn % 2);
        sum += s[63 - threadIdx.x];
#ifdef CURED
        __syncthreads();
#endif
    }
    y[threadIdx.x] = sum;
}
