// DeepGEMM's kernels for sm_100 are templates in headers, which its host's code instantiates by NVRTC.
#define cudaGridDependencySynchronize() ((void)0)  // no kernel runs before this one
#include <deep_gemm/epilogue/transform.cuh>
#include <deep_gemm/impls/sm100_bf16_gemm.cuh>
#include <deep_gemm/impls/sm100_fp8_fp4_gemm_1d1d.cuh>
