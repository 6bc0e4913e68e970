// Mistake: a pipeline's next copy goes into the stage that other warps still read.
// Cure: a barrier between the last read of a stage and the copy into it.
// Launch: sm_80 grid 1 block 64 args int32[256]:arange int32[64]
// Says: race
#include "asm.cuh"

__global__ void copy_over_a_read(const int* x, int* y)
{
    __shared__ alignas(16) int s[64];
    int sum = 0;
    for (int turn = 0; turn < 4; turn++) {
        if (threadIdx.x < 16) copy16(&s[4 * threadIdx.x], &x[64 * turn + 4 * threadIdx.x]);
        commit();
        wait<0>();
        __syncthreads();
        sum += s[63 - threadIdx.x];
#ifdef CURED
        __syncthreads();
#endif
    }
    y[threadIdx.x] = sum;
}
