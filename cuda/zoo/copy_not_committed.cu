// Mistake: cp.async is followed by a wait for all groups, and belongs to none: no commit_group
//   stands between.
// Cure: cp.async.commit_group behind the copies.
// Launch: sm_80 grid 1 block 64 args int32[256]:arange int32[64]
// Says: race
#include "asm.cuh"

__global__ void copy_not_committed(const int* x, int* y)
{
    __shared__ alignas(16) int s[256];
    copy16(&s[4 * threadIdx.x], &x[4 * threadIdx.x]);
#ifdef CURED
    commit();
#endif
    wait<0>();
    __syncthreads();
    y[threadIdx.x] = s[255 - threadIdx.x];
}
