// Mistake: a block sends the next tile to its peer when it has read its own copy of the last one:
//   the peer may still read its.
// Cure: wait for the peer, too.
// Seen: https://github.com/inclusionAI/humming/pull/56
// Launch: sm_90a grid 2 block 32 args int32[64]:arange int32[64]
// Says: hazard or error
#include "cluster.cuh"

__global__ void __cluster_dims__(2, 1, 1) multicast_over_a_read(const int* x, int* y)
{
    __shared__ Barrier barrier;
    __shared__ alignas(16) int s[32];
    if (threadIdx.x == 0) {
        init(&barrier, 1);
        fence_init();
    }
    cluster_sync();
    int sum = 0;
    for (int turn = 0; turn < 2; turn++) {
        if (threadIdx.x == 0) arrive_expecting(&barrier, 128);
        if (cluster_rank() == 0 && threadIdx.x == 0)
            bulk_load_to_all(s, &x[32 * turn], 128, &barrier, 3);
        wait_for(&barrier, turn);
        sum += s[31 - threadIdx.x];
        fence_async();
#ifdef CURED
        cluster_sync();
#else
        __syncthreads();
#endif
    }
    y[32 * cluster_rank() + threadIdx.x] = sum;
    cluster_sync();
}
