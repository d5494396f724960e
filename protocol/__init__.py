"""What every party must agree on, bit for bit. Imports none of the parties."""
