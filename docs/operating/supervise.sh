#!/bin/sh
# supervise COMMAND…: what systemd does for a node, inside of a container, whose engine restarts after any exit code.
#
# Exit codes of protocol/errors.py: after 1, and after a signal, `solver run` and `verifier watch` are started again.
# After 0 (drained), 2 (hopeless), 3 (slashed, or fraud found) and 130 (stopped) they are not: the container stays up,
# unhealthy, until a person has read the log and stops it. Were it to end, the engine would start it again, and a
# drained solver would take tasks. SIGTERM is passed on; a second one too, at which a node stops at once.
# Other commands run once, as without this script.
set -u

case "$1 ${2-}" in
    "solver run" | "verifier watch") ;;
    *) exec "$@" ;;
esac

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
        0 | 2 | 3 | 130)
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
