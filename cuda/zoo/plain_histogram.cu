// Mistake: threads count in shared bins with ++, so that counts are lost.
// Cure: atomicAdd on the bin.
// Launch: sm_80 grid 1 block 64 args int32[64]:integers int32[10]
// Says: race
__global__ void plain_histogram(const int* x, int* bins)
{
    __shared__ int s[10];
    if (threadIdx.x < 10) s[threadIdx.x] = 0;
    __syncthreads();
#ifdef CURED
    atomicAdd(&s[x[threadIdx.x]], 1);
#else
    s[x[threadIdx.x]]++;
#endif
    __syncthreads();
    if (threadIdx.x < 10) bins[threadIdx.x] = s[threadIdx.x];
}
