"""Parameters' types from mangled names and from the source, and arguments held against them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from lib import ptx
from lib.compiler.signature import check_arguments, from_mangled, from_source, of_kernel

# As c++filt has them.
MANGLED = {
    "_Z5scalePfS_i": ["float*", "float*", "int"],
    "_Z4gemmILi128ELi8EEvPKfS1_Pfi": ["float*", "float*", "float*", "int"],
    "_Z5scaleIfEvPT_S0_i": ["float*", "float", "int"],
    "_ZN5inner5twiceILi3EEEvPf": ["float*"],
    "_Z1fPK6__halfS1_PS_i": ["__half*", "__half*", "__half*", "int"],
    "_Z1g14CUtensorMap_st": ["CUtensorMap_st"],
    "_Z1f6float4PS_PKS_": ["float4", "float4*", "float4*"],
    "_Z1fN3foo3BarIfEEPS1_": ["foo::Bar<float>", "foo::Bar<float>*"],
    "_Z1fv": [],
    "plain": [],
}


@pytest.mark.parametrize("name", MANGLED)
def test_mangled_names_are_read(name):
    assert [str(one) for one in from_mangled(name)] == MANGLED[name]


def test_what_is_not_understood_is_not_guessed():
    assert from_mangled("_Z1fDv4_fU8__vectori") == ()


def test_parameters_are_read_as_they_are_written():
    found = from_source(
        "const float *__restrict__ A, int n = f(1, 2), Pair<int, float> p, half x[], int **y")
    assert [str(one) for one in found] == [
        "float* A", "int n", "Pair<int, float> p", "half* x", "int** y"]


def test_names_come_from_the_source_and_types_from_the_mangled_name():
    (x, n) = of_kernel("_Z5scaleIfEvPT_i", "T* x, int n")
    assert (str(x), str(n)) == ("float* x", "int n")


SIGNATURE = from_source("const float* A, const __half* h, int n, float alpha, uint8_t* raw")
RIGHT = (np.zeros(4, np.float32), np.zeros(4, np.float16), np.int32(4), np.float32(1),
         np.zeros(4, np.float64))


def test_right_arguments_pass():
    check_arguments("f", SIGNATURE, RIGHT)
    check_arguments("f", SIGNATURE, (None, np.zeros(4, np.uint16), 4, 1, np.zeros(2, np.uint8)))


@pytest.mark.parametrize("place, given, said", [
    (0, np.zeros(4), r"argument 0 \(float\* A\): was given an array of float64: pass a float32"),
    (0, 5, r"argument 0 \(float\* A\): needs an array, not the number 5"),
    (1, np.zeros(4, np.float32), r"\(__half\* h\): was given an array of float32"),
    (1, np.zeros(4, np.int16), r"\(__half\* h\): was given an array of int16"),
    (0, np.zeros(4, ml_dtypes.bfloat16), r"an array of bfloat16"),
    (2, np.float32(4), r"argument 2 \(int n\): needs an integer"),
    (3, np.zeros(3, np.float32), r"\(float alpha\): needs a number, not an array"),
])
def test_wrong_arguments_are_told_in_one_line(place, given, said):
    args = [*RIGHT]
    args[place] = given
    with pytest.raises(ptx.LaunchError, match=said) as error:
        check_arguments("f", SIGNATURE, args)
    assert "\n" not in str(error.value)


