"""The party that stakes, replays drawn segments, attests what it finds equal and challenges what it does not."""
