// Mistake: a tensor map in global memory is changed while a copy that was issued through it may
//   still read it.
// Cure: wait for the copy before the change.
// Seen: https://github.com/deepseek-ai/DeepGEMM/pull/343
// Seen: https://github.com/deepseek-ai/DeepGEMM/issues/430
// Launch: sm_90a grid 1 block 32 args mapptr[32,32]:A=float32[32,32]:uniform float32[32,32]:uniform float32[32,32]
// Says: nothing
#include "asm.cuh"

__global__ void map_changed_in_flight(char* map, const float* other, float* y)
{
    __shared__ alignas(128) float s[32 * 32];
    __shared__ Barrier barrier;
    if (threadIdx.x > 0) return;
    init(&barrier, 1);
    fence_init();
    arrive_expecting(&barrier, 4096);
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], [%3];"
                 ::"r"(shared_address(s)), "l"(map), "r"(0), "r"(shared_address(&barrier))
                 : "memory");
#ifdef CURED
    wait_for(&barrier, 0);
#endif
    asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;"
                 ::"l"(map), "l"(other) : "memory");
    wait_for(&barrier, 0);
    for (int i = 0; i < 1024; i++) y[i] = s[i];
}
