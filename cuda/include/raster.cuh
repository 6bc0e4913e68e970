// In which order the tiles of C are computed: tiles that run at the same time should share rows of
// A and columns of B in the L2.
#pragma once

// Bands of GROUP rows of tiles; in a band, column by column.
template <int GROUP>
__device__ inline int2 raster(int index, int tiles_m, int tiles_n)
{
    const int band = index / (GROUP * tiles_n), place = index % (GROUP * tiles_n);
    const int rows = min(GROUP, tiles_m - band * GROUP);  // the last band may be thinner
    return make_int2(band * GROUP + place % rows, place / rows);
}
