// Mistake: the thread that issued a bulk store returns while the store may still read shared
//   memory.
// Cure: cp.async.bulk.wait_group.read before it returns.
// Launch: sm_90a grid 1 block 32 args int32[32]:arange int32[32]
// Says: block exited
#include "asm.cuh"

__global__ void bulk_source_abandoned(const int* x, int* y)
{
    __shared__ alignas(16) int s[32];
    s[threadIdx.x] = 2 * x[threadIdx.x];
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_store(y, s, 128);
        bulk_commit();
#ifdef CURED
        bulk_wait_read();
#endif
    }
}
