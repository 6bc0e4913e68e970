// Mistake: a block publishes its data for another one with a fence that orders it for its own
//   threads alone.
// Cure: __threadfence() in place of __threadfence_block().
// Seen: https://github.com/NVIDIA/cub/issues/356
// Launch: sm_80 grid 2 block 1 args int32[1] int32[1] int32[1]
// Says: race
#ifdef CURED
#define FENCE __threadfence()
#else
#define FENCE __threadfence_block()
#endif

__global__ void fence_of_block_scope(int* data, int* flag, int* out)
{
    if (blockIdx.x == 0) {
        *data = 42;
        FENCE;
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) { }
        FENCE;
        *out = *data;
    }
}
