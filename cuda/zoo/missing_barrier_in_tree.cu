// Mistake: a reduction tree halves the number of threads without a barrier between its levels.
// Cure: __syncthreads() at the top of every level.
// Seen: https://github.com/OP-DSL/OP2-Common/issues/185
// Launch: sm_80 grid 1 block 128 args int32[128]:arange int32[1]
// Says: race
__global__ void missing_barrier_in_tree(const int* x, int* sum)
{
    __shared__ int s[128];
    s[threadIdx.x] = x[threadIdx.x];
    for (int half = 64; half > 0; half /= 2) {
#ifdef CURED
        __syncthreads();
#endif
        if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
    }
    if (threadIdx.x == 0) *sum = s[0];
}
