// Mistake: the scales of the next product are copied to tensor memory while the product before may still read its own: a product and a copy behind it run in no order.
// Cure: wait for the product before the next tcgen05.cp, or copy to other columns.
// Launch: sm_100a grid 1 block 128 args float32[512]:zeros
// Says: tensor memory in flight
#include <cuda_fp16.h>
#include "tcgen05.cuh"

// 32 rows of 16 bytes: one byte in four columns is the scale, 1, of each row of A or of B.
__device__ inline void copy_scales(unsigned to, const void* from)
{
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;"
                 ::"r"(to), "l"(descriptor(from, 16, 128) | 1ull << 46) : "memory");
}
constexpr unsigned MMA_MXF8 = 8u / 8 << 17 | 1u << 23 | 128u / 16 << 24;  // E4M3, UE8M0
__device__ inline void scaled_mma(unsigned d, const void* a, const void* b, unsigned scales)
{
    asm volatile("{\n.reg .pred adds;\nsetp.ne.u32 adds, 0, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale"
                 " [%0], %1, %2, %3, [%4], [%4], adds;\n}\n"
                 ::"r"(d), "l"(tensor_descriptor(a)), "l"(tensor_descriptor(b)), "r"(MMA_MXF8),
                   "r"(scales) : "memory");
}

__global__ void scales_refilled_under_mma(float* D)
{
    __shared__ alignas(128) half a[128 * 16], b[8 * 16];
    __shared__ alignas(128) unsigned scales[128];
    __shared__ Barrier done, last;
    __shared__ unsigned address;
    for (int i = threadIdx.x; i < 128 * 16; i += blockDim.x) a[i] = 1;
    scales[threadIdx.x] = 0x7F7F7F7F;
    if (threadIdx.x == 0) init(&last, 1);
    const unsigned d = tensor_begin(&address, &done, a, b);
    if (threadIdx.x == 0) {
        copy_scales(d + 16, scales);
        scaled_mma(d, a, b, d + 16);
        tensor_commit(&done);
#ifdef CURED
        wait_for(&done, 0);
        fence_after();
#endif
        copy_scales(d + 16, scales);
        scaled_mma(d, a, b, d + 16);
        tensor_commit(&last);
    }
    wait_for(&last, 0);
    fence_after();
    float sum[4];
    tensor_load(sum, own_lanes(d));
    tensor_wait_load();
    for (int i = 0; i < 4; i++) D[4 * threadIdx.x + i] = sum[i];
    __syncthreads();
    if (threadIdx.x < 32) tensor_free<32>(d);
}
