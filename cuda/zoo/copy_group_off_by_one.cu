// Mistake: a pipeline commits its copies after it has waited, so that the wait is for nothing.
// Cure: commit before the wait.
// Seen: https://github.com/csarofeen/pytorch/pull/2457
// Launch: sm_80 grid 1 block 16 args int32[256]:arange int32[16]
// Says: race
#include "asm.cuh"

__global__ void copy_group_off_by_one(const int* x, int* y)
{
    __shared__ alignas(16) int s[2][64];
    int sum = 0;
    copy16(&s[0][4 * threadIdx.x], &x[4 * threadIdx.x]);
    commit();
    for (int turn = 0; turn < 4; turn++) {
        if (turn < 3)
            copy16(&s[(turn + 1) % 2][4 * threadIdx.x], &x[64 * (turn + 1) + 4 * threadIdx.x]);
#ifdef CURED
        commit();
        wait<1>();
#else
        wait<1>();
        commit();
#endif
        __syncthreads();
        sum += s[turn % 2][63 - threadIdx.x];
        __syncthreads();
    }
    y[threadIdx.x] = sum;
}
