// Mistake: a block's second stage reads one word per lane of an array that has one per warp.
// Cure: only as many lanes as there are warps read; the others take the neutral value.
// Seen: https://github.com/xlite-dev/LeetCUDA/issues/409
// Launch: sm_80 grid 1 block 256 args int32[256]:arange int32[1]
// Says: OutOfBounds
__global__ void shared_too_short(const int* x, int* sum)
{
    __shared__ int parts[8];
    int value = x[threadIdx.x];
    for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(~0u, value, d);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {
#ifdef CURED
        value = threadIdx.x < 8 ? parts[threadIdx.x] : 0;
#else
        value = parts[threadIdx.x];
#endif
        for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(~0u, value, d);
        if (threadIdx.x == 0) *sum = value;
    }
}
