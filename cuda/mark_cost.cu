// What a mark of the timeline costs: COUNT marks with nothing between them. Launch: one warp.
#include "timeline.cuh"

template <int COUNT>
__global__ void mark_cost()
{
    TIMELINE_BEGIN;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) { MARK(COMPUTE); }
}
