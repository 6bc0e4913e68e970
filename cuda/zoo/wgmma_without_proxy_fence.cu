// Mistake: threads write the operands, and wgmma reads them through the asynchronous proxy.
// Cure: fence.proxy.async by every writer, before the barrier.
// Seen: https://github.com/sgl-project/sglang/pull/39124
// Launch: sm_90a grid 1 block 128 args float16[1024]:ones float16[128]:ones float32[512]:zeros
// Says: missing proxy fence
#include <cuda_fp16.h>
#include "asm.cuh"

__global__ void wgmma_without_proxy_fence(const half* A, const half* B, float* D)
{
    __shared__ alignas(128) half a[64 * 16], b[16 * 8];
    for (int i = threadIdx.x; i < 64 * 16; i += 128) a[i] = A[i];
    b[threadIdx.x] = B[threadIdx.x];
#ifdef CURED
    fence_async();
#endif
    __syncthreads();
    float d[4] = {0, 0, 0, 0};
    wgmma_fence();
    wgmma(d, descriptor(a, 128, 256), descriptor(b, 128, 256));
    wgmma_commit();
    wgmma_wait();
    for (int i = 0; i < 4; i++) D[4 * threadIdx.x + i] = d[i];
}
