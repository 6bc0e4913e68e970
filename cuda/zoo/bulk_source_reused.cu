// Mistake: the source of a bulk store is overwritten before the store has read it.
// Cure: cp.async.bulk.wait_group.read, and a barrier, before the next write.
// Launch: sm_90a grid 1 block 32 args int32[64]:arange int32[64]
// Says: race
#include "asm.cuh"

__global__ void bulk_source_reused(const int* x, int* y)
{
    __shared__ alignas(16) int s[32];
    for (int turn = 0; turn < 2; turn++) {
        s[threadIdx.x] = 2 * x[32 * turn + threadIdx.x];
        fence_async();
        __syncthreads();
        if (threadIdx.x == 0) {
            bulk_store(&y[32 * turn], s, 128);
            bulk_commit();
#ifdef CURED
            bulk_wait_read();
#endif
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) bulk_wait_read();
}
