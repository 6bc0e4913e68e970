// Mistake: a copy goes to both blocks of a cluster; one waits for it and meets the other, whose own
//   bytes may still be on their way.
// Cure: each block waits at its own mbarrier.
// Seen: https://github.com/inclusionAI/humming/pull/53
// Launch: sm_90a grid 2 block 32 args int32[32]:arange int32[64]
// Says: hazard or error
#include "cluster.cuh"

__global__ void __cluster_dims__(2, 1, 1) multicast_awaited_by_one(const int* x, int* y)
{
    __shared__ Barrier barrier;
    __shared__ alignas(16) int s[32];
    if (threadIdx.x == 0) {
        init(&barrier, 1);
        fence_init();
        arrive_expecting(&barrier, 128);
    }
    cluster_sync();
    if (cluster_rank() == 0 && threadIdx.x == 0) bulk_load_to_all(s, x, 128, &barrier, 3);
#ifdef CURED
    wait_for(&barrier, 0);
#else
    if (cluster_rank() == 0) wait_for(&barrier, 0);
#endif
    cluster_sync();
    y[32 * cluster_rank() + threadIdx.x] = s[31 - threadIdx.x];
    cluster_sync();
}
