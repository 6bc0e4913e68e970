// Keeps the GPU waiting while a benchmark queues its launches. Launch: one thread.
template <int THREADS>
__global__ void __launch_bounds__(THREADS) busy(unsigned long long nanoseconds)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < nanoseconds);
}
