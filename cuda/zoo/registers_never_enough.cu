// Mistake: two warpgroups ask for more registers than the third one gives back: they wait for ever.
// Cure: numbers whose sum is what the block was launched with.
// Seen: https://github.com/NVIDIA/cutlass/issues/2007
// Seen: https://github.com/pytorch/helion/pull/3620
// Launch: sm_90a grid 1 block 384 args int32[384]
// Says: Deadlock
__global__ void __launch_bounds__(384, 1) registers_never_enough(int* y)
{
    if (threadIdx.x < 128)
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    else
#ifdef CURED
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
#else
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
#endif
    y[threadIdx.x] = threadIdx.x;
}
