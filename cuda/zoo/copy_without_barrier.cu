// Mistake: each thread waits for its own cp.async and reads what others have copied.
// Cure: __syncthreads() after the wait.
// Launch: sm_80 grid 1 block 64 args int32[256]:arange int32[64]
// Says: race
#include "asm.cuh"

__global__ void copy_without_barrier(const int* x, int* y)
{
    __shared__ alignas(16) int s[256];
    copy16(&s[4 * threadIdx.x], &x[4 * threadIdx.x]);
    commit();
    wait<0>();
#ifdef CURED
    __syncthreads();
#endif
    y[threadIdx.x] = s[255 - threadIdx.x];
}
