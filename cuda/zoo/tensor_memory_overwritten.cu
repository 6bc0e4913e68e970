// Mistake: the next product overwrites an accumulator that another warp is still loading.
// Cure: tcgen05.wait::ld before the barrier that lets the next product begin.
// Launch: sm_100a grid 1 block 128 args float32[512]:zeros
// Says: tensor memory in flight
#include <cuda_fp16.h>
#include "tcgen05.cuh"

__global__ void tensor_memory_overwritten(float* D)
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
#ifdef CURED
    tensor_wait_load();
#endif
    if (threadIdx.x % 32 < ROWS)
        for (int i = 0; i < 4; i++) D[4 * threadIdx.x + i] = sum[i];
    fence_before();
    __syncthreads();
    if (threadIdx.x == 0) {
        fence_after();
        tensor_mma(d, a, b);
        tensor_commit(&done);
    }
    wait_for(&done, 1);
    __syncthreads();
    if (threadIdx.x < 32) tensor_free<32>(d);
}
