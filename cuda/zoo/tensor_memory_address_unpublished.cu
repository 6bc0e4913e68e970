// Mistake: warps read the address of tensor memory before the warp that allocates it must have written it.
// Cure: __syncthreads() between tcgen05.alloc and the first read of the address.
// Seen: https://github.com/NVIDIA/cutlass/pull/2835
// Launch: sm_100a grid 1 block 128 args float32[512]:zeros
// Says: race
#include <cuda_fp16.h>
#include "tcgen05.cuh"

__global__ void tensor_memory_address_unpublished(float* D)
{
    __shared__ unsigned address;
    if (threadIdx.x < 32) tensor_alloc<32>(&address);
#ifdef CURED
    __syncthreads();
#endif
    const unsigned d = address;
    tensor_store(own_lanes(d), 1);
    tensor_wait_store();
    float sum[4];
    tensor_load(sum, own_lanes(d));
    tensor_wait_load();
    for (int i = 0; i < 4; i++) D[4 * threadIdx.x + i] = sum[i];
    __syncthreads();
    if (threadIdx.x < 32) tensor_free<32>(d);
}
