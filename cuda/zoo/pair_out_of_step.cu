// Mistake: a block issues a product for its pair behind a barrier of its own alone: the other one may not have allocated its tensor memory yet, nor filled its half of the operands.
// Cure: a barrier of the cluster between the allocation and the first product.
// Seen: https://github.com/NVIDIA/cutlass/issues/3435
// Launch: sm_100a grid 2 block 128 args float32[1024]:zeros
// Says: hazard or error
#include <cuda_fp16.h>
#include "pair.cuh"

__global__ void __cluster_dims__(2, 1, 1) pair_out_of_step(float* D)
{
    __shared__ alignas(128) half a[128 * 16], b[8 * 16];
    __shared__ Barrier done;
    __shared__ unsigned address;
    if (threadIdx.x == 0) {
        init(&done, 1);
        fence_init();
    }
    cluster_sync();
    for (int i = threadIdx.x; i < 128 * 16; i += blockDim.x) a[i] = 1;
    for (int i = threadIdx.x; i < 8 * 16; i += blockDim.x) b[i] = 1;
    if (threadIdx.x < 32) pair_alloc(&address);
    fence_async();
#ifdef CURED
    cluster_sync();
#else
    __syncthreads();
#endif
    fence_after();
    if (cluster_rank() == 0 && threadIdx.x == 0) {
        pair_mma(address, a, b);
        pair_commit(&done, 3);
    }
    wait_for(&done, 0);
    fence_after();
    float sum[4];
    pair_load(sum, address);
    for (int i = 0; i < 4; i++) D[512 * cluster_rank() + 4 * threadIdx.x + i] = sum[i];
    cluster_sync();
    if (threadIdx.x < 32) pair_free(address);
}
