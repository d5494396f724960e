"""Tests of examples/'s notebook and of event files for TensorBoard. requirements.txt has their packages."""
