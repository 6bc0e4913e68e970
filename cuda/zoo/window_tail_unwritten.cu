// Mistake: the threads that load a window's last elements are beyond the array in the last block:
//   its halo stays unwritten.
// Cure: a zero where the array ends.
// Seen: https://github.com/dlsys-course/examples/issues/1
// Launch: sm_80 grid 2 block 64 args int32[100]:arange int32[100] int:100
// Says: UninitialisedRead
__global__ void window_tail_unwritten(const int* x, int* y, int n)
{
    __shared__ int s[64 + 2];
    const int i = 64 * blockIdx.x + threadIdx.x;
    if (i < n) s[threadIdx.x] = x[i];
#ifdef CURED
    else s[threadIdx.x] = 0;
#endif
    if (threadIdx.x < 2) s[64 + threadIdx.x] = i + 64 < n ? x[i + 64] : 0;
    __syncthreads();
    if (i < n) y[i] = s[threadIdx.x] + s[threadIdx.x + 1] + s[threadIdx.x + 2];
}
