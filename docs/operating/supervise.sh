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

# Waits for the last process that was started, however often a signal wakes the shell; its exit code.
await() {
    while :; do
        wait "$child"
        code=$?
        kill -0 "$child" 2> /dev/null || return "$code"
    done
}

sleep_for() {
    sleep "$1" &
    child=$!
    await
    child=
}

while :; do
    "$@" &
    child=$!
    await
    code=$?
    child=
    [ -n "$asked" ] && exit "$code"
    case "$code" in
        0 | 130) exit "$code" ;;
        2 | 3)
            echo "supervise: $1 has ended with exit code $code and is not started again; read its last lines" >&2
            while [ -z "$asked" ]; do sleep_for 3600; done
            exit "$code"
            ;;
    esac
    echo "supervise: $1 has ended with exit code $code and is started again in $PAUSE s" >&2
    sleep_for "$PAUSE"
    [ -n "$asked" ] && exit "$code"
done
