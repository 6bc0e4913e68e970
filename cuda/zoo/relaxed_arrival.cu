// Mistake: a block hands over what it wrote by a relaxed arrival at its peer's mbarrier, and no
//   fence stands before.
// Cure: fence.acq_rel.cluster before the arrival.
// Launch: sm_90a grid 2 block 32 args int32[64]:arange int32[32]
// Says: race
#include "cluster.cuh"

__global__ void __cluster_dims__(2, 1, 1) relaxed_arrival(const int* x, int* y)
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
        asm volatile("fence.acq_rel.cluster;" ::: "memory");
#endif
        arrive_relaxed_at(0, &barrier);
    } else {
        wait_for<CLUSTER>(&barrier, 0);
        y[threadIdx.x] = load_from(1, &s[31 - threadIdx.x]);
    }
    cluster_sync();
}
