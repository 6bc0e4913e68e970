// Mistake: a value stored to tensor memory is loaded while the store may still be running.
// Cure: tcgen05.wait::st between the store and the load.
// Launch: sm_100a grid 1 block 128 args float32[512]:zeros
// Says: tensor memory in flight
#include <cuda_fp16.h>
#include "tcgen05.cuh"

__global__ void tensor_memory_store_in_flight(float* D)
{
    __shared__ alignas(128) half a[64 * 16], b[8 * 16];
    __shared__ Barrier done;
    __shared__ unsigned address;
    const unsigned d = tensor_begin(&address, &done, a, b);
    tensor_store(own_lanes(d), 1);
#ifdef CURED
    tensor_wait_store();
#endif
    float sum[4];
    tensor_load(sum, own_lanes(d));
    tensor_wait_load();
    for (int i = 0; i < 4; i++) D[4 * threadIdx.x + i] = sum[i];
    __syncthreads();
    if (threadIdx.x < 32) tensor_free<32>(d);
}
