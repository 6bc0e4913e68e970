// Mistake: a block arrives at its peer's mbarrier and the peer waits there, both in the scope of a
//   block: what was written before is not ordered.
// Cure: .release.cluster at the arrival and .acquire.cluster at the wait.
// Seen: https://github.com/NVIDIA/cutlass/issues/3324
// Launch: sm_90a grid 2 block 32 args int32[64]:arange int32[32]
// Says: race
#include "cluster.cuh"

__global__ void __cluster_dims__(2, 1, 1) cluster_barrier_of_block_scope(const int* x, int* y)
{
    __shared__ Barrier barrier;
    __shared__ int s[32];
    if (threadIdx.x == 0) {
        init(&barrier, 32);
        fence_init();
    }
    cluster_sync();
    if (cluster_rank() == 1) {
        s[threadIdx.x] = x[32 + threadIdx.x];
#ifdef CURED
        arrive_at<CLUSTER>(0, &barrier);
    } else {
        wait_for<CLUSTER>(&barrier, 0);
#else
        arrive_at<BLOCK>(0, &barrier);
    } else {
        wait_for<BLOCK>(&barrier, 0);
#endif
        y[threadIdx.x] = load_from(1, &s[31 - threadIdx.x]);
    }
    cluster_sync();
}
