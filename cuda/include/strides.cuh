// Matrices whose rows don't follow each other at once, and many products of one shape: a batch.
//
// A kernel that takes them has one more argument, Strides, and that type as the last argument of
// its template. Without it all of this compiles to nothing.
#pragma once

// How many products; how many elements lie from a row to the next (of a matrix that is kept column
// by column, from a column), and from the matrix of one product to that of the next.
struct Strides {
    int count, a, b, c;
    long long next_a, next_b, next_c;
};

__device__ inline int products() { return 1; }
__device__ inline int products(const Strides& strides) { return strides.count; }

// Where a tile lies: its number within its product, which product that is, and that one's C.
template <class TC>
struct Place {
    TC* C;
    int pitch, tile, product;
};

// The place of a tile of those of all products, of which each has so many.
template <class TC>
__device__ inline Place<TC> place(TC* C, int N, int tile, int tiles)
{
    return {C, N, tile, 0};
}

template <class TC>
__device__ inline Place<TC> place(TC* C, int, int tile, int tiles, const Strides& strides)
{
    const int product = tile / tiles;
    return {C + product * strides.next_c, strides.c, tile % tiles, product};
}

// Where a row begins, of the matrices of all products one behind the other: elements from the first.
__device__ inline size_t row_of(int row, int rows, int columns) { return (size_t)row * columns; }
__device__ inline size_t row_of(int row, int rows, int, const Strides& strides)
{
    return row / rows * strides.next_a + (size_t)(row % rows) * strides.a;
}

// And how far it is from the first element to behind the last.
__device__ inline size_t span(int rows, int columns) { return (size_t)rows * columns; }
__device__ inline size_t span(int rows, int columns, const Strides& strides)
{
    return row_of(rows * strides.count - 1, rows, columns, strides) + columns;
}

// A and B of a product, and from row to row of each: `a` and `b` where they are tight.
template <class T>
struct Operands {
    const T *A, *B;
    int a, b;
};

template <class T>
__device__ inline Operands<T> operands(const T* A, int a, const T* B, int b, int)
{
    return {A, B, a, b};
}

template <class T>
__device__ inline Operands<T> operands(const T* A, int, const T* B, int, int product,
                                       const Strides& strides)
{
    return {A + product * strides.next_a, B + product * strides.next_b, strides.a, strides.b};
}
