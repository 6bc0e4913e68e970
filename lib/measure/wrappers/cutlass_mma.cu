// CUTLASS for sm_75 (-DTURING) or sm_80: FP16 in, sums and C in FP32, all by rows. Several tiles.
// Compile with -I CUTLASS/include.
#include "peer.h"

#include "cutlass/gemm/device/gemm.h"

namespace {
#ifdef TURING
using Arch = cutlass::arch::Sm75;
using Instruction = cutlass::gemm::GemmShape<16, 8, 8>;
#define STAGED(stages) 2
#else
using Arch = cutlass::arch::Sm80;
using Instruction = cutlass::gemm::GemmShape<16, 8, 16>;
#define STAGED(stages) stages
#endif

using Row = cutlass::layout::RowMajor;
using Half = cutlass::half_t;

template <int M, int N, int K, int WM, int WN, int STAGES>
using Gemm = cutlass::gemm::device::Gemm<
    Half, Row, Half, Row, float, Row, float, cutlass::arch::OpClassTensorOp, Arch,
    cutlass::gemm::GemmShape<M, N, K>, cutlass::gemm::GemmShape<WM, WN, K>, Instruction,
    cutlass::epilogue::thread::LinearCombination<float, 4, float, float>,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<8>, STAGED(STAGES)>;

template <class G>
void *prepare(int M, int N, int K, const void *A, const void *B, void *C)
{
    typename G::Arguments arguments({M, N, K}, {(const Half *)A, K}, {(const Half *)B, N},
                                    {(float *)C, N}, {(float *)C, N}, {1.0f, 0.0f});
    auto *gemm = new G;
    if (G::can_implement(arguments) != cutlass::Status::kSuccess
        || gemm->initialize(arguments) != cutlass::Status::kSuccess)
        return nullptr;
    return gemm;
}

template <class G>
int run(void *prepared)
{
    return (*static_cast<G *>(prepared))() == cutlass::Status::kSuccess ? cudaSuccess
                                                                        : cudaErrorUnknown;
}

struct Configuration {
    const char *name;
    void *(*prepare)(int, int, int, const void *, const void *, void *);
    int (*run)(void *);
};

#define TILE(M, N, K, WM, WN, S) \
    {#M "x" #N "x" #K, prepare<Gemm<M, N, K, WM, WN, S>>, run<Gemm<M, N, K, WM, WN, S>>}

const Configuration configurations[] = {
    TILE(128, 128, 32, 64, 64, 4),
    TILE(128, 256, 32, 64, 64, 3),
    TILE(256, 128, 32, 64, 64, 3),
#ifndef TURING
    TILE(128, 128, 64, 64, 64, 3),
    TILE(128, 256, 64, 64, 64, 3),
    TILE(256, 128, 64, 64, 64, 3),
#endif
    TILE(64, 128, 32, 32, 64, 4),
};
}

int peer_count() { return sizeof(configurations) / sizeof(*configurations); }
const char *peer_name(int configuration) { return configurations[configuration].name; }
int peer_takes(int, int, int N, int K) { return N % 8 == 0 && K % 8 == 0; }

void *peer_prepare(int configuration, int M, int N, int K, const void *A, const void *B, void *C,
                   const float *, const float *)
{
    return configurations[configuration].prepare(M, N, K, A, B, C);
}

int peer_run(int configuration, void *prepared)
{
    return configurations[configuration].run(prepared);
}
