// Marks for the timeline: lane 0 of each warp notes the clock whenever a phase begins.
//
//   TIMELINE_BEGIN;                    once, at the top of the kernel
//   MARK(LOAD);                        from here on the warp issues loads
//   MARK_ARRIVAL(a, b);                WAIT begins; COMPUTE begins when a and b have arrived
//   TIMELINE_END;                      once, after the last store
//
// Without -DTIMELINE each of these is nothing, and the PTX is that of a file without them.
#pragma once

#ifndef TIMELINE

#define TIMELINE_BEGIN
#define TIMELINE_END
#define MARK(phase)
#define MARK_ARRIVAL(...)

#else

#define TIMELINE_BEGIN Timeline timeline
#define TIMELINE_END timeline.end()
#define MARK(phase) timeline.mark(Timeline::phase)
#define MARK_ARRIVAL(...) timeline.mark(Timeline::WAIT); timeline.arrive(__VA_ARGS__); timeline.mark(Timeline::COMPUTE)

typedef unsigned long long u64;

// Set by the host before the launch (lib/measure/timeline.py). A symbol, not a kernel argument,
// so that a kernel's signature is the same with marks and without.
struct TimelineBuffers {
    u64* events;     // [blocks][warps][capacity], each phase << 56 | cycles
    u64* overview;   // [grid][3]: SM, first nanosecond, last nanosecond
    unsigned blocks, capacity;  // how many blocks note events, and how many events a warp
    unsigned skip;   // events that each warp lets pass before it notes the first
    unsigned zero;   // always 0, which the compiler can't know
};
__device__ TimelineBuffers timeline_buffers;

struct Timeline {
    enum Phase { LOAD, WAIT, COMPUTE, BARRIER, STORE, END };

    u64* slot = nullptr;
    u64* block = nullptr;
    unsigned count = 0, skip, capacity, zero;

    __device__ Timeline()
    {
        const TimelineBuffers& b = timeline_buffers;
        const unsigned id = blockIdx.x + gridDim.x * blockIdx.y;
        const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        const unsigned warps = (blockDim.x * blockDim.y * blockDim.z + 31) / 32;
        skip = b.skip, capacity = b.capacity, zero = b.zero;
        if (thread % 32 == 0 && id < b.blocks)
            slot = b.events + (size_t)(id * warps + thread / 32) * capacity;
        if (thread == 0) {
            unsigned sm;
            asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
            block = b.overview + 3ull * id;
            block[0] = sm, block[1] = nanoseconds();
        }
    }

    // The memory clobber keeps loads and stores on their own side of the stamp.
    __device__ void mark(unsigned phase)
    {
        u64 cycles;
        asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles) :: "memory");
        const unsigned place = count++ - skip;
        if (slot && place < capacity) slot[place] = (u64)phase << 56 | cycles;
        asm volatile("" ::: "memory");
    }

    // Instructions issue in order: a use of each value holds the warp until the value is there.
    template <typename... T>
    __device__ void arrive(T&... values)
    {
        (use(values), ...);
    }

    __device__ void use(float& value)
    {
        asm volatile("xor.b32 %0, %0, %1;" : "+f"(value) : "r"(zero) : "memory");
    }

    __device__ void end()
    {
        mark(END);
        if (block) block[2] = nanoseconds();
    }

    __device__ static u64 nanoseconds()
    {
        u64 now;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) :: "memory");
        return now;
    }
};

#endif
