// Mistake: the block that publishes has its fence; the one that sees the flag goes on with none.
// Cure: a fence behind the loop that waits.
// Seen: https://github.com/microsoft/mscclpp/pull/497
// Launch: sm_80 grid 2 block 1 args int32[1] int32[1] int32[1]
// Says: race
__global__ void flag_seen_without_fence(int* data, int* flag, int* out)
{
    if (blockIdx.x == 0) {
        *data = 42;
        __threadfence();
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) { }
#ifdef CURED
        __threadfence();
#endif
        *out = *data;
    }
}
