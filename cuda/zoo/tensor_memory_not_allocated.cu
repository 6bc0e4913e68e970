// Mistake: tensor memory is used that nobody allocated.
// Cure: tcgen05.alloc before the first use, and tcgen05.dealloc after the last.
// Seen: https://github.com/NVIDIA/cutlass/issues/2230
// Launch: sm_100a grid 1 block 128 args float32[512]:zeros
// Says: tensor memory
#include <cuda_fp16.h>
#include "tcgen05.cuh"

__global__ void tensor_memory_not_allocated(float* D)
{
    __shared__ alignas(128) half a[64 * 16], b[8 * 16];
    __shared__ Barrier done;
    __shared__ unsigned address;
    for (int i = threadIdx.x; i < 64 * 16; i += blockDim.x) a[i] = 1;
    b[threadIdx.x] = 1;
    if (threadIdx.x == 0) {
        init(&done, 1);
        fence_init();
    }
#ifdef CURED
    if (threadIdx.x < 32) tensor_alloc<32>(&address);
#else
    if (threadIdx.x == 0) address = 0;
#endif
    fence_async();
    __syncthreads();
    fence_after();
    const unsigned d = address;
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
