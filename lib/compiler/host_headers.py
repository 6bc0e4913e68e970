"""Stand-ins for headers of the host that NVRTC lacks, given to it by name.

Device code wants little of them: integer types, limits, a few templates of ``std``, which the
toolkit has as ``cuda::std``. What only the host's part of a file uses is left empty, since that
part is not compiled. The templates take seconds to read: who needs none of ``std`` gets those
headers empty, too.
"""

from __future__ import annotations

_EMPTY = (
    "assert.h", "atomic", "cassert", "cctype", "cerrno", "chrono", "condition_variable", "cstdarg",
    "cstdio", "cstdlib", "cstring", "ctime", "ctype.h", "deque", "errno.h", "exception", "fstream",
    "future", "iomanip", "ios", "iosfwd", "iostream", "istream", "list", "locale", "map", "memory",
    "mutex", "new", "omp.h", "ostream", "queue", "random", "regex", "set", "sstream", "stdarg.h",
    "stdbool.h", "stddef.h", "stdexcept", "stdio.h", "stdlib.h", "string", "string.h",
    "string_view", "sys/stat.h", "sys/time.h", "sys/types.h", "thread", "time.h", "typeindex",
    "typeinfo", "unistd.h", "unordered_map", "unordered_set", "vector",
)  # fmt: skip
_STD = (
    "array", "bit", "cmath", "complex", "cstddef", "functional", "initializer_list", "iterator",
    "limits", "numeric", "optional", "ratio", "span", "tuple", "type_traits", "utility", "variant",
)  # fmt: skip
_THRUST = (
    "thrust/copy.h", "thrust/device_ptr.h", "thrust/device_vector.h", "thrust/execution_policy.h",
    "thrust/fill.h", "thrust/host_vector.h", "thrust/reduce.h", "thrust/scan.h", "thrust/sort.h",
    "thrust/transform.h",
)  # fmt: skip
_IN_STD = "namespace std { using namespace cuda::std; }\n"
_INTEGERS = "#include <cuda/std/cstdint>\n"  # small, and the toolkit's headers bring it as well
# cuda/std/algorithm came late.
_ALGORITHM = """
#if __has_include(<cuda/std/algorithm>)
#include <cuda/std/algorithm>
namespace std { using namespace cuda::std; }
#else
#include <cuda/std/utility>
namespace std {
using cuda::std::swap;
template <class T>
__device__ constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T>
__device__ constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
}
#endif
"""

_PLAIN: dict[str, str] = {
    **dict.fromkeys((*_EMPTY, *_STD, "algorithm"), ""),
    **dict.fromkeys(("stdint.h", "inttypes.h", "cstdint", "cinttypes"), _INTEGERS),
    **dict.fromkeys(("limits.h", "climits"), "#include <cuda/std/climits>\n"),
    **dict.fromkeys(("float.h", "cfloat", "math.h", "cmath"), ""),  # see PRELUDE
    **dict.fromkeys(("cublas_v2.h", "cublasLt.h", "cublas_api.h"),  # which bring these
                    "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"),
    **dict.fromkeys(("cub/cub.cuh", *_THRUST), ""),
}
_WITH_STD: dict[str, str] = {
    **_PLAIN,
    **{name: f"#include <cuda/std/{name}>\n{_IN_STD}" for name in _STD},
    **dict.fromkeys(("cstdint", "cinttypes"), _INTEGERS + _IN_STD),
    "algorithm": _ALGORITHM,
}
# What of CUB is for the device; the rest of <cub/cub.cuh> is the host's.
_CUB = "".join(f"#include <cub/{name}.cuh>\n" for name in (
    "block/block_load", "block/block_store", "block/block_reduce", "block/block_scan",
    "block/block_radix_sort", "warp/warp_reduce", "warp/warp_scan",
))

# What every file that nvcc compiles finds without asking: the host's headers bring it.
PRELUDE = """\
typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned long ulong;
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LN2 0.69314718055994530942
#define M_PI 3.14159265358979323846
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define HUGE_VALF INFINITY
#define HUGE_VAL ((double)INFINITY)
#define FLT_EPSILON 1.19209290e-7f
#define FLT_MIN 1.17549435e-38f
#define FLT_MAX 3.40282347e+38f
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_MIN 2.2250738585072014e-308
#define DBL_MAX 1.7976931348623157e+308
"""


def headers(std: bool = True, cub: bool = True) -> dict[str, str]:
    """Return the stand-ins by the name that they are included by.

    Parameters
    ----------
    std, cub : bool
        Whether device code uses ``std`` and CUB.
    """
    found = dict(_WITH_STD if std else _PLAIN)
    return found | ({"cub/cub.cuh": _CUB} if cub else {})
