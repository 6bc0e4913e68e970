// Mistake: a block reads its peer's shared memory after a barrier of its own block only.
// Cure: a barrier of the cluster.
// Seen: https://github.com/facebookexperimental/triton/pull/2292
// Launch: sm_90a grid 2 block 32 args int32[64]:arange int32[64]
// Says: race
#include "asm.cuh"

__global__ void __cluster_dims__(2, 1, 1) cluster_without_barrier(const int* x, int* y)
{
    __shared__ int s[32];
    const int i = 32 * blockIdx.x + threadIdx.x;
    s[threadIdx.x] = x[i];
#ifdef CURED
    cluster_sync();
#else
    __syncthreads();
#endif
    y[i] = load_from(cluster_rank() ^ 1, &s[threadIdx.x]);
    cluster_sync();
}
