// The lists of protocol/numerics/elementary: arithmetic.md section 6. Written by protocol/numerics/kernels/lists.py
// from the lists themselves; do not edit. Operations are those of scalar.h.
#pragma once
#include "scalar.h"

namespace assay {
namespace {

inline float list_exp(float x) {
    const auto v0 = op_maximum(x, float_of(0xc2d00000u));
    const auto v1 = op_minimum(v0, float_of(0x42b20000u));
    const auto v2 = op_mul(v1, float_of(0x3fb8aa3bu));
    const auto v3 = op_rint(v2);
    const auto v4 = op_mul(v3, float_of(0x3f317200u));
    const auto v5 = op_sub(v1, v4);
    const auto v6 = op_mul(v3, float_of(0x35bfbe8eu));
    const auto v7 = op_sub(v5, v6);
    const auto v8 = op_mul(v7, v7);
    const auto v9 = op_mul(float_of(0x3ab50d39u), v7);
    const auto v10 = op_add(v9, float_of(0x3c091fe3u));
    const auto v11 = op_mul(v10, v7);
    const auto v12 = op_add(v11, float_of(0x3d2aac8bu));
    const auto v13 = op_mul(v12, v7);
    const auto v14 = op_add(v13, float_of(0x3e2aaa45u));
    const auto v15 = op_mul(v14, v7);
    const auto v16 = op_add(v15, float_of(0x3efffffeu));
    const auto v17 = op_mul(v8, v16);
    const auto v18 = op_add(v7, v17);
    const auto v19 = op_add(float_of(0x3f800000u), v18);
    const auto v20 = op_f32_to_i32(v3);
    const auto v21 = op_scale(v19, v20);
    return v21;
}

inline float list_log(float x) {
    const auto v0 = op_lt(x, float_of(0x00800000u));
    const auto v1 = op_scale(x, int32_t(24));
    const auto v2 = op_select(v0, v1, x);
    const auto v3 = op_bits_i32(v2);
    const auto v4 = op_sub_i32(v3, int32_t(1060439283));
    const auto v5 = op_shr_i32(v4, int32_t(23));
    const auto v6 = op_select_i32(v0, int32_t(24), int32_t(0));
    const auto v7 = op_sub_i32(v5, v6);
    const auto v8 = op_and_i32(v4, int32_t(8388607));
    const auto v9 = op_add_i32(v8, int32_t(1060439283));
    const auto v10 = op_from_bits_i32(v9);
    const auto v11 = op_sub(v10, float_of(0x3f800000u));
    const auto v12 = op_mul(v11, v11);
    const auto v13 = op_mul(float_of(0x3f000000u), v12);
    const auto v14 = op_add(float_of(0x40000000u), v11);
    const auto v15 = op_div(v11, v14);
    const auto v16 = op_mul(v15, v15);
    const auto v17 = op_i32_to_f32(v7);
    const auto v18 = op_mul(float_of(0x3e98f1ffu), v16);
    const auto v19 = op_add(v18, float_of(0x3eccaf58u));
    const auto v20 = op_mul(v19, v16);
    const auto v21 = op_add(v20, float_of(0x3f2aaabdu));
    const auto v22 = op_mul(v16, v21);
    const auto v23 = op_add(v13, v22);
    const auto v24 = op_mul(v15, v23);
    const auto v25 = op_mul(v17, float_of(0x35bfbe8eu));
    const auto v26 = op_add(v24, v25);
    const auto v27 = op_mul(v17, float_of(0x3f317200u));
    const auto v28 = op_sub(v13, v26);
    const auto v29 = op_sub(v11, v28);
    const auto v30 = op_add(v27, v29);
    const auto v31 = op_eq(x, float_of(0x7f800000u));
    const auto v32 = op_select(v31, x, v30);
    const auto v33 = op_eq(x, float_of(0x00000000u));
    const auto v34 = op_select(v33, float_of(0xff800000u), float_of(0x7fc00000u));
    const auto v35 = op_lt(float_of(0x00000000u), x);
    const auto v36 = op_select(v35, v32, v34);
    return v36;
}

inline float list_tanh(float x) {
    const auto v0 = op_abs(x);
    const auto v1 = op_mul(v0, float_of(0xc0000000u));
    const auto v2 = op_maximum(v1, float_of(0xc1980000u));
    const auto v3 = op_mul(v2, float_of(0x3fb8aa3bu));
    const auto v4 = op_rint(v3);
    const auto v5 = op_mul(v4, float_of(0x3f317218u));
    const auto v6 = op_sub(v2, v5);
    const auto v7 = op_mul(v6, v6);
    const auto v8 = op_mul(float_of(0x3ab5f58bu), v6);
    const auto v9 = op_add(v8, float_of(0x3c09167fu));
    const auto v10 = op_mul(v9, v6);
    const auto v11 = op_add(v10, float_of(0x3d2aab40u));
    const auto v12 = op_mul(v11, v6);
    const auto v13 = op_add(v12, float_of(0x3e2aaa55u));
    const auto v14 = op_mul(v13, v6);
    const auto v15 = op_add(v14, float_of(0x3effffffu));
    const auto v16 = op_mul(v7, v15);
    const auto v17 = op_add(v6, v16);
    const auto v18 = op_f32_to_i32(v4);
    const auto v19 = op_power_of_two(v18);
    const auto v20 = op_mul(v17, v19);
    const auto v21 = op_sub(float_of(0x3f800000u), v19);
    const auto v22 = op_sub(v21, v20);
    const auto v23 = op_add(float_of(0x3f800000u), v19);
    const auto v24 = op_add(v23, v20);
    const auto v25 = op_div(v22, v24);
    const auto v26 = op_bits_u32(x);
    const auto v27 = op_and_u32(v26, uint32_t(2147483648u));
    const auto v28 = op_bits_u32(v25);
    const auto v29 = op_or_u32(v28, v27);
    const auto v30 = op_from_bits_u32(v29);
    return v30;
}

inline float list_sigmoid(float x) {
    const auto v0 = op_maximum(x, float_of(0xc2d00000u));
    const auto v1 = op_minimum(v0, float_of(0x41a00000u));
    const auto v2 = op_mul(v1, float_of(0xbfb8aa3bu));
    const auto v3 = op_rint(v2);
    const auto v4 = op_mul(v3, float_of(0xbf317200u));
    const auto v5 = op_sub(v4, v1);
    const auto v6 = op_mul(v3, float_of(0x35bfbe8eu));
    const auto v7 = op_sub(v5, v6);
    const auto v8 = op_mul(v7, v7);
    const auto v9 = op_mul(float_of(0x3ab50d39u), v7);
    const auto v10 = op_add(v9, float_of(0x3c091fe3u));
    const auto v11 = op_mul(v10, v7);
    const auto v12 = op_add(v11, float_of(0x3d2aac8bu));
    const auto v13 = op_mul(v12, v7);
    const auto v14 = op_add(v13, float_of(0x3e2aaa45u));
    const auto v15 = op_mul(v14, v7);
    const auto v16 = op_add(v15, float_of(0x3efffffeu));
    const auto v17 = op_mul(v8, v16);
    const auto v18 = op_add(v7, v17);
    const auto v19 = op_f32_to_i32(v3);
    const auto v20 = op_sub_i32(v19, int32_t(32));
    const auto v21 = op_power_of_two(v20);
    const auto v22 = op_mul(v18, v21);
    const auto v23 = op_add(float_of(0x2f800000u), v22);
    const auto v24 = op_add(v23, v21);
    const auto v25 = op_div(float_of(0x2f800000u), v24);
    return v25;
}

inline float list_erf(float x) {
    const auto v0 = op_abs(x);
    const auto v1 = op_minimum(v0, float_of(0x407b0000u));
    const auto v2 = op_sub(v1, float_of(0x401f0000u));
    const auto v3 = op_mul(float_of(0xb7191536u), v2);
    const auto v4 = op_add(v3, float_of(0x37bedc48u));
    const auto v5 = op_mul(v4, v2);
    const auto v6 = op_add(v5, float_of(0x3873c9b8u));
    const auto v7 = op_mul(v6, v2);
    const auto v8 = op_add(v7, float_of(0xb99724ddu));
    const auto v9 = op_mul(v8, v2);
    const auto v10 = op_add(v9, float_of(0x39ab1fb2u));
    const auto v11 = op_mul(v10, v2);
    const auto v12 = op_add(v11, float_of(0x3a0b7b9bu));
    const auto v13 = op_mul(v12, v2);
    const auto v14 = op_add(v13, float_of(0xbb3ca553u));
    const auto v15 = op_mul(v14, v2);
    const auto v16 = op_add(v15, float_of(0x3bd0be03u));
    const auto v17 = op_mul(v16, v2);
    const auto v18 = op_add(v17, float_of(0xbc1522cbu));
    const auto v19 = op_mul(v18, v2);
    const auto v20 = op_add(v19, float_of(0x3c11eddeu));
    const auto v21 = op_mul(v20, v2);
    const auto v22 = op_add(v21, float_of(0xbbbfba4bu));
    const auto v23 = op_mul(v22, v2);
    const auto v24 = op_add(v23, float_of(0x3b1a4ea2u));
    const auto v25 = op_mul(v24, v2);
    const auto v26 = op_add(v25, float_of(0x3f7fe303u));
    const auto v27 = op_lt(x, float_of(0x00000000u));
    const auto v28 = op_neg(v26);
    const auto v29 = op_select(v27, v28, v26);
    const auto v30 = op_mul(x, x);
    const auto v31 = op_mul(float_of(0x38a3b977u), v30);
    const auto v32 = op_add(v31, float_of(0xba51a8c5u));
    const auto v33 = op_mul(v32, v30);
    const auto v34 = op_add(v33, float_of(0x3ba9f913u));
    const auto v35 = op_mul(v34, v30);
    const auto v36 = op_add(v35, float_of(0xbcdbfb8du));
    const auto v37 = op_mul(v36, v30);
    const auto v38 = op_add(v37, float_of(0x3de71673u));
    const auto v39 = op_mul(v38, v30);
    const auto v40 = op_add(v39, float_of(0xbec0939fu));
    const auto v41 = op_mul(v40, v30);
    const auto v42 = op_add(v41, float_of(0x3e0375d4u));
    const auto v43 = op_mul(x, v42);
    const auto v44 = op_add(x, v43);
    const auto v45 = op_lt(v1, float_of(0x3f800000u));
    const auto v46 = op_select(v45, v44, v29);
    return v46;
}

inline float list_sin(float x) {
    const auto v0 = op_mul(x, float_of(0x3f22f983u));
    const auto v1 = op_f32_to_i32(v0);
    const auto v2 = op_i32_to_f32(v1);
    const auto v3 = op_mul(v2, float_of(0x3fc90000u));
    const auto v4 = op_sub(x, v3);
    const auto v5 = op_mul(v2, float_of(0x39fd8000u));
    const auto v6 = op_sub(v4, v5);
    const auto v7 = op_mul(v2, float_of(0x34a88000u));
    const auto v8 = op_sub(v6, v7);
    const auto v9 = op_sub(v6, v8);
    const auto v10 = op_sub(v9, v7);
    const auto v11 = op_mul(v2, float_of(0x2e858000u));
    const auto v12 = op_sub(v11, v10);
    const auto v13 = op_sub(v8, v12);
    const auto v14 = op_mul(v2, float_of(0x298c234cu));
    const auto v15 = op_mul(v13, v13);
    const auto v16 = op_mul(v13, v15);
    const auto v17 = op_mul(float_of(0x394c8e2eu), v15);
    const auto v18 = op_add(v17, float_of(0xbc088363u));
    const auto v19 = op_mul(v18, v15);
    const auto v20 = op_add(v19, float_of(0x3e2aaaa2u));
    const auto v21 = op_mul(v16, v20);
    const auto v22 = op_add(v21, v14);
    const auto v23 = op_sub(v13, v22);
    const auto v24 = op_mul(v15, v15);
    const auto v25 = op_mul(float_of(0x37ccef34u), v15);
    const auto v26 = op_add(v25, float_of(0xbab6060au));
    const auto v27 = op_mul(v26, v15);
    const auto v28 = op_add(v27, float_of(0x3d2aaaa5u));
    const auto v29 = op_mul(v24, v28);
    const auto v30 = op_mul(float_of(0x3f000000u), v15);
    const auto v31 = op_sub(float_of(0x3f800000u), v30);
    const auto v32 = op_add(v31, v29);
    const auto v33 = op_and_i32(v1, int32_t(1));
    const auto v34 = op_eq_i32(v33, int32_t(0));
    const auto v35 = op_and_i32(v1, int32_t(2));
    const auto v36 = op_eq_i32(v35, int32_t(0));
    const auto v37 = op_select(v34, v23, v32);
    const auto v38 = op_neg(v37);
    const auto v39 = op_select(v36, v37, v38);
    const auto v40 = op_abs(x);
    const auto v41 = op_lt(float_of(0x47000000u), v40);
    const auto v42 = op_select(v41, float_of(0x7fc00000u), v39);
    return v42;
}

inline float list_cos(float x) {
    const auto v0 = op_mul(x, float_of(0x3f22f983u));
    const auto v1 = op_f32_to_i32(v0);
    const auto v2 = op_i32_to_f32(v1);
    const auto v3 = op_mul(v2, float_of(0x3fc90000u));
    const auto v4 = op_sub(x, v3);
    const auto v5 = op_mul(v2, float_of(0x39fd8000u));
    const auto v6 = op_sub(v4, v5);
    const auto v7 = op_mul(v2, float_of(0x34a88000u));
    const auto v8 = op_sub(v6, v7);
    const auto v9 = op_sub(v6, v8);
    const auto v10 = op_sub(v9, v7);
    const auto v11 = op_mul(v2, float_of(0x2e858000u));
    const auto v12 = op_sub(v11, v10);
    const auto v13 = op_sub(v8, v12);
    const auto v14 = op_mul(v2, float_of(0x298c234cu));
    const auto v15 = op_mul(v13, v13);
    const auto v16 = op_mul(v13, v15);
    const auto v17 = op_mul(float_of(0x394c8e2eu), v15);
    const auto v18 = op_add(v17, float_of(0xbc088363u));
    const auto v19 = op_mul(v18, v15);
    const auto v20 = op_add(v19, float_of(0x3e2aaaa2u));
    const auto v21 = op_mul(v16, v20);
    const auto v22 = op_add(v21, v14);
    const auto v23 = op_sub(v13, v22);
    const auto v24 = op_mul(v15, v15);
    const auto v25 = op_mul(float_of(0x37ccef34u), v15);
    const auto v26 = op_add(v25, float_of(0xbab6060au));
    const auto v27 = op_mul(v26, v15);
    const auto v28 = op_add(v27, float_of(0x3d2aaaa5u));
    const auto v29 = op_mul(v24, v28);
    const auto v30 = op_mul(float_of(0x3f000000u), v15);
    const auto v31 = op_sub(float_of(0x3f800000u), v30);
    const auto v32 = op_add(v31, v29);
    const auto v33 = op_add_i32(v1, int32_t(1));
    const auto v34 = op_and_i32(v33, int32_t(1));
    const auto v35 = op_eq_i32(v34, int32_t(0));
    const auto v36 = op_and_i32(v33, int32_t(2));
    const auto v37 = op_eq_i32(v36, int32_t(0));
    const auto v38 = op_select(v35, v23, v32);
    const auto v39 = op_neg(v38);
    const auto v40 = op_select(v37, v38, v39);
    const auto v41 = op_abs(x);
    const auto v42 = op_lt(float_of(0x47000000u), v41);
    const auto v43 = op_select(v42, float_of(0x7fc00000u), v40);
    return v43;
}

inline float list_rsqrt(float x) {
    const auto v0 = op_sqrt(x);
    const auto v1 = op_div(float_of(0x3f800000u), v0);
    return v1;
}

}  // namespace
}  // namespace assay
