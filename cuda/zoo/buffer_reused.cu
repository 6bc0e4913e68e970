// Mistake: a second reduction writes the shared buffer while slow warps still read the first
//   result.
// Cure: a barrier after the last read of the first use.
// Seen: https://github.com/ggml-org/llama.cpp/pull/26385
// Seen: https://github.com/JustVugg/colibri/pull/1098
// Seen: https://github.com/karpathy/llm.c/pull/282
// Launch: sm_80 grid 1 block 128 args int32[128]:arange int32[128]
// Says: race
__device__ int block_max(int value, int* s)
{
    for (int d = 16; d > 0; d /= 2) value = max(value, __shfl_xor_sync(~0u, value, d));
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = value;
    __syncthreads();
    return max(max(s[0], s[1]), max(s[2], s[3]));
}

__global__ void buffer_reused(const int* x, int* y)
{
    __shared__ int s[4];
    const int most = block_max(x[threadIdx.x], s);
#ifdef CURED
    __syncthreads();
#endif
    y[threadIdx.x] = most - block_max(-x[threadIdx.x], s);
}
