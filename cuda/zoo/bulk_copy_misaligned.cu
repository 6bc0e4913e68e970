// Mistake: a bulk copy begins at an address that is no multiple of 16 bytes.
// Cure: rows whose length is a multiple of 16 bytes.
// Seen: https://github.com/triton-lang/triton/issues/7385
// Launch: sm_90a grid 1 block 32 args int32[128]:arange int32[32] int:33
// Says: hazard or error
#include "asm.cuh"

__global__ void bulk_copy_misaligned(const int* x, int* y, int length)
{
    __shared__ Barrier barrier;
    __shared__ alignas(16) int s[32];
#ifdef CURED
    length = (length + 3) / 4 * 4;
#endif
    if (threadIdx.x == 0) {
        init(&barrier, 1);
        fence_init();
        arrive_expecting(&barrier, 128);
        bulk_load(s, x + length, 128, &barrier);
    }
    __syncthreads();
    wait_for(&barrier, 0);
    y[threadIdx.x] = s[31 - threadIdx.x];
}
