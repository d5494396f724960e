"""The meaning of every element operation in plain Python integers: the oracle for torch kernels and for the
EVM.

It is slow on purpose. It uses no floats, and of the math library only `isqrt`. An f32 is its 32-bit pattern
as a non-negative int, a u32 is an int below 2^32, i32 and i64 are signed ints, and a bool is a bool or 0 or
1. Rows are sequences of these. Everything is total except casts that do not exist.
"""
