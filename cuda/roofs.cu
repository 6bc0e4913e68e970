// The machine's roofs: kernels that each press one unit as hard as it goes.
//
// Launch: any grid, blocks of 256 threads (read_shared and chains: one grid that fills the GPU).
// Runs on: sm_75 and later; mma_chains with K = 16 on sm_80 and later; wgmma_chains on sm_90a.
#include "mma.cuh"
#include "shared.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

// DRAM: each float4 is read once and written once.
template <int THREADS>
__global__ void __launch_bounds__(THREADS) copy(const float4* from, float4* to, size_t count)
{
    const size_t step = (size_t)gridDim.x * THREADS;
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) to[i] = from[i];
}

// L2: every block reads the whole array, again and again, past the L1. `count` is a multiple of
// 4 * THREADS and the array is far smaller than the L2. Blocks begin at different places.
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
read_l2(const float4* from, float4* to, unsigned count, int repeats)
{
    float4 sum = {0, 0, 0, 0};
    unsigned start = blockIdx.x * 16411u * THREADS % count;
    start -= start % (4 * THREADS);
    for (int r = 0; r < repeats; ++r)
        for (unsigned i = 0; i < count; i += 4 * THREADS) {
            unsigned at = start + i;
            at = (at < count ? at : at - count) + threadIdx.x;
            float4 v[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) v[j] = __ldcg(from + at + j * THREADS);
#pragma unroll
            for (int j = 0; j < 4; ++j) sum.x += v[j].x, sum.y += v[j].y, sum.z += v[j].z, sum.w += v[j].w;
        }
    to[blockIdx.x * THREADS + threadIdx.x] = sum;
}

// Shared memory: 128-bit loads, each quarter warp on 128 bytes of its own, no conflict.
template <int THREADS>
__global__ void __launch_bounds__(THREADS) read_shared(float4* to, int repeats)
{
    __shared__ float4 tile[8 * THREADS];
#pragma unroll
    for (int j = 0; j < 8; ++j) tile[j * THREADS + threadIdx.x] = make_float4(j, 1, 2, threadIdx.x);
    __syncthreads();
    const unsigned address = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x);
    float4 sum = {0, 0, 0, 0};
    for (int r = 0; r < repeats; ++r) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            float4 v;
            // volatile twice: neither NVRTC nor ptxas may keep the values in registers.
            asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                         : "r"(address + j * THREADS * 16));
            sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        }
    }
    to[blockIdx.x * THREADS + threadIdx.x] = sum;
}

// FFMA: 16 chains a thread, so that the four-cycle latency of each is hidden by the others.
template <int THREADS>
__global__ void __launch_bounds__(THREADS) fma_chains(float* to, float a, float b, int repeats)
{
    float x[16];
#pragma unroll
    for (int j = 0; j < 16; ++j) x[j] = threadIdx.x + j;
    for (int r = 0; r < repeats; ++r) {
#pragma unroll
        for (int u = 0; u < 16; ++u)
#pragma unroll
            for (int j = 0; j < 16; ++j) x[j] = x[j] * a + b;
    }
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 16; ++j) sum += x[j];
    to[blockIdx.x * THREADS + threadIdx.x] = sum;
}

// Tensor cores: 8 chains a warp, so that the latency of each mma is hidden by the others. `from`
// holds 12 bytes a thread: the fragments of A and B.
template <int THREADS, int K>
__global__ void __launch_bounds__(THREADS) mma_chains(const unsigned* from, float* to, int repeats)
{
    const unsigned* mine = from + 3 * threadIdx.x;
    const unsigned x = mine[0], y = mine[1], z = mine[2];
    float sum[8][4] = {};
    for (int r = 0; r < repeats; ++r)
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            if constexpr (K == 8)
                mma_k8(sum[j], x, y, z);
#if __CUDA_ARCH__ >= 800
            else
                mma_k16(sum[j], x, y, z, x, z, y);
#endif
        }
    float total = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) total += sum[j][0] + sum[j][1] + sum[j][2] + sum[j][3];
    to[blockIdx.x * THREADS + threadIdx.x] = total;
}

// Tensor cores by wgmma (sm_90a): two warpgroups, 64×N sums each, and tiles that stay in shared
// memory. `from` holds them as they lie there, rows of 128 bytes: 64 of A for each warpgroup, then
// N columns of B. Dynamic shared memory: these, and 1024 bytes. THREADS is 256.
template <int THREADS, int N>
__global__ void __launch_bounds__(THREADS) wgmma_chains(const uint4* from, float* to, int repeats)
{
    constexpr int GROUPS = THREADS / 128, A_BYTES = 64 * 128, BYTES = GROUPS * A_BYTES + N * 128;
    extern __shared__ unsigned char storage[];
    const unsigned past = shared_address(storage) % ATOM_BYTES;
    unsigned char* const tiles = storage + (past ? ATOM_BYTES - past : 0);
    for (int i = threadIdx.x; i < BYTES / 16; i += THREADS) reinterpret_cast<uint4*>(tiles)[i] = from[i];
    fence_async_proxy();
    __syncthreads();
    const unsigned a = shared_address(tiles) + threadIdx.x / 128 * A_BYTES;
    const unsigned b = shared_address(tiles) + GROUPS * A_BYTES;
    float sum[N / 2] = {};
    for (int r = 0; r < repeats; ++r) {
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 64; k += 16)
            wgmma<N, half, false>(sum, k_major(a + k * 2), k_major(b + k * 2));
        wgmma_commit();
        wgmma_wait<1>();
    }
    wgmma_wait<0>();
    float total = 0;
#pragma unroll
    for (int j = 0; j < N / 2; ++j) total += sum[j];
    to[blockIdx.x * THREADS + threadIdx.x] = total;
}
