// Mistake: a block returns while its peer may still read its shared memory.
// Cure: a barrier of the cluster before the kernel returns.
// Seen: https://github.com/facebookexperimental/triton/pull/1105
// Launch: sm_90a grid 2 block 32 args int32[64]:arange int32[64]
// Says: block exited
#include "asm.cuh"

__global__ void __cluster_dims__(2, 1, 1) cluster_early_exit(const int* x, int* y)
{
    __shared__ int s[32];
    const int i = 32 * blockIdx.x + threadIdx.x;
    s[threadIdx.x] = x[i];
    cluster_sync();
    y[i] = load_from(cluster_rank() ^ 1, &s[threadIdx.x]);
#ifdef CURED
    cluster_sync();
#endif
}
