// Mistake: a thread adds its products to an accumulator that nobody set to zero.
// Cure: give the accumulator its first value: 0.
// Launch: sm_80 grid 1 block 32 args float32[128]:ones float32[4]:ones float32[32] int:4
// Says: UninitialisedRead
__global__ void accumulator_unwritten(const float* a, const float* b, float* c, int length)
{
#ifdef CURED
    float sum = 0;
#else
    float sum;
#endif
    for (int k = 0; k < length; k++) sum += a[length * threadIdx.x + k] * b[k];
    c[threadIdx.x] = sum;
}
