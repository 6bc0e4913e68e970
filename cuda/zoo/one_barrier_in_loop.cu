// Mistake: a loop fills a tile, has one barrier and reads it: the next turn overwrites what
//   others still read.
// Cure: a second barrier at the end of each turn.
// Seen: https://github.com/yelhousni/zprize-GPU-MSM-harness/pull/1
// Seen: https://github.com/csarofeen/pytorch/pull/383
// Seen: https://github.com/NVIDIA/cutlass/pull/386
// Launch: sm_80 grid 1 block 64 args int32[256]:arange int32[64]
// Says: race
__global__ void one_barrier_in_loop(const int* x, int* y)
{
    __shared__ int tile[64];
    int sum = 0;
    for (int turn = 0; turn < 4; turn++) {
        tile[threadIdx.x] = x[64 * turn + threadIdx.x];
        __syncthreads();
        sum += tile[63 - threadIdx.x];
#ifdef CURED
        __syncthreads();
#endif
    }
    y[threadIdx.x] = sum;
}
