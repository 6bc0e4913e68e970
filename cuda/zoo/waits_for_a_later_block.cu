// Mistake: a block waits for one with a larger number, which may begin only when an earlier one
//   ends.
// Cure: blocks number themselves in the order in which they begin, by a ticket.
// Seen: https://github.com/mirage-project/mirage/issues/761
// Launch: sm_80 grid 4 block 1 args int32[4] int32[4] int32[1]
// Says: nothing
__global__ void waits_for_a_later_block(int* flag, int* y, int* ticket)
{
#ifdef CURED
    const int block = gridDim.x - 1 - atomicAdd(ticket, 1);
#else
    const int block = blockIdx.x;
#endif
    int sum = 1;
    if (block + 1 < gridDim.x) {
        while (atomicAdd(&flag[block + 1], 0) == 0) { }
        __threadfence();
        sum += y[block + 1];
    }
    y[block] = sum;
    __threadfence();
    atomicExch(&flag[block], 1);
}
