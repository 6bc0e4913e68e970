// Mistake: each warp adds its number to the column of an address; it reaches only its own 32 lanes.
// Cure: add 32 lanes per warp, in bits 16 to 31 of the address.
// Launch: sm_100a grid 1 block 128 args float32[512]:zeros
// Says: tensor memory
#include <cuda_fp16.h>
#include "tcgen05.cuh"

__global__ void tensor_memory_other_lanes(float* D)
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
#ifdef CURED
    tensor_load(sum, d + (threadIdx.x / 32 * 32 << 16));
#else
    tensor_load(sum, d + threadIdx.x / 32 * 4);
#endif
    tensor_wait_load();
    if (threadIdx.x % 32 < ROWS)
        for (int i = 0; i < 4; i++) D[4 * threadIdx.x + i] = sum[i];
    __syncthreads();
    if (threadIdx.x < 32) tensor_free<32>(d);
}
