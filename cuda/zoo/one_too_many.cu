// Mistake: a loop goes on while its index is at most the length: one element too many.
// Cure: < in place of <=.
// Seen: https://github.com/autowarefoundation/autoware/pull/113
// Seen: https://github.com/ORNL/HeCBench/pull/251
// Launch: sm_80 grid 1 block 32 args int32[100]:arange int32[1] int:100
// Says: OutOfBounds
__global__ void one_too_many(const int* x, int* sum, int n)
{
    int part = 0;
#ifdef CURED
    for (int i = threadIdx.x; i < n; i += blockDim.x) part += x[i];
#else
    for (int i = threadIdx.x; i <= n; i += blockDim.x) part += x[i];
#endif
    atomicAdd(sum, part);
}
