// Mistake: tensor memory is allocated and never freed.
// Cure: tcgen05.dealloc before the kernel ends.
// Launch: sm_100a grid 1 block 128 args float32[512]:zeros
// Says: tensor memory
#include <cuda_fp16.h>
#include "tcgen05.cuh"

__global__ void tensor_memory_not_freed(float* D)
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
    fence_after();
    float sum[4];
    tensor_load(sum, own_lanes(d));
    tensor_wait_load();
    if (threadIdx.x % 32 < ROWS)
        for (int i = 0; i < 4; i++) D[4 * threadIdx.x + i] = sum[i];
#ifdef CURED
    __syncthreads();
    if (threadIdx.x < 32) tensor_free<32>(d);
#endif
}
