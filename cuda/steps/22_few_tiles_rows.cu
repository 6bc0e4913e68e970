// 22, step: the same kernel, for tiles of any multiple of 8 rows, operands swapped.
//
// Changes:    nothing but the number of rows that wgmma has an instruction for: 200 rows of C are
//             two tiles of 104 there, not of 128. 22's own file keeps to those that it was recorded
//             with.
// Launch:     as 22, SWAPPED.
// Runs on:    sm_90a.
//
// The rest:   as in 22.
#include "wgmma_rows.cuh"
#include "../22_few_tiles.cu"
