"""Lanes as separate processes that do not trust each other: announcements, and the exchange of messages.

A lane serves a folder of plain files: announcements signed by its account, and tensors named by their roots.
A lane checks the signature of an announcement, and checks everything else against the announcement, so
anybody may serve these files. The members file says which lane counts in which round; later a chain will
replace it (docs/lanes.md).

    jobs            a folder with all that a lane needs: a bundle, and the numbers of the job
    members         the lanes' accounts and addresses, mirrors, and who counts in which round
    announcements   a lane's signed statement that it has trained a round
    messages        checks that `emit` can have made a message
    shelf           the files that a lane keeps and serves
    server          the shelf over HTTP
    peers           fetches others' announcements and tensors from any place that has them
    lane            runs the rounds of one lane, and resumes after a stop
"""
