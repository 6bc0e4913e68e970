// Mistake: threads beyond the array return before a barrier that the others wait at.
// Cure: let them go on, and guard only their accesses.
// Seen: https://github.com/Luce-Org/lucebox/pull/225
// Launch: sm_80 grid 2 block 64 args int32[100]:arange int32[100] int:100
// Says: exited before barrier
__global__ void return_before_barrier(const int* x, int* y, int n)
{
    __shared__ int s[64];
    const int i = 64 * blockIdx.x + threadIdx.x;
#ifdef CURED
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) y[i] = s[threadIdx.x ^ 1];
#else
    if (i >= n) return;
    s[threadIdx.x] = x[i];
    __syncthreads();
    y[i] = s[threadIdx.x ^ 1];
#endif
}
