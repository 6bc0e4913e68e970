// Mistake: one warp clears the shared accumulators, and others write theirs before it has.
// Cure: a barrier between clearing and writing.
// Seen: https://github.com/karpathy/llm.c/pull/847
// Launch: sm_80 grid 1 block 128 args int32[128]:arange int32[1]
// Says: race
__global__ void initialised_without_barrier(const int* x, int* sum)
{
    __shared__ int parts[32];
    if (threadIdx.x < 32) parts[threadIdx.x] = 0;
#ifdef CURED
    __syncthreads();
#endif
    int value = x[threadIdx.x];
    for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(~0u, value, d);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x == 0) *sum = parts[0] + parts[1] + parts[2] + parts[3];
}
