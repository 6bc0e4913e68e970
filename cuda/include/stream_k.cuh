// Stream-K: the first tiles are cut into equal shares along K, and who comes last of those that share
// a tile adds up their sums (sm_90).
#pragma once

#include "barrier.cuh"

// Steps [from, to) along K of one tile.
struct Share {
    int tile, from, to;
};

// What one cluster does, in its order: its share of the cut tiles, and whole ones. Of its share the
// tile that it begins comes first, and then the one that it ends: so all clusters walk along K
// together, and what one reads of A and B is in the L2 for the next.
struct Shares {
    int count;

    // The first `cut_tiles` are divided among the first `sharers` clusters.
    __device__ Shares(int tiles, int steps, int me, int clusters, int cut_tiles, int sharers)
        : steps(steps), me(me), clusters(clusters), cut_tiles(cut_tiles)
    {
        const long long all = (long long)cut_tiles * steps, begin = all * me / sharers;
        length = me < sharers ? all * (me + 1) / sharers - begin : 0;
        tile = begin / steps, from = begin % steps;
        pieces = length > 0 ? (from + length + steps - 1) / steps : 0;
        count = pieces + (tiles - cut_tiles - me + clusters - 1) / clusters;
        if (length == 0) return;
        // Divided here, before there are sums that a call would spill.
        first = (((long long)tile * steps + 1) * sharers - 1) / all;
        last = ((long long)(tile + pieces) * steps * sharers - 1) / all;
    }

    __device__ Share operator[](int i) const
    {
        if (i >= pieces) return {cut_tiles + me + (i - pieces) * clusters, 0, steps};
        const int piece = i == 0 ? pieces - 1 : i - 1;
        return {tile + piece, piece == 0 ? from : 0, min(steps, from + length - piece * steps)};
    }

    // Whether `sum` is now the tile's whole sum. Who ends the tile keeps its part in registers if all
    // others have left theirs in `parts`; else it leaves its own, too, and the last that comes adds
    // up all: the tile's end, and then the others in the order of K, whoever adds.
    // Each cluster has room for two parts, the second for the tile that it begins; there and in
    // `arrivals` each warpgroup has a place of PLACES.
    template <int PLACES, int BLOCKS, int SUMS>
    __device__ bool add_up(float (&sum)[BLOCKS][SUMS], float* parts, int* arrivals, int cut_tile,
                           int place, int barrier) const
    {
        constexpr int FOURS = SUMS / 4, ALL = BLOCKS * FOURS;
        const int first = cut_tile == tile ? this->first : me;
        const int last = cut_tile == tile + pieces - 1 ? this->last : me;
        const int thread = threadIdx.x % 128;
        auto part = [&](int cluster) {
            const size_t room = 2 * cluster + (cluster == first);
            return reinterpret_cast<float4*>(parts) + (room * PLACES + place) * (ALL * 128) +
                   thread;
        };
        __shared__ int earlier[3];
        int* arrived = &arrivals[cut_tile * PLACES + place];
        auto others_came = [&](int add) {
            barrier_sync(barrier, 128);
            if (thread == 0) earlier[barrier] = atomicAdd(arrived, add);
            barrier_sync(barrier, 128);
            return earlier[barrier] == last - first;
        };
        const bool keeps = me == last && others_came(0);
        if (!keeps) {
            float4* mine = part(me);
#pragma unroll
            for (int i = 0; i < ALL; ++i) {
                const float* s = &sum[i / FOURS][i % FOURS * 4];
                mine[i * 128] = make_float4(s[0], s[1], s[2], s[3]);
            }
            __threadfence();
            if (!others_came(1)) return false;
#pragma unroll
            for (int i = 0; i < ALL; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[i / FOURS][i % FOURS * 4 + j] = 0.0f;
        }
        __threadfence();
        if (thread == 0) *arrived = 0;
#pragma unroll 1
        for (int i = keeps; i <= last - first; ++i) {
            const float4* other = part(i == 0 ? last : first + i - 1);
#pragma unroll
            for (int j = 0; j < ALL; ++j) {
                const float4 v = __ldcg(other + j * 128);
                float* s = &sum[j / FOURS][j % FOURS * 4];
                s[0] += v.x, s[1] += v.y, s[2] += v.z, s[3] += v.w;
            }
        }
        return true;
    }

private:
    int steps, me, clusters, cut_tiles;
    int tile, from, length, pieces;  // of the cut tiles: where this cluster begins, in how many
    int first, last;  // who begins its first tile, who ends its last
};
