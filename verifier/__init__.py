"""The verifier: the party that stakes, replays drawn segments, attests those that equal the solver's
commitment and challenges those that differ.
"""
