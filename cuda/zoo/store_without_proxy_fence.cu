// Mistake: threads write shared memory, a barrier, and a bulk store reads it through the other
//   proxy.
// Cure: fence.proxy.async by every writer, before the barrier.
// Seen: https://github.com/MoonshotAI/FlashKDA/issues/24
// Launch: sm_90a grid 1 block 64 args int32[64]:arange int32[64]
// Says: missing proxy fence
#include "asm.cuh"

__global__ void store_without_proxy_fence(const int* x, int* y)
{
    __shared__ alignas(16) int s[64];
    s[threadIdx.x] = 2 * x[threadIdx.x];
#ifdef CURED
    fence_async();
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_store(y, s, 256);
        bulk_commit();
        bulk_wait_read();
    }
}
