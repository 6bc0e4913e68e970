// Mistake: a descriptor swaps the leading and the stride offset, and so leaves shared memory.
// Cure: in a K-major layout without a swizzle, the stride is from 8 rows to the next 8, the leading offset from 16 bytes to the next.
// Launch: sm_100a grid 1 block 128 args float32[512]:zeros
// Says: OutOfBounds
#include <cuda_fp16.h>
#include "tcgen05.cuh"

__global__ void descriptor_outside_shared(float* D)
{
    __shared__ alignas(128) half a[64 * 16], b[8 * 16];
    __shared__ Barrier done;
    __shared__ unsigned address;
    const unsigned d = tensor_begin(&address, &done, a, b);
    if (threadIdx.x == 0) {
#ifdef CURED
        const unsigned long long of_a = tensor_descriptor(a);
#else
        const unsigned long long of_a = descriptor(a, 256, 2048) | 1ull << 46;
#endif
        asm volatile("{\n.reg .pred adds;\nsetp.ne.u32 adds, 0, 0;\n"
                     "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, adds;\n}\n"
                     ::"r"(d), "l"(of_a), "l"(tensor_descriptor(b)), "r"(MMA_F16) : "memory");
        tensor_commit(&done);
    }
    wait_for(&done, 0);
    fence_after();
    float sum[4];
    tensor_load(sum, own_lanes(d));
    tensor_wait_load();
    if (threadIdx.x % 32 < ROWS)
        for (int i = 0; i < 4; i++) D[4 * threadIdx.x + i] = sum[i];
    __syncthreads();
    if (threadIdx.x < 32) tensor_free<32>(d);
}
