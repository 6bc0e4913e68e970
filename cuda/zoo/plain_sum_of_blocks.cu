// Mistake: blocks add to one word of global memory with +=.
// Cure: atomicAdd.
// Launch: sm_80 grid 8 block 32 args int32[256]:arange int32[1]
// Says: race
__global__ void plain_sum_of_blocks(const int* x, int* sum)
{
    int value = x[32 * blockIdx.x + threadIdx.x];
    for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(~0u, value, d);
    if (threadIdx.x == 0) {
#ifdef CURED
        atomicAdd(sum, value);
#else
        *sum += value;
#endif
    }
}
