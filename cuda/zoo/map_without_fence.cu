// Mistake: a tensor map is changed on the device, and the copy that follows reads it through a
//   proxy that no fence has told of it.
// Cure: fence.proxy.tensormap: a release behind the change, an acquire before the copy.
// Seen: https://github.com/pranjalssh/fast.cu/pull/8
// Launch: sm_90a grid 1 block 32 args mapptr[32,32]:A=float32[32,32]:uniform float32[32,32]:uniform float32[32,32]
// Says: missing proxy fence
#include "asm.cuh"

__global__ void map_without_fence(char* map, const float* other, float* y)
{
    __shared__ alignas(128) float s[32 * 32];
    __shared__ Barrier barrier;
    if (threadIdx.x > 0) return;
    asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;"
                 ::"l"(map), "l"(other) : "memory");
#ifdef CURED
    asm volatile("fence.proxy.tensormap::generic.release.gpu;\n"
                 "fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
#endif
    init(&barrier, 1);
    fence_init();
    arrive_expecting(&barrier, 4096);
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], [%3];"
                 ::"r"(shared_address(s)), "l"(map), "r"(0), "r"(shared_address(&barrier))
                 : "memory");
    wait_for(&barrier, 0);
    for (int i = 0; i < 1024; i++) y[i] = s[i];
}
