// Mistake: a block waits at its peer's mbarrier: PTX has waits for the own block's alone.
// Cure: a barrier in each block, and an arrival at the one where somebody waits.
// Seen: https://github.com/facebookexperimental/triton/pull/763
// Launch: sm_90a grid 2 block 32 args int32[32]
// Says: Error
#include "cluster.cuh"

__global__ void __cluster_dims__(2, 1, 1) waits_for_a_remote_barrier(int* y)
{
    __shared__ Barrier barrier;
    if (threadIdx.x == 0) {
        init(&barrier, 1);
        fence_init();
    }
    cluster_sync();
    if (cluster_rank() == 0) {
#ifdef CURED
        if (threadIdx.x == 0) arrive_at<CLUSTER>(1, &barrier);
#else
        if (threadIdx.x == 0) arrive(&barrier);
#endif
    } else {
#ifdef CURED
        const unsigned at = shared_address(&barrier);
#else
        const unsigned at = address_in(0, &barrier);
#endif
        wait_at<CLUSTER>(at, 0);
        y[threadIdx.x] = 1;
    }
    cluster_sync();
}
