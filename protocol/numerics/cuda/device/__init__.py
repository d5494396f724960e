"""Triton code, run by `launch.start`.

Outside this folder, only `launch` imports these modules, because they import Triton.
"""
