// Mistake: a block says that its bulk store is done when the source has been read: what it writes
//   may still be on its way.
// Cure: cp.async.bulk.wait_group, without .read, before the signal.
// Seen: https://github.com/HazyResearch/ThunderKittens/issues/194
// Seen: https://github.com/triton-lang/triton/pull/10415
// Launch: sm_90a grid 2 block 32 args int32[32]:arange int32[32] int32[1] int32[32]
// Says: race
#include "asm.cuh"

__global__ void stored_and_signalled(const int* x, int* parts, int* flag, int* y)
{
    __shared__ alignas(16) int s[32];
    if (blockIdx.x == 0) {
        s[threadIdx.x] = x[threadIdx.x];
        fence_async();
        __syncwarp();
        if (threadIdx.x > 0) return;
        bulk_store(parts, s, 128);
        bulk_commit();
#ifdef CURED
        asm volatile("cp.async.bulk.wait_group 0;\nfence.proxy.async;" ::: "memory");
#else
        bulk_wait_read();
#endif
        __threadfence();
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) { }
        __threadfence();
        y[threadIdx.x] = parts[threadIdx.x];
    }
}
