// Mistake: threads leave a loop when their own element says so, and the loop has a barrier.
// Cure: the whole block decides: __syncthreads_and.
// Seen: https://github.com/1bit-MONSTER/1bit-MONSTER/issues/1262
// Seen: https://github.com/proteneer/timemachine/pull/1218
// Launch: sm_80 grid 1 block 64 args int32[64]:arange int32[64]
// Says: hazard or error
__global__ void barrier_behind_break(const int* x, int* y)
{
    __shared__ int s[64];
    int left = x[threadIdx.x] / 16, sum = 0;
    s[threadIdx.x] = 1;
    for (int turn = 0; turn < 4; turn++) {
#ifdef CURED
        if (__syncthreads_and(left < turn)) break;
#else
        if (left < turn) break;
        __syncthreads();
#endif
        if (left >= turn) sum += s[63 - threadIdx.x];
    }
    y[threadIdx.x] = sum;
}
