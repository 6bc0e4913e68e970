// Mistake: threads count in a variable of shared memory that nobody set to zero.
// Cure: one thread sets it to zero, and a barrier.
// Seen: https://github.com/hpdps-group/hipSZ/issues/1
// Launch: sm_80 grid 1 block 64 args int32[64]:arange int32[1]
// Says: UninitialisedRead
__global__ void shared_counter_unwritten(const int* x, int* count)
{
    __shared__ int odd;
#ifdef CURED
    if (threadIdx.x == 0) odd = 0;
    __syncthreads();
#endif
    if (x[threadIdx.x] % 2) atomicAdd(&odd, 1);
    __syncthreads();
    if (threadIdx.x == 0) *count = odd;
}
