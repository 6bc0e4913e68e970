// Mistake: a kernel reads what it wrote itself through the read-only cache (__ldg), which may hold
//   what was there before.
// Cure: a plain load.
// Launch: sm_80 grid 1 block 64 args int32[64]:arange int32[64] int32[64]
// Says: race
__global__ void read_only_of_own_writes(const int* x, int* doubled, int* y)
{
    doubled[threadIdx.x] = 2 * x[threadIdx.x];
    __syncthreads();
#ifdef CURED
    y[threadIdx.x] = doubled[63 - threadIdx.x];
#else
    y[threadIdx.x] = __ldg(&doubled[63 - threadIdx.x]);
#endif
}
