// Mistake: an accumulator is read behind the wait for its product, but without a fence that orders the load.
// Cure: tcgen05.fence::after_thread_sync between the wait and the load.
// Launch: sm_100a grid 1 block 128 args float32[512]:zeros
// Says: missing tcgen05.fence
#include <cuda_fp16.h>
#include "tcgen05.cuh"

__global__ void tensor_memory_without_fence(float* D)
{
    __shared__ alignas(128) half a[64 * 16], b[8 * 16];
    __shared__ Barrier done;
    __shared__ unsigned address;
    const unsigned d = tensor_begin(&address, &done, a, b);
    if (threadIdx.x == 0) {
        tensor_mma(d, a, b);
        tensor_commit(&done);
    }
    wait_for(&done, 0);
#ifdef CURED
    fence_after();
#endif
    float sum[4];
    tensor_load(sum, own_lanes(d));
    tensor_wait_load();
    if (threadIdx.x % 32 < ROWS)
        for (int i = 0; i < 4; i++) D[4 * threadIdx.x + i] = sum[i];
    __syncthreads();
    if (threadIdx.x < 32) tensor_free<32>(d);
}
