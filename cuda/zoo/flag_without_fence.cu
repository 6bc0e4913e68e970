// Mistake: a block sets a flag for another without a fence, so that the data may arrive later.
// Cure: __threadfence() on both sides, before the flag is set and after it is seen.
// Seen: https://github.com/NVIDIA/Fuser/pull/2391
// Launch: sm_80 grid 2 block 1 args int32[1] int32[1] int32[1]
// Says: race
__global__ void flag_without_fence(int* data, int* flag, int* out)
{
    if (blockIdx.x == 0) {
        *data = 42;
#ifdef CURED
        __threadfence();
#endif
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) { }
#ifdef CURED
        __threadfence();
#endif
        *out = *data;
    }
}
