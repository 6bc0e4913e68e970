// Mistake: threads read what other threads wrote to shared memory, with no barrier between.
// Cure: __syncthreads() between the write and the read.
// Seen: https://github.com/ORNL/HeCBench/issues/254
// Seen: https://github.com/alicevision/popsift/pull/82
// Launch: sm_80 grid 1 block 64 args int32[64]:arange int32[64]
// Says: race
__global__ void missing_barrier(const int* x, int* y)
{
    __shared__ int s[64];
    s[threadIdx.x] = x[threadIdx.x];
#ifdef CURED
    __syncthreads();
#endif
    y[threadIdx.x] = s[63 - threadIdx.x];
}
