# shellcheck shell=bash
# Shared by the examples: a home of their own that is gone afterwards, and `shows`, which runs a command
# before your eyes and ends the example when it does not print what it should.

keyhole=${KEYHOLE:-$(command -v keyhole || true)}
[[ -n $keyhole ]] || {
  echo "no keyhole in PATH; name it: KEYHOLE=.build/release/keyhole $0" >&2
  exit 2
}
keyhole=$(realpath -- "$keyhole")
keyhole() { "$keyhole" "$@"; }

HOME=$(mktemp -d /tmp/keyhole-example.XXXXXX)
export HOME XDG_RUNTIME_DIR=$HOME/run LC_ALL=C.UTF-8
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME DBUS_SESSION_BUS_ADDRESS
mkdir -m 700 "$XDG_RUNTIME_DIR" "$HOME/Keyhole"

# shellcheck disable=SC2317  # called by the trap
tidy() {
  cd /
  fusermount3 -u -z "$HOME/Keyhole" 2>/dev/null || true
  rm -rf --one-file-system -- "$HOME"
}
trap tidy EXIT
trap 'exit 130' INT TERM HUP

# shows EXPECTED 'COMMAND': what it prints, errors too, has to be what is expected.
shows() {
  local printed
  printf '$ %s\n' "$2"
  printed=$(eval "$2" 2>&1) || true
  [[ -z $printed ]] || printf '%s\n' "$printed"
  [[ $printed == "$1" ]] || {
    printf '%s: expected instead:\n%s\n' "$0" "$1" >&2
    exit 1
  }
}
