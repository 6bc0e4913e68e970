// Mistake: a barrier, but no wait for the cp.async before it: the barrier does not wait for
//   copies.
// Cure: cp.async.wait_group 0 before the barrier.
// Seen: https://github.com/NVIDIA/Fuser/pull/3438
// Launch: sm_80 grid 1 block 64 args int32[256]:arange int32[64]
// Says: race
#include "asm.cuh"

__global__ void copy_not_awaited(const int* x, int* y)
{
    __shared__ alignas(16) int s[256];
    copy16(&s[4 * threadIdx.x], &x[4 * threadIdx.x]);
    commit();
#ifdef CURED
    wait<0>();
#endif
    __syncthreads();
    y[threadIdx.x] = s[255 - threadIdx.x];
}
