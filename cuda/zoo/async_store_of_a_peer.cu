// Mistake: a block waits in its own scope for the mbarrier on which a peer's st.async completes:
//   its bytes count in the cluster's scope.
// Cure: wait with .acquire.cluster.
// Launch: sm_90a grid 2 block 32 args int32[64]:arange int32[64]
// Says: race
#include "cluster.cuh"

__global__ void __cluster_dims__(2, 1, 1) async_store_of_a_peer(const int* x, int* y)
{
    __shared__ Barrier barrier;
    __shared__ int s[32];
    const int i = 32 * blockIdx.x + threadIdx.x;
    if (threadIdx.x == 0) {
        init(&barrier, 1);
        fence_init();
        arrive_expecting(&barrier, 128);
    }
    cluster_sync();
    store_async(cluster_rank() ^ 1, &s[threadIdx.x], x[i], &barrier);
#ifdef CURED
    wait_for<CLUSTER>(&barrier, 0);
#else
    wait_for<BLOCK>(&barrier, 0);
#endif
    y[i] = s[31 - threadIdx.x];
    cluster_sync();
}
