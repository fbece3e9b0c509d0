# shellcheck shell=sh
# A run that is at work goes on reading its program, and holds this lock: the program is not replaced under it. The
# longest run is over after seven minutes (TimeoutStartSec= of the units).
let_it_finish() {
    [ ! -e /run/homeport/lock ] || flock --timeout 420 /run/homeport/lock true || true
}
