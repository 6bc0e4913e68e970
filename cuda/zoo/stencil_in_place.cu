// Mistake: blocks read their neighbours' elements of an array that they overwrite in the same
//   launch.
// Cure: write to another array.
// Launch: sm_80 grid 4 block 32 args int32[128]:arange int32[128]
// Says: race
__global__ void stencil_in_place(int* x, int* y)
{
    const int i = 32 * blockIdx.x + threadIdx.x;
    const int left = i > 0 ? x[i - 1] : 0;
    __syncthreads();
#ifdef CURED
    y[i] = left;
#else
    x[i] = left;
#endif
}
