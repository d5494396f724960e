"""Tests of the notebook in examples/, and of event files for TensorBoard. The packages that they need are in
requirements.txt of this folder.
"""
