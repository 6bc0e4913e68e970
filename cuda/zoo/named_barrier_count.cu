// Mistake: a named barrier is told of more threads than come to it.
// Cure: the number of the threads that come.
// Launch: sm_80 grid 1 block 96 args int32[96]:arange int32[96]
// Says: Deadlock
__global__ void named_barrier_count(const int* x, int* y)
{
    __shared__ int s[96];
    s[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x < 64) {
#ifdef CURED
        asm volatile("bar.sync 1, 64;" ::: "memory");
#else
        asm volatile("bar.sync 1, 96;" ::: "memory");
#endif
        y[threadIdx.x] = s[63 - threadIdx.x];
    } else {
        y[threadIdx.x] = s[threadIdx.x];
    }
}
