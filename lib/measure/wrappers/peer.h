// What every wrapper of a peer offers to lib/measure/peers.py. All matrices are the book's: A is M×K
// by rows, B is K×N by rows (or by columns, where the peer says so), C is M×N by rows; α is 1 and β 0.
#pragma once
#include <cuda_runtime.h>

extern "C" {
int peer_count();                            // configurations
const char *peer_name(int configuration);
int peer_takes(int configuration, int M, int N, int K);
// What a launch needs, for one set of matrices; null where it can't be made. Never freed: a process
// prepares a few dozen.
void *peer_prepare(int configuration, int M, int N, int K, const void *A, const void *B, void *C,
                   const float *a_scales, const float *b_scales);  // null where there are none
int peer_run(int configuration, void *prepared);  // on the default stream; a cudaError_t
}
