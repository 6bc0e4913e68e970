// Mistake: a copy through two stages refills a stage when one store may still be pending, and that
//   is the stage's own.
// Cure: wait until none is pending, or refill the stage of the store before.
// Seen: https://github.com/deepseek-ai/DeepEP/issues/657
// Launch: sm_90a grid 1 block 32 args int32[128]:arange int32[128]
// Says: race
#include "asm.cuh"

__global__ void store_group_off_by_one(const int* x, int* y)
{
    __shared__ Barrier filled[2];
    __shared__ alignas(16) int s[2][32];
    if (threadIdx.x > 0) return;
    for (int stage = 0; stage < 2; stage++) init(&filled[stage], 1);
    fence_init();
    for (int stage = 0; stage < 2; stage++) {
        arrive_expecting(&filled[stage], 128);
        bulk_load(s[stage], &x[32 * stage], 128, &filled[stage]);
    }
    for (int turn = 0; turn < 4; turn++) {
        const int stage = turn % 2;
        wait_for(&filled[stage], turn / 2 % 2);
        bulk_store(&y[32 * turn], s[stage], 128);
        bulk_commit();
        if (turn + 2 < 4) {
#ifdef CURED
            bulk_wait_read();
#else
            asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
#endif
            arrive_expecting(&filled[stage], 128);
            bulk_load(s[stage], &x[32 * (turn + 2)], 128, &filled[stage]);
        }
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
