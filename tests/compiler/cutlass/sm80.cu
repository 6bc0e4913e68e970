// CUTLASS 2.x's GEMM for sm_80: half row-major A and B, float C = alpha A B + beta C, three stages of
// cp.async. Its parameters are made where it runs, so that NVRTC compiles all of it.
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/thread/linear_combination.h"
#include "cutlass/gemm/kernel/default_gemm.h"
#include "cutlass/gemm/threadblock/threadblock_swizzle.h"
#include "cutlass/numeric_types.h"

using Swizzle = cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>;
using Gemm = cutlass::gemm::kernel::DefaultGemm<
    cutlass::half_t, cutlass::layout::RowMajor, 8, cutlass::half_t, cutlass::layout::RowMajor, 8,
    float, cutlass::layout::RowMajor, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80,
    cutlass::gemm::GemmShape<128, 128, 32>, cutlass::gemm::GemmShape<64, 64, 32>,
    cutlass::gemm::GemmShape<16, 8, 16>,
    cutlass::epilogue::thread::LinearCombination<float, 4, float, float>, Swizzle, 3, false,
    cutlass::arch::OpMultiplyAdd>::GemmKernel;

extern "C" __global__ void sizes(int* out)
{
    out[0] = sizeof(Gemm::SharedStorage);
    out[1] = Gemm::kThreadCount;
}

extern "C" __global__ void __launch_bounds__(Gemm::kThreadCount)
gemm(int M, int N, int K, float alpha, cutlass::half_t* A, cutlass::half_t* B, float beta, float* C)
{
    extern __shared__ __align__(16) unsigned char storage[];
    const cutlass::gemm::GemmCoord problem(M, N, K);
    Gemm::Params params(problem, Swizzle().get_tiled_shape(problem, {128, 128, 32}, 1), {A, K},
                        {B, N}, {C, N}, {C, N}, {alpha, beta});
    Gemm()(params, *reinterpret_cast<Gemm::SharedStorage*>(storage));
}
