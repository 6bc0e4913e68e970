// Orders of the tiles of C beside raster.cuh's: Hilbert's curve, whose neighbours are neighbours.
#pragma once

#include "raster.cuh"

// Bands of SIDE rows as raster's, SIDE a power of two; but where a band has a whole square of SIDE
// columns, its tiles follow Hilbert's curve, from its top left to its top right.
template <int SIDE>
__device__ inline int2 hilbert(int index, int tiles_m, int tiles_n)
{
    const int2 tile = raster<SIDE>(index, tiles_m, tiles_n);
    const int top = tile.x / SIDE * SIDE, left = tile.y / SIDE * SIDE;
    if (top + SIDE > tiles_m || left + SIDE > tiles_n) return tile;
    int place = index - top * tiles_n - left * SIDE, x = 0, y = 0;
    // From squares of one tile to larger ones: a quarter is turned, then moved to its place.
    for (int side = 1; side < SIDE; side *= 2, place /= 4) {
        const int right = place / 2 & 1, down = (place ^ right) & 1;
        if (!down) {
            if (right) x = side - 1 - x, y = side - 1 - y;
            const int other = x;
            x = y, y = other;
        }
        x += right * side, y += down * side;
    }
    return make_int2(top + y, left + x);
}

template <int GROUP, bool HILBERT>
__device__ inline int2 ordered(int index, int tiles_m, int tiles_n)
{
    if constexpr (HILBERT) return hilbert<GROUP>(index, tiles_m, tiles_n);
    else return raster<GROUP>(index, tiles_m, tiles_n);
}
