// Mistake: a kernel declares two arrays of dynamic shared memory and uses them as if apart: both
//   begin at one address.
// Cure: one declaration, and the second array behind the first.
// Seen: https://github.com/JuliaGPU/CUDA.jl/issues/555
// Launch: sm_80 grid 1 block 64 shared 512 args int32[64]:arange int32[64]:arange int32[64]
// Says: one address
__global__ void two_dynamic_arrays(const int* a, const int* b, int* y)
{
    extern __shared__ int of_a[];
#ifdef CURED
    int* of_b = of_a + 64;
#else
    extern __shared__ int of_b[];
#endif
    of_a[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    of_b[threadIdx.x] = b[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = of_a[63 - threadIdx.x] + of_b[63 - threadIdx.x];
}
