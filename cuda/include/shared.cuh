// A pointer to shared memory as PTX instructions take it: 32 bits.
#pragma once

__device__ inline unsigned shared_address(const void* pointer)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}
