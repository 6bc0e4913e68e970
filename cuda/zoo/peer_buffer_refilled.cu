// Mistake: only the block that issued a pair's product waits for it; the other one refills its half of A while the product may still read it.
// Cure: commit to the mbarriers of both blocks, and wait in both.
// Seen: https://github.com/NVIDIA/cutlass/pull/3647
// Launch: sm_100a grid 2 block 128 args float32[1024]:zeros
// Says: race
#include <cuda_fp16.h>
#include "pair.cuh"

__global__ void __cluster_dims__(2, 1, 1) peer_buffer_refilled(float* D)
{
    __shared__ alignas(128) half a[128 * 16], b[8 * 16];
    __shared__ Barrier done, last;
    __shared__ unsigned address;
    const bool leads = cluster_rank() == 0;
    for (int i = threadIdx.x; i < 128 * 16; i += blockDim.x) a[i] = 1;
    for (int i = threadIdx.x; i < 8 * 16; i += blockDim.x) b[i] = 1;
    if (threadIdx.x == 0) {
        init(&done, 1);
        init(&last, 1);
        fence_init();
    }
    cluster_sync();
    if (threadIdx.x < 32) pair_alloc(&address);
    fence_async();
    cluster_sync();
    fence_after();
    if (leads && threadIdx.x == 0) {
        pair_mma(address, a, b);
#ifdef CURED
        pair_commit(&done, 3);
#else
        pair_commit(&done, 1);
#endif
    }
#ifdef CURED
    wait_for(&done, 0);
#else
    if (leads) wait_for(&done, 0);
#endif
    for (int i = threadIdx.x; i < 128 * 16; i += blockDim.x) a[i] = 2;
    fence_async();
    cluster_sync();
    fence_after();
    if (leads && threadIdx.x == 0) {
        pair_mma(address, a, b);
        pair_commit(&last, 3);
    }
    wait_for(&last, 0);
    fence_after();
    float sum[4];
    pair_load(sum, address);
    for (int i = 0; i < 4; i++) D[512 * cluster_rank() + 4 * threadIdx.x + i] = sum[i];
    cluster_sync();
    if (threadIdx.x < 32) pair_free(address);
}
