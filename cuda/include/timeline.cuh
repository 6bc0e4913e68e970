// Marks for the timeline: a warp notes the clock whenever a phase begins.
//
//   TIMELINE_BEGIN;                    once, at the top of the kernel
//   MARK(LOAD);                        from here on the warp issues loads
//   MARK_ARRIVAL(a, b);                WAIT begins; COMPUTE begins when a and b have arrived
//   TIMELINE_UNROLL                    before a short loop, of which only some steps are marked:
//   TIMELINE_SAMPLE(k % 4 == 0);       where this holds, which four unrolled steps know
//   TIMELINE_END;                      once, after the last store
//
// Without -DTIMELINE each of these is nothing, and the PTX is that of a file without them.
#pragma once

#ifndef TIMELINE

#define TIMELINE_BEGIN
#define TIMELINE_UNROLL
#define TIMELINE_SAMPLE(condition)
#define TIMELINE_END
#define MARK(phase)
#define MARK_ARRIVAL(...)

#else

#define TIMELINE_BEGIN Timeline timeline
#define TIMELINE_UNROLL _Pragma("unroll 4")
#define TIMELINE_SAMPLE(condition) timeline.sample(condition)
#define TIMELINE_END timeline.finish()
#define MARK(phase) timeline.mark(Timeline::phase)
#define MARK_ARRIVAL(...) timeline.mark_arrival(__VA_ARGS__)

// Set by the host before the launch (lib/measure/timeline.py). A symbol, not a kernel argument,
// so that a kernel's signature is the same with marks and without.
struct TimelineBuffers {
    uint2* events;                 // [blocks][warps][capacity], each {clock, phase}
    unsigned long long* overview;  // [grid][3]: SM, first nanosecond, last nanosecond
    unsigned blocks, warps, capacity;  // the first so many blocks, warps and events are noted,
    unsigned sm;                   // and only on this SM: marks slow the one that is looked at
    unsigned zero;                 // always 0, which the compiler can't know
};
__device__ TimelineBuffers timeline_buffers;

struct Timeline {
    enum Phase { LOAD, WAIT, COMPUTE, BARRIER, STORE, END };

    uint2* events = nullptr;
    unsigned count = 0, most = 0;  // events this warp has noted, and how many it may
    bool sampling = true;
    unsigned zero;
    unsigned long long* block = nullptr;

    __device__ Timeline()
    {
        const TimelineBuffers& b = timeline_buffers;
        const unsigned id = blockIdx.x + gridDim.x * blockIdx.y;
        const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        zero = b.zero;
        unsigned sm;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
        if (id < b.blocks && thread / 32 < b.warps && sm == b.sm) {
            events = b.events + (size_t)(id * b.warps + thread / 32) * b.capacity;
            most = b.capacity;
        }
        if (thread == 0) {
            block = b.overview + 3ull * id;
            block[0] = sm, block[1] = nanoseconds();
        }
    }

    // END closes the phase before it and begins none: nothing is known of the steps left out.
    __device__ void sample(bool condition)
    {
        if (sampling && !condition) mark(END);
        sampling = condition;
    }

    __device__ void mark(unsigned phase)
    {
        if (sampling && count < most) stamp(phase);
    }

    // Instructions issue in order: a use of each value holds the warp until the value is there.
    template <typename... T>
    __device__ void mark_arrival(T&... values)
    {
        if (!sampling || count >= most) return;
        stamp(WAIT);
        (use(values), ...);
        mark(COMPUTE);
    }

    // All lanes write the same eight bytes: one sector, and no lane need be chosen. The memory
    // clobbers keep loads and stores on their own side of the stamp.
    __device__ void stamp(unsigned phase)
    {
        unsigned cycles;
        asm volatile("mov.u32 %0, %%clock;" : "=r"(cycles) :: "memory");
        events[count++] = make_uint2(cycles, phase);
        asm volatile("" ::: "memory");
    }

    template <typename T>
    __device__ void use(T& value)
    {
        if constexpr (sizeof(T) == 2) {
            unsigned short& bits = reinterpret_cast<unsigned short&>(value);
            asm volatile("xor.b16 %0, %0, %1;" : "+h"(bits) : "h"((unsigned short)zero) : "memory");
        } else {
#pragma unroll
            for (int i = 0; i < sizeof(T) / 4; ++i) {
                unsigned& bits = reinterpret_cast<unsigned*>(&value)[i];
                asm volatile("xor.b32 %0, %0, %1;" : "+r"(bits) : "r"(zero) : "memory");
            }
        }
    }

    template <typename T, int COUNT>
    __device__ void use(T (&values)[COUNT])
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) use(values[i]);
    }

    __device__ void finish()
    {
        sampling = true;
        mark(END);
        if (block) block[2] = nanoseconds();
    }

    __device__ static unsigned long long nanoseconds()
    {
        unsigned long long now;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) :: "memory");
        return now;
    }
};

#endif
