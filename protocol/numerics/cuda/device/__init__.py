"""Triton code, run by `launch.start`. Only `launch` imports these modules, because they import Triton."""
