// Mistake: a stencil reads a halo of shared memory that no thread has written.
// Cure: the edge threads write it.
// Launch: sm_80 grid 1 block 64 args int32[64]:arange int32[64]
// Says: UninitialisedRead
__global__ void halo_unwritten(const int* x, int* y)
{
    __shared__ int s[66];
    s[threadIdx.x + 1] = x[threadIdx.x];
#ifdef CURED
    if (threadIdx.x == 0) s[0] = s[65] = 0;
#endif
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 2];
}
