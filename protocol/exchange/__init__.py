"""Lanes as processes of strangers: what a lane announces of its rounds, and how the others' messages reach it.

A lane serves a folder of plain files: its announcements, signed by its account, and tensors by their roots. Whatever
another lane or a mirror hands out is checked against the announcement, so anybody may serve it. Which lane counts in
which round says a file here; a chain is to say it (docs/lanes.md).

    jobs            a folder with all that a lane needs: a bundle, and the numbers of the job
    members         the lanes' accounts and addresses, mirrors, and who counts in which round
    announcements   a lane's signed word that it has trained a round
    messages        whether the bytes of a message are one that `emit` can have made
    shelf           the files that a lane keeps and serves
    server          the shelf over HTTP
    peers           others' announcements and tensors, from any place that has them
    lane            the rounds of one lane, which go on where they were stopped
"""
