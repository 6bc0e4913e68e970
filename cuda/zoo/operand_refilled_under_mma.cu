// Mistake: an operand in tensor memory is copied anew while the product before may still read it: a product and a copy behind it run in no order.
// Cure: wait for the product before the next tcgen05.cp; a product behind a copy needs no wait.
// Launch: sm_100a grid 1 block 128 args float32[512]:zeros
// Says: tensor memory in flight
#include <cuda_fp16.h>
#include "tcgen05.cuh"

__global__ void operand_refilled_under_mma(float* D)
{
    __shared__ alignas(128) half a[128 * 16], b[8 * 16];
    __shared__ Barrier done, last;
    __shared__ unsigned address;
    for (int i = threadIdx.x; i < 128 * 16; i += blockDim.x) a[i] = 1;
    if (threadIdx.x == 0) init(&last, 1);
    const unsigned d = tensor_begin(&address, &done, a, b), operand = d + 16;
    if (threadIdx.x == 0) {
        tensor_copy(operand, a);
        tensor_mma(d, operand, b);
        tensor_commit(&done);
#ifdef CURED
        wait_for(&done, 0);
        fence_after();
#endif
        tensor_copy(operand, a);
        tensor_mma(d, operand, b);
        tensor_commit(&last);
    }
    wait_for(&last, 0);
    fence_after();
    float sum[4];
    tensor_load(sum, own_lanes(d));
    tensor_wait_load();
    if (threadIdx.x % 32 < ROWS)
        for (int i = 0; i < 4; i++) D[4 * threadIdx.x + i] = sum[i];
    __syncthreads();
    if (threadIdx.x < 32) tensor_free<32>(d);
}
