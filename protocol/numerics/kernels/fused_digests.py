"""Digests of what the plain implementations make of every trial in `fused`: what lets compiled functions in.

tests/unit/library/test_fused.py holds them to the plain implementations.
"""

DIGESTS = {
    "EXP": "2400d15864586ad6",
    "LOG": "f182015295e8563a",
    "TANH": "8b6ae993c75f2618",
    "SIGMOID": "0c53a21de99413ad",
    "ERF": "978f843eda6d6839",
    "SIN": "b9a2d238429776f4",
    "COS": "1c4893c40c540836",
    "RSQRT": "012c02bcf1d8c1dc",
    "GELU_ERF": "24fb8a8202cd22db",
    "GELU_TANH": "eeeb3af07003b1c9",
    "SILU": "53ab878dec90ceb4",
    "GELU_ERF_GRAD": "ad8f59ed2d448c1e",
    "GELU_TANH_GRAD": "b8ab43437d5d4236",
    "SILU_GRAD": "dd223126e8741e43",
    "softmax": "852b97689357c3d7",
    "safe_softmax": "71fc1eb6f14152a8",
    "softmax_grad": "5c46a25f618dc413",
    "log_softmax": "e111c61e67d17c6d",
    "log_softmax_grad": "0a40d27d22627e95",
    "sum_rows": "133820402934f767",
    "sum_columns": "61b8029aaee42fd1",
    "layer_norm": "112f042cd8e38e75",
    "layer_norm_grad": "9ccc0e4c01318284",
    "layer_norm_grad_gain": "8c2fb97e9e15ebe3",
    "adamw": "aac253d77dc2892f",
    "canonical": "2a7fce12e448cbc3",
}
CPU_DIGESTS: dict[str, str] = {
    "ADD": "c4342fdaf757f414",
    "SUB": "db50d579fca5e1d3",
    "MUL": "9f6b37625eec825f",
    "DIV": "38ea6746b78a1fd0",
    "MINIMUM": "8ff80f69d2b0b555",
    "MAXIMUM": "13220ccf85b3b76c",
    "LT": "e1c7511fb330c176",
    "LE": "6b0b6395086328e5",
    "select": "6e5537bfeaddfc9d",
    "select_one": "ac661d94674ea764",
    "sgd": "637898814e992150",
    "sgd_momentum": "8800044f7605bad3",
    "sgd_nesterov": "9d8f65dc8fadf7e7",
    "scatter_sum": "822273487ba4563b",
}
"""Of functions that CUDA does not have."""
