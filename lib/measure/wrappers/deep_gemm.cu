// deepseek-ai/DeepGEMM on sm_90a: A by rows, B by columns, C in BF16. E4M3 with scales by blocks, as
// cublasLt has them; or, with -DBF16_COLUMN, BF16. Its own code is compiled for a problem's N and K:
// so here for three cubes. Compile with -I FOLDER/deep_gemm/include -I CUTLASS/include.
#include "peer.h"

#include <cuda.h>

#ifdef BF16_COLUMN
#include <deep_gemm/impls/sm90_bf16_gemm.cuh>
#else
#include <deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh>
#endif

namespace {
#ifdef BF16_COLUMN
using In = __nv_bfloat16;
constexpr auto IN = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
#else
using In = __nv_fp8_e4m3;
constexpr auto IN = CU_TENSOR_MAP_DATA_TYPE_UINT8;
#endif
constexpr int SMS = 132;  // a constant of its kernels: an H100's or H200's
constexpr int BK = 128 / sizeof(In), PRODUCERS = 128;

struct Prepared {
    int M;
    const float *b_scales;
    CUtensorMap A, B, C, a_scales;
};

// A matrix by rows, in boxes of `height` rows and `width` columns.
bool encode(CUtensorMap &map, CUtensorMapDataType type, int bytes, const void *matrix, int rows,
            int columns, int height, int width, CUtensorMapSwizzle swizzle)
{
    const cuuint64_t sizes[] = {(cuuint64_t)columns, (cuuint64_t)rows};
    const cuuint64_t stride[] = {(cuuint64_t)columns * bytes};
    const cuuint32_t box[] = {(cuuint32_t)width, (cuuint32_t)height}, ones[] = {1, 1};
    return cuTensorMapEncodeTiled(&map, type, 2, (void *)matrix, sizes, stride, box, ones,
                                  CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Its kernel for one cube and tile; clusters of two share A, or B, or nothing.
template <int SIZE, int BM, int BN, int STAGES, int CLUSTER, bool SHARE_A>
struct Made {
    static constexpr int CONSUMERS = BM <= 64 ? 128 : 256, SCALES = SIZE / 128;
#ifdef BF16_COLUMN
    static constexpr auto kernel = &deep_gemm::sm90_bf16_gemm_impl<
        cute::UMMA::Major::K, cute::UMMA::Major::K, 0, SIZE, SIZE, 1, BM, BN, BK, 128, 128, 128,
        STAGES, PRODUCERS, CONSUMERS, CLUSTER, SHARE_A, SMS, deep_gemm::GemmType::Normal, false,
        cutlass::bfloat16_t>;
    static constexpr int OF_SCALES = 0, OF_B_SCALES = 0;
#else
    static constexpr auto kernel = &deep_gemm::sm90_fp8_gemm_1d2d_impl<
        cute::UMMA::Major::K, 0, SIZE, SIZE, 1, BM, BN, BK, 128, 128, 128, STAGES, PRODUCERS,
        CONSUMERS, CLUSTER, SHARE_A, SMS, deep_gemm::GemmType::Normal, cutlass::bfloat16_t,
        deep_gemm::epilogue::transform::EpilogueIdentity>;
    static constexpr int OF_SCALES = BM * 4, OF_B_SCALES = SCALES * (BK % BN ? 2 : 1) * 4;
#endif
    // What its own host code reserves: C, the ring, scales, and barriers of 16 stages.
    static constexpr int BYTES =
        BM * BN * 2 + STAGES * ((BM + BN) * BK * (int)sizeof(In) + OF_SCALES) + OF_B_SCALES + 256;

    static void *prepare(int M, const void *A, const void *B, void *C, const float *a_scales,
                         const float *b_scales)
    {
        auto *p = new Prepared{M, b_scales};
        constexpr auto WIDE = CU_TENSOR_MAP_SWIZZLE_128B, PLAIN = CU_TENSOR_MAP_SWIZZLE_NONE;
        const bool made =
            encode(p->A, IN, sizeof(In), A, M, SIZE, BM, BK, WIDE)
            && encode(p->B, IN, sizeof(In), B, SIZE, SIZE, BN, BK, WIDE)
            && encode(p->C, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, C, M, SIZE, BM, 64, WIDE)
            && (!OF_SCALES || encode(p->a_scales, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, a_scales,
                                     SCALES, M, 1, BM, PLAIN))
            && cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES)
                   == cudaSuccess;
        return made ? p : nullptr;
    }

    static int run(const Prepared &p)
    {
        cudaLaunchAttribute cluster{};
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim = {CLUSTER, 1, 1};
        cudaLaunchConfig_t config{};
        config.gridDim = SMS;
        config.blockDim = PRODUCERS + CONSUMERS;
        config.dynamicSmemBytes = BYTES;
        config.attrs = &cluster;
        config.numAttrs = 1;
        int *groups = nullptr;
#ifdef BF16_COLUMN
        return cudaLaunchKernelEx(&config, kernel, groups, (uint32_t)p.M, (uint32_t)SIZE,
                                  (uint32_t)SIZE, p.A, p.B, p.C);
#else
        return cudaLaunchKernelEx(&config, kernel, (float *)p.b_scales, groups, (uint32_t)p.M,
                                  (uint32_t)SIZE, (uint32_t)SIZE, p.A, p.B, p.C, p.a_scales);
#endif
    }
};

struct Configuration {
    const char *name;
    int size;
    void *(*prepare)(int, const void *, const void *, void *, const float *, const float *);
    int (*run)(const Prepared &);
};

template <int SIZE, int... TILE>
constexpr Configuration made(const char *name)
{
    using One = Made<SIZE, TILE...>;
    return {name, SIZE, One::prepare, One::run};
}

// Of each cube the tiles that its own heuristic ranks first: rows, columns, stages, blocks of a
// cluster, whether they share A.
const Configuration configurations[] = {
#ifdef BF16_COLUMN
    made<2048, 128, 256, 3, 1, false>("128x256x64, 3 stages"),
    made<2048, 128, 128, 6, 2, true>("128x128x64, 6 stages, pairs share A"),
    made<4096, 256, 128, 3, 2, true>("256x128x64, 3 stages, pairs share A"),
    made<4096, 128, 256, 3, 2, false>("128x256x64, 3 stages, pairs share B"),
    made<8192, 256, 128, 3, 2, true>("256x128x64, 3 stages, pairs share A"),
    made<8192, 128, 256, 3, 2, false>("128x256x64, 3 stages, pairs share B"),
#else
    made<2048, 256, 128, 3, 1, false>("256x128x128, 3 stages"),
    made<2048, 128, 128, 5, 2, true>("128x128x128, 5 stages, pairs share A"),
    made<4096, 256, 128, 3, 2, true>("256x128x128, 3 stages, pairs share A"),
    made<4096, 256, 128, 3, 2, false>("256x128x128, 3 stages, pairs share B"),
    made<4096, 128, 128, 5, 2, true>("128x128x128, 5 stages, pairs share A"),
    made<8192, 256, 128, 3, 2, true>("256x128x128, 3 stages, pairs share A"),
    made<8192, 256, 128, 3, 2, false>("256x128x128, 3 stages, pairs share B"),
    made<8192, 128, 128, 5, 2, true>("128x128x128, 5 stages, pairs share A"),
#endif
};
}

int peer_count() { return sizeof configurations / sizeof *configurations; }
const char *peer_name(int configuration) { return configurations[configuration].name; }

int peer_takes(int configuration, int M, int N, int K)
{
    int device = 0, sms = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    const int size = configurations[configuration].size;
    return sms == SMS && M == size && N == size && K == size;
}

void *peer_prepare(int configuration, int M, int, int, const void *A, const void *B, void *C,
                   const float *a_scales, const float *b_scales)
{
    return configurations[configuration].prepare(M, A, B, C, a_scales, b_scales);
}

int peer_run(int configuration, void *prepared)
{
    return configurations[configuration].run(*static_cast<Prepared *>(prepared));
}
