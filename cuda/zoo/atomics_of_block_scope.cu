// Mistake: blocks add to one word with atomics that are atomic within a block alone.
// Cure: atomicAdd, whose scope is the GPU.
// Launch: sm_80 grid 4 block 32 args int32[128]:arange int32[1]
// Says: race
__global__ void atomics_of_block_scope(const int* x, int* sum)
{
    const int value = x[32 * blockIdx.x + threadIdx.x];
#ifdef CURED
    atomicAdd(sum, value);
#else
    atomicAdd_block(sum, value);
#endif
}
