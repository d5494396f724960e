"""The rules, formats and computations on which all parties agree, bit for bit. Imports none of the parties."""
