// Mistake: mbarrier.try_wait is called once, and nobody looks at what it returns: it may return
//   false after a while.
// Cure: wait again until it returns true.
// Launch: sm_90a grid 1 block 32 args int32[32]:arange int32[32]
// Says: race
#include "asm.cuh"

__global__ void wait_unheeded(const int* x, int* y)
{
    __shared__ Barrier barrier;
    __shared__ alignas(16) int s[32];
    if (threadIdx.x == 0) {
        init(&barrier, 1);
        fence_init();
        arrive_expecting(&barrier, 128);
        bulk_load(s, x, 128, &barrier);
    }
    __syncthreads();
#ifdef CURED
    wait_for(&barrier, 0);
#else
    asm volatile("{\n.reg .pred done;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n}\n"
                 ::"r"(shared_address(&barrier)) : "memory");
#endif
    y[threadIdx.x] = s[31 - threadIdx.x];
}
