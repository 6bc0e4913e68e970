// Mistake: a block arrives at its peer's mbarrier by the instruction for its own: the address lies
//   in no memory of this block.
// Cure: .shared::cluster in place of .shared::cta.
// Seen: https://github.com/apache/tvm/pull/20074
// Launch: sm_90a grid 2 block 32 args int32[32]
// Says: Error
#include "cluster.cuh"

__global__ void __cluster_dims__(2, 1, 1) remote_barrier_by_local_arrival(int* y)
{
    __shared__ Barrier barrier;
    if (threadIdx.x == 0) {
        init(&barrier, 1);
        fence_init();
    }
    cluster_sync();
    if (cluster_rank() == 1 && threadIdx.x == 0) {
#ifdef CURED
        arrive_at<CLUSTER>(0, &barrier);
#else
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
                     ::"r"(address_in(0, &barrier)) : "memory");
#endif
    }
    if (cluster_rank() == 0) {
        wait_for<CLUSTER>(&barrier, 0);
        y[threadIdx.x] = 1;
    }
    cluster_sync();
}
