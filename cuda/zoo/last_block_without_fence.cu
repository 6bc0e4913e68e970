// Mistake: the last block to finish sums the others' parts, and no fence orders parts before
//   tickets.
// Cure: __threadfence() before the ticket, and again after it in the block that reads.
// Seen: https://github.com/NVIDIA/Fuser/pull/2391
// Seen: https://github.com/NVIDIA/cccl/pull/10627
// Launch: sm_80 grid 4 block 32 args int32[128]:arange int32[4] int32[1] int32[1]
// Says: race
__global__ void last_block_without_fence(const int* x, int* parts, int* ticket, int* sum)
{
    int value = x[32 * blockIdx.x + threadIdx.x];
    for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(~0u, value, d);
    if (threadIdx.x > 0) return;
    parts[blockIdx.x] = value;
#ifdef CURED
    __threadfence();
#endif
    if (atomicAdd(ticket, 1) == 3) {
#ifdef CURED
        __threadfence();
#endif
        *sum = parts[0] + parts[1] + parts[2] + parts[3];
    }
}
