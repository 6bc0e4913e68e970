// Mistake: an accumulator in tensor memory is read while the product may still be running.
// Cure: wait on the mbarrier that tcgen05.commit arrives at.
// Launch: sm_100a grid 1 block 128 args float32[512]:zeros
// Says: tensor memory in flight
#include <cuda_fp16.h>
#include "tcgen05.cuh"

__global__ void tensor_memory_not_awaited(float* D)
{
    __shared__ alignas(128) half a[64 * 16], b[8 * 16];
    __shared__ Barrier done;
    __shared__ unsigned address;
    const unsigned d = tensor_begin(&address, &done, a, b);
    if (threadIdx.x == 0) {
        tensor_mma(d, a, b);
        tensor_commit(&done);
    }
#ifdef CURED
    wait_for(&done, 0);
#endif
    fence_after();
    float sum[4];
    tensor_load(sum, own_lanes(d));
    tensor_wait_load();
    if (threadIdx.x % 32 < ROWS)
        for (int i = 0; i < 4; i++) D[4 * threadIdx.x + i] = sum[i];
#ifndef CURED
    wait_for(&done, 0);
#endif
    __syncthreads();
    if (threadIdx.x < 32) tensor_free<32>(d);
}
