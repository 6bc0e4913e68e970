// Mistake: the last levels of a reduction rely on the lanes of a warp running in step.
// Cure: __syncwarp() at the top of every level.
// Seen: https://github.com/CanReader/FastNN/issues/8
// Seen: https://github.com/ORNL/HeCBench/issues/91
// Launch: sm_80 grid 1 block 32 args int32[32]:arange int32[1]
// Says: warning
__global__ void warp_without_syncwarp(const int* x, int* sum)
{
    __shared__ int s[32];
    const int i = threadIdx.x;
    s[i] = x[i];
    for (int half = 16; half > 0; half /= 2) {
#ifdef CURED
        __syncwarp();
#endif
        if (i < half) s[i] += s[i + half];
    }
    if (i == 0) *sum = s[0];
}
