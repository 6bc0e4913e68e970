// Threads of one block that wait for each other by flags, atomics and cuda::barrier; what a macro
// leaves out is a race.
#include <cuda/atomic>
#include <cuda/barrier>

#ifdef WEAK
constexpr auto RELEASE = cuda::std::memory_order_relaxed, ACQUIRE = RELEASE;
#else
constexpr auto RELEASE = cuda::std::memory_order_release, ACQUIRE = cuda::std::memory_order_acquire;
#endif
using Barrier = cuda::barrier<cuda::thread_scope_block>;
using Flag = cuda::atomic<int, cuda::thread_scope_block>;

// All arrive at a counter, and read their neighbours' words behind it.
__global__ void counter(const float* x, float* y) {
    __shared__ float s[128];
    __shared__ Flag f;
    int t = threadIdx.x;
    if (t == 0) new (&f) Flag(0);
    __syncthreads();
    s[t] = x[t];
    f.fetch_add(1, RELEASE);
    while (f.load(ACQUIRE) < 128);
    y[t] = s[(t + 37) % 128];
}

// One warp hands a value to the other through a flag and two fences of the block.
__global__ void fences(const float* x, float* y) {
    __shared__ volatile int ready;
    __shared__ float s[32];
    int t = threadIdx.x % 32;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        s[t] = x[t];
#ifndef SKIP_FENCE
        __threadfence_block();
#endif
        __syncwarp();
        if (t == 0) ready = 1;
    } else {
        while (ready == 0);
#ifndef SKIP_SECOND_FENCE
        __threadfence_block();
#endif
        y[t] = s[t];
    }
}

__global__ void barrier(const float* x, float* y) {
    __shared__ float s[128];
    __shared__ Barrier b;
    int t = threadIdx.x;
    if (t == 0) init(&b, blockDim.x);
    __syncthreads();
    for (int i = 0; i < 3; i++) {
        s[t] = x[t] + i;
        b.arrive_and_wait();
        y[t] = s[(t + 37) % 128];
#ifndef SKIP_BARRIER
        b.arrive_and_wait();
#endif
    }
}

// cuda::memcpy_async completes on a cuda::barrier: cp.async.bulk where there is one.
__global__ void copy(const float* x, float* y) {
    __shared__ alignas(16) float s[128];
    __shared__ Barrier b;
    int t = threadIdx.x;
    if (t == 0) init(&b, blockDim.x);
    __syncthreads();
    if (t == 0) cuda::memcpy_async(s, x, cuda::aligned_size_t<16>(sizeof s), b);
    auto token = b.arrive();
#ifndef SKIP_WAIT
    b.wait(std::move(token));
#endif
    y[t] = s[(t + 37) % 128];
}

// Every thread copies its own part.
__global__ void copies(const float4* x, float* y) {
    __shared__ alignas(16) float s[512];
    __shared__ Barrier b;
    int t = threadIdx.x;
    if (t == 0) init(&b, blockDim.x);
    __syncthreads();
    cuda::memcpy_async((float4*)s + t, x + t, cuda::aligned_size_t<16>(16), b);
    auto token = b.arrive();
#ifndef SKIP_WAIT
    b.wait(std::move(token));
#endif
    y[t] = s[(4 * t + 151) % 512];
}

// The loop begins with a plain load, which its atomic operation checks.
__global__ void swap(float* x) {
    float* p = x + threadIdx.x % 4;
    int old = *(int*)p, seen;
    do {
        seen = old;
        old = atomicCAS((int*)p, seen, __float_as_int(__int_as_float(seen) + 1));
    } while (seen != old);
#ifdef USE_GUESS
    x[4 + threadIdx.x] = x[(threadIdx.x + 1) % 4];
#endif
}
