// As tma.cuh's loads, from a batch of matrices: the map has a third dimension (sm_90).
#pragma once

#include "tma.cuh"

// The box at (row, column) of a matrix, for the blocks of the cluster whose bits `ranks` has; a
// matrix that is alone has a map of two dimensions.
template <bool BATCH, int SHARERS>
__device__ inline void tma_load_of(unsigned to, const TensorMap& map, unsigned barrier, int row,
                                   int column, int matrix, unsigned short ranks)
{
    if constexpr (!BATCH) {
        tma_load_shared<SHARERS>(to, map, barrier, row, column, ranks);
    } else if constexpr (SHARERS > 1) {
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
            ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;"
            ::"r"(to), "l"(&map), "r"(barrier), "r"(column), "r"(row), "r"(matrix), "h"(ranks)
            : "memory");
    } else {
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
            " [%0], [%1, {%3, %4, %5}], [%2];"
            ::"r"(to), "l"(&map), "r"(barrier), "r"(column), "r"(row), "r"(matrix) : "memory");
    }
}
