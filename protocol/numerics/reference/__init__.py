"""The meaning of every element operation in plain Python integers: the oracle for torch kernels and for the EVM.

Slow on purpose. No float appears, and of the math library only `isqrt`: an f32 is its 32-bit pattern as a
non-negative int, u32 is an int below 2^32, i32 and i64 are signed ints, bool is bool or 0 and 1. Rows are
sequences of these. Everything is total but casts that do not exist.
"""
