// Mistake: a tensor map is a plain parameter, so that its address is that of a local copy, which no
//   copy engine can read.
// Cure: const __grid_constant__ before its type.
// Launch: sm_90a grid 1 block 32 args map[32,32]:float32[32,32]:uniform float32[32,32]
// Says: Error
#include "asm.cuh"
struct alignas(64) Map {
    unsigned long long words[16];
};
#ifdef CURED
#define PARAMETER const __grid_constant__ Map
#else
#define PARAMETER Map
#endif

__global__ void map_by_value(PARAMETER map, float* y)
{
    __shared__ alignas(128) float s[32 * 32];
    __shared__ Barrier barrier;
    if (threadIdx.x > 0) return;
    init(&barrier, 1);
    fence_init();
    arrive_expecting(&barrier, 4096);
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], [%3];"
                 ::"r"(shared_address(s)), "l"(&map), "r"(0), "r"(shared_address(&barrier))
                 : "memory");
    wait_for(&barrier, 0);
    for (int i = 0; i < 1024; i++) y[i] = s[i];
}
