// Mistake: the consumers of a warp-specialised kernel pause until B's copy is mostly there, and wait
//   for A's alone.
// Cure: a wait on B's mbarrier, too.
// Seen: https://github.com/facebookexperimental/CUTracer/pull/106
// Launch: sm_90a grid 1 block 160 args float16[1024]:ones float16[128]:ones float32[512]:zeros
// Says: race
#include <cuda_fp16.h>
#include "asm.cuh"

__global__ void pauses_in_place_of_a_wait(const half* A, const half* B, float* D)
{
    __shared__ alignas(128) half a[64 * 16], b[16 * 8];
    __shared__ Barrier full_a, full_b;
    if (threadIdx.x == 0) {
        init(&full_a, 1);
        init(&full_b, 1);
        fence_init();
    }
    __syncthreads();
    if (threadIdx.x >= 128) {  // the warp that loads
        if (threadIdx.x == 128) {
            arrive_expecting(&full_a, sizeof a);
            bulk_load(a, A, sizeof a, &full_a);
            arrive_expecting(&full_b, sizeof b);
            bulk_load(b, B, sizeof b, &full_b);
        }
        return;
    }
    wait_for(&full_a, 0);
    __nanosleep(1000);
#ifdef CURED
    wait_for(&full_b, 0);
#endif
    float d[4] = {0, 0, 0, 0};
    wgmma_fence();
    wgmma(d, descriptor(a, 128, 256), descriptor(b, 128, 256));
    wgmma_commit();
    wgmma_wait();
    for (int i = 0; i < 4; i++) D[4 * threadIdx.x + i] = d[i];
}
