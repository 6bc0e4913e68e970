// Kernels whose blocks tell each other something through flags in global memory. Each SKIP_... or
// WEAK_... macro leaves out or weakens one thing that orders them, for tests of the race detector.

#ifdef SKIP_FENCE
#define FENCE()
#elif defined(WEAK_FENCE)
#define FENCE() __threadfence_block()
#else
#define FENCE() __threadfence()
#endif
#ifdef SKIP_SECOND_FENCE
#define SECOND_FENCE()
#else
#define SECOND_FENCE() __threadfence()
#endif
#ifdef SKIP_BARRIER
#define BARRIER()
#else
#define BARRIER() __syncthreads()
#endif

// The block that finishes last adds up what all blocks have left: a reduction without a second
// launch. parts holds one sum a thread.
__global__ void last_block(const float* x, float* parts, unsigned* count, float* sum, int n) {
    __shared__ bool last;
    float mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += x[i];
    parts[blockIdx.x * blockDim.x + threadIdx.x] = mine;
    FENCE();
    BARRIER();
    if (threadIdx.x == 0) last = atomicAdd(count, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    SECOND_FENCE();
    if (threadIdx.x == 0) {
        float total = 0;
        for (int i = 0; i < gridDim.x * blockDim.x; ++i) total += parts[i];
        *sum = total;
    }
}

// Blocks add to the same elements one after another, in the order of their numbers: the semaphore
// of a split along K. The whole block waits together, with a vote at the barrier.
__global__ void semaphore(float* c, int* turn) {
    int seen = -1;
    while (__syncthreads_and(seen != (int)blockIdx.x)) {
        if (threadIdx.x == 0) {
#ifdef WEAK_ACQUIRE
            asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(seen) : "l"(turn) : "memory");
#else
            asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(seen) : "l"(turn) : "memory");
#endif
        }
        seen = threadIdx.x == 0 ? seen : (int)blockIdx.x;
        if (__syncthreads_and(seen == (int)blockIdx.x)) break;
        seen = -1;
    }
    int i = threadIdx.x;
    c[i] = blockIdx.x == 0 ? 1 : 2 * c[i] + 1;
    BARRIER();
    if (threadIdx.x == 0) {
#ifdef WEAK_RELEASE
        asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" :: "l"(turn), "r"(blockIdx.x + 1) : "memory");
#else
        asm volatile("st.release.gpu.global.b32 [%0], %1;" :: "l"(turn), "r"(blockIdx.x + 1) : "memory");
#endif
    }
}

// All blocks meet, then each reads what its neighbour wrote; twice, so that the barrier is used
// again. count only grows.
__global__ void grid_barrier(float* x, float* y, unsigned* count) {
    int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned round = 1; round <= 2; ++round) {
        y[i] = x[i] + 1;
        BARRIER();
        if (threadIdx.x == 0) {
            FENCE();
            atomicAdd(count, 1u);
            while (*(volatile unsigned*)count < (2 * round - 1) * gridDim.x) __nanosleep(20);
            SECOND_FENCE();
        }
        __syncthreads();
        x[i] = y[(i + blockDim.x) % n];
        __syncthreads();
        if (threadIdx.x == 0) {
            FENCE();
            atomicAdd(count, 1u);
            while (*(volatile unsigned*)count < 2 * round * gridDim.x) ;
            SECOND_FENCE();
        }
        __syncthreads();
    }
}

// Sums of a split along K by atomics; no order, no race.
__global__ void atomics(const float* x, float* c) {
    atomicAdd(c + threadIdx.x, x[blockIdx.x * blockDim.x + threadIdx.x]);
}

// Stream-K's fix-up: odd blocks leave half of a tile, and the even ones before them wait for it.
__global__ void fix_up(const float* x, float* parts, int* ready, float* c) {
    int i = threadIdx.x, tile = blockIdx.x / 2;
    float mine = x[blockIdx.x * blockDim.x + i];
    if (blockIdx.x % 2) {
        parts[tile * blockDim.x + i] = mine;
        BARRIER();
        if (i == 0) {
            FENCE();
            atomicExch(ready + tile, 1);
        }
    } else {
        if (i == 0) {
            while (atomicAdd(ready + tile, 0) == 0) ;
            SECOND_FENCE();
        }
        __syncthreads();
        c[tile * blockDim.x + i] = mine + parts[tile * blockDim.x + i];
    }
}

__global__ void waits_for_nobody(volatile int* flag, int* out) {
    while (*flag == 0) ;
    *out = 1;
}

__global__ void never_ends(int* out, int start) {
    for (int i = start; i != 1; i += 2) out[0] = i;
}

__global__ void spins_while_others_wait(volatile int* flag) {
    if (threadIdx.x < 32) while (*flag == 0) ;
    __syncthreads();
}
