"""The verifier: the party that stakes, replays drawn segments, attests those that are equal and challenges
those that differ.
"""
