#!/bin/sh
# supervise COMMAND…: what systemd does for a node, inside of a container, whose engine restarts after any exit code.
#
# Exit codes of protocol/errors.py: after 1, and after a signal, the command is started again. After 2 (hopeless) and
# 3 (slashed, or fraud found) it is not: the container stays up, unhealthy, until a person has read the log and stops
# it. SIGTERM is passed on; a second one too, at which a node stops at once.
set -u

PAUSE="${SUPERVISE_PAUSE:-15}"
child=
asked=

stop() {
    asked=yes
    [ -n "$child" ] && kill -TERM "$child" 2> /dev/null
}
trap stop TERM INT

# Starts a process and waits for it, however often a signal wakes the shell; its exit code is then `code`.
run() {
    "$@" &
    child=$!
    # The signal may have come when no child was known yet.
    [ -n "$asked" ] && kill -TERM "$child" 2> /dev/null
    while :; do
        wait "$child"
        code=$?
        kill -0 "$child" 2> /dev/null || break
    done
    child=
}

while :; do
    run "$@"
    ended=$code
    [ -n "$asked" ] && exit "$ended"
    case "$ended" in
        0 | 130) exit "$ended" ;;
        2 | 3)
            echo "supervise: $1 has ended with exit code $ended and is not started again; read its last lines" >&2
            # Short naps: a signal that reaches a child before it has become `sleep` is lost on it.
            while [ -z "$asked" ]; do run sleep 1; done
            ;;
        *)
            echo "supervise: $1 has ended with exit code $ended and is started again in $PAUSE s" >&2
            run sleep "$PAUSE"
            ;;
    esac
    [ -n "$asked" ] && exit "$ended"
done
