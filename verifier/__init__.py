"""The party that stakes, replays drawn segments, attests and challenges."""
