// What every version does with a finished sum: C = alpha * sum + beta * C.
#pragma once

// beta == 0 never reads C, which may hold anything, NaN included: that is BLAS's rule.
__device__ inline void update(float* c, float alpha, float sum, float beta)
{
    *c = beta == 0.0f ? alpha * sum : alpha * sum + beta * *c;
}
