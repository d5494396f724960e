"""The notebook of examples/, and event files for TensorBoard: what requirements.txt here installs."""
