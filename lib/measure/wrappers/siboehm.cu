// siboehm/SGEMM_CUDA: its tenth kernel, warp tiling, with the two settings that its runner names.
// Compile with -I FOLDER/src.
#include "peer.h"

#include "kernels/10_kernel_warptiling.cuh"

namespace {
struct Matrices { int M, N, K; float *A, *B, *C; };

template <int BM, int BN, int BK, int WM, int WN, int WNITER, int TM, int TN, int THREADS>
int launch(const Matrices &m)
{
    sgemmWarptiling<BM, BN, BK, WM, WN, WNITER, TM, TN, THREADS>
        <<<dim3(m.N / BN, m.M / BM), THREADS>>>(m.M, m.N, m.K, 1.0f, m.A, m.B, 0.0f, m.C);
    return cudaGetLastError();
}

const char *const names[] = {"128x128x16", "64x128x16"};
const int rows[] = {128, 64};
}

int peer_count() { return 2; }
const char *peer_name(int configuration) { return names[configuration]; }

int peer_takes(int configuration, int M, int N, int K)
{
    return M % rows[configuration] == 0 && N % 128 == 0 && K % 16 == 0;
}

void *peer_prepare(int, int M, int N, int K, const void *A, const void *B, void *C,
                   const float *, const float *)
{
    return new Matrices{M, N, K, (float *)A, (float *)B, (float *)C};
}

int peer_run(int configuration, void *prepared)
{
    const Matrices &m = *static_cast<Matrices *>(prepared);
    return configuration == 0 ? launch<128, 128, 16, 64, 64, 4, 8, 4, 128>(m)
                              : launch<64, 128, 16, 32, 64, 1, 4, 4, 128>(m);
}
