// Mistake: the last levels of a reduction rely on a warp running in step; volatile does not order
//   lanes.
// Cure: __syncwarp() between reading and writing, at every level.
// Seen: https://github.com/CanReader/FastNN/issues/8
// Seen: https://github.com/ORNL/HeCBench/issues/91
// Launch: sm_80 grid 1 block 32 args int32[32]:arange int32[1]
// Says: warning
__global__ void warp_without_syncwarp(const int* x, int* sum)
{
    __shared__ volatile int s[64];
    const int i = threadIdx.x;
    s[i] = x[i];
    s[i + 32] = 0;
    for (int half = 16; half > 0; half /= 2) {
#ifdef CURED
        __syncwarp();
        const int other = s[i + half];
        __syncwarp();
        s[i] = s[i] + other;
#else
        s[i] = s[i] + s[i + half];
#endif
    }
    if (i == 0) *sum = s[0];
}
