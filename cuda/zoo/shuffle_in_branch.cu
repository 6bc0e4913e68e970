// Mistake: half of a warp shuffles with a mask that names all of it; the other half is at another
//   barrier.
// Cure: shuffle outside of the branch.
// Seen: https://github.com/PaddlePaddle/Paddle/issues/10332
// Launch: sm_80 grid 1 block 32 args int32[32]:arange int32[32]
// Says: hazard or error
__global__ void shuffle_in_branch(const int* x, int* y)
{
    __shared__ int s[32];
#ifdef CURED
    const int other = __shfl_sync(~0u, x[threadIdx.x], 31 - threadIdx.x);
    s[threadIdx.x] = threadIdx.x < 16 ? other : 0;
#else
    s[threadIdx.x] = 0;
    if (threadIdx.x < 16) s[threadIdx.x] = __shfl_sync(~0u, x[threadIdx.x], 31 - threadIdx.x);
#endif
    __syncwarp();
    y[threadIdx.x] = s[31 - threadIdx.x];
}
