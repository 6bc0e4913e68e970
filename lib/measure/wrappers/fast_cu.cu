// pranjalssh/fast.cu: its twelfth kernel. It writes C by columns: so it is given B as A and A as B,
// and what it writes is C by rows. Compile with -I FOLDER.
#include "peer.h"

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda/barrier>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <cuda.h>
#include <cuda_bf16.h>

// What its own program defines before it includes a kernel.
typedef __nv_bfloat16 bf16;
#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))
#define cudaCheck(status) (void)(status)

#include "examples/matmul/matmul_12.cuh"

namespace {
// It keeps tensor maps and the order of tiles in globals, made at its first launch: a set for each
// set of matrices.
struct Prepared {
    int M, N, K;
    bf16 *A, *B, *C;
    CUtensorMap a, b, c;
    int *order;
};

int run(const Prepared &p)
{
    M12::runKernel12(p.N, p.M, p.K, p.B, p.A, p.C, nullptr);
    return cudaGetLastError();
}
}

int peer_count() { return 1; }
const char *peer_name(int) { return "128x256x64, cluster 2"; }
int peer_takes(int, int M, int N, int K) { return M % 256 == 0 && N % 256 == 0 && K % 64 == 0; }

void *peer_prepare(int, int M, int N, int K, const void *A, const void *B, void *C,
                   const float *, const float *)
{
    auto *p = new Prepared{M, N, K, (bf16 *)A, (bf16 *)B, (bf16 *)C};
    M12::_prev_m = -1;
    if (run(*p) != cudaSuccess) return nullptr;
    p->a = M12::d_tma_map_A;
    p->b = M12::d_tma_map_B;
    p->c = M12::d_tma_map_C;
    p->order = M12::_dspace;
    return p;
}

int peer_run(int, void *prepared)
{
    const Prepared &p = *static_cast<Prepared *>(prepared);
    M12::d_tma_map_A = p.a;
    M12::d_tma_map_B = p.b;
    M12::d_tma_map_C = p.c;
    M12::_dspace = p.order;
    M12::_prev_m = p.N, M12::_prev_n = p.M, M12::_prev_k = p.K;
    return run(p);
}
