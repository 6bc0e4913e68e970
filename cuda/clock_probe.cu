// Reads each SM's own clock, before and after the launches of a kernel that is timed: on the same SM
// the cycles between two readings, over the nanoseconds, are the mean clock that these launches had.
// The kernel under test stays as it is. Launch clock_probe with one thread a block and more blocks
// than the GPU has SMs, so that each SM gets one at least; timer_tick with one thread.

struct Stamp
{
    unsigned long long sm, cycles, nanoseconds;
};

template <int THREADS>
__global__ void __launch_bounds__(THREADS) clock_probe(Stamp* stamps)
{
    unsigned int sm;
    unsigned long long cycles, nanoseconds;
    // Side by side and in the same order in both probes: what lies between the two reads cancels.
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    stamps[blockIdx.x] = Stamp{sm, cycles, nanoseconds};
}

// What %globaltimer moves by: its value COUNT times, each time when it has changed.
template <int COUNT>
__global__ void timer_tick(unsigned long long* values)
{
    unsigned long long last = 0, now;
    for (int i = 0; i < COUNT; ++i) {
        do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        while (now == last);
        values[i] = last = now;
    }
}
