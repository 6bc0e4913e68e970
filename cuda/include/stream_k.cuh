// Stream-K: the tiles of the last, incomplete wave are cut into equal shares along K, and who comes
// last of those that share a tile adds up their sums (sm_90).
#pragma once

#include "barrier.cuh"
#include "pitched.cuh"

// Steps [from, to) along K of one tile.
struct Share {
    int tile, from, to;
};

// What one cluster does, in its order: what it has of the cut tiles, and whole ones.
struct Shares {
    int count;

    __device__ Shares(int tiles, int steps, int me, int clusters, int sharers)
        : steps(steps), me(me), clusters(clusters), rest(tiles % clusters), sharers(sharers)
    {
        if (sharers > rest) {  // equal shares of all their steps; none is longer than a tile
            const long long all = (long long)rest * steps, begin = all * me / sharers;
            length = me < sharers ? all * (me + 1) / sharers - begin : 0;
            tile = begin / steps, from = begin % steps;
            cut = (length > 0) + (from + length > steps);
        } else {
            tile = me, from = 0, length = steps;
            cut = me < rest;
        }
        count = cut + tiles / clusters;
    }

    __device__ Share operator[](int i) const
    {
        if (i >= cut) return {rest + me + (i - cut) * clusters, 0, steps};
        if (i == 0) return {tile, from, min(steps, from + length)};
        return {tile + 1, 0, from + length - steps};
    }

    // A warpgroup leaves its part of a cut tile's sum; the last to arrive adds up all parts, in their
    // order, and writes C's rows from `row` and columns from `col` on. Each cluster has room for
    // two tiles, the second for the one that it begins; there and in `arrivals` each warpgroup has
    // a place of PLACES. `pitch`: as in pitched.cuh, if C isn't tight.
    template <int PLACES, bool PITCHED = false, int BLOCKS, int SUMS, class TC>
    __device__ void add_up(const float (&sum)[BLOCKS][SUMS], float* parts, int* arrivals,
                           int cut_tile, int place, int barrier, TC* C, int M, int N, int row,
                           int col, float alpha, float beta, int pitch = 0) const
    {
        constexpr int FOURS = SUMS / 4, ALL = BLOCKS * FOURS;
        constexpr int AHEAD = ALL % 8 ? 4 : ALL % 16 ? 8 : 16;
        static_assert(ALL % AHEAD == 0);
        const long long all = (long long)rest * steps, begins = (long long)cut_tile * steps;
        const int first = ((begins + 1) * sharers - 1) / all;
        const int last = ((begins + steps) * sharers - 1) / all;
        const int thread = threadIdx.x % 128, lane = threadIdx.x % 32;
        auto part = [&](int cluster) {
            const size_t room = 2 * cluster + (cluster == first);
            return reinterpret_cast<float4*>(parts) + (room * PLACES + place) * (ALL * 128) +
                   thread;
        };
        float4* mine = part(me);
#pragma unroll
        for (int i = 0; i < ALL; ++i) {
            const float* s = &sum[i / FOURS][i % FOURS * 4];
            mine[i * 128] = make_float4(s[0], s[1], s[2], s[3]);
        }
        __threadfence();
        barrier_sync(barrier, 128);
        __shared__ int earlier[3];
        int* arrived = &arrivals[cut_tile * PLACES + place];
        if (thread == 0) earlier[barrier] = atomicAdd(arrived, 1);
        barrier_sync(barrier, 128);
        if (earlier[barrier] != last - first) return;
        __threadfence();
        if (thread == 0) *arrived = 0;
        // The registers of `sum` are free now, and take many parts at a time.
#pragma unroll 1
        for (int i = 0; i < ALL; i += AHEAD) {
            float4 total[AHEAD] = {};
            for (int cluster = first; cluster <= last; ++cluster) {
                const float4* other = part(cluster) + i * 128;
                float4 v[AHEAD];
#pragma unroll
                for (int j = 0; j < AHEAD; ++j) v[j] = __ldcg(other + j * 128);
#pragma unroll
                for (int j = 0; j < AHEAD; ++j) {
                    total[j].x += v[j].x, total[j].y += v[j].y;
                    total[j].z += v[j].z, total[j].w += v[j].w;
                }
            }
#pragma unroll
            for (int j = 0; j < AHEAD; ++j) {
                const int along = (i + j) / FOURS * 64 + thread / 32 * 16;
                const int across = (i + j) % FOURS * 8;
                const int y = row + along + lane / 4, x = col + across + lane % 4 * 2;
                for (int h = 0; h < 2; ++h) {
                    const float2 pair = h == 0 ? make_float2(total[j].x, total[j].y)
                                               : make_float2(total[j].z, total[j].w);
                    TC* c = &C[(size_t)(y + 8 * h) * (PITCHED ? pitch : N) + x];
                    const int inside = y + 8 * h < M ? N - x : 0;
                    if constexpr (PITCHED)
                        update_two(c, begins_on<2 * sizeof(TC)>(C, pitch), inside, alpha, pair,
                                   beta);
                    else if (N % 2 == 0) update_pair<true>(c, inside, alpha, pair, beta);
                    else update_pair<false>(c, inside, alpha, pair, beta);
                }
            }
        }
    }

private:
    int steps, me, clusters, rest, sharers;
    int tile, from, length, cut;  // of the cut tiles: where this cluster begins, how many parts
};
