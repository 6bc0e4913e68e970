// Mistake: half of a block waits at one __syncthreads(), the other half at none until the end.
// Cure: the barrier outside of the branch.
// Seen: https://github.com/tile-ai/tilelang/issues/1026
// Seen: https://github.com/ggml-org/llama.cpp/issues/27678
// Launch: sm_80 grid 1 block 64 args int32[64]:arange int32[64]
// Says: hazard or error
__global__ void barrier_in_branch(const int* x, int* y)
{
    __shared__ int s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
#ifdef CURED
    const int other = s[63 - threadIdx.x];
    __syncthreads();
    if (threadIdx.x % 2 == 0) s[threadIdx.x] = other;
#else
    if (threadIdx.x % 2 == 0) {
        const int other = s[63 - threadIdx.x];
        __syncthreads();
        s[threadIdx.x] = other;
    }
#endif
    y[threadIdx.x] = s[threadIdx.x];
}
