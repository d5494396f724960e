"""The meaning of every element operation in plain Python integers: the oracle for torch kernels and for the
EVM.

It is slow on purpose. It uses no floats, and only `isqrt` of the math library. An f32 is its 32-bit pattern
as a non-negative int, a u32 is an int below 2^32, i32 and i64 are signed ints, and a bool is a Python bool or
the int 0 or 1. Rows are sequences of these values. Every operation gives a result for all values of its
operands, with one exception: a cast that does not exist, from f32 to a type other than i32 or bool, raises
ValueError.
"""
