#!/usr/bin/env bash
# Settings and secrets as files: a mount, what is in it, and that it is still there after the next mount.
set -euo pipefail
# shellcheck source=Examples/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

echo hunter2 >~/password.txt
shows "" 'keyhole mount ~/Keyhole'
cd ~/Keyhole

echo "# A suite is a folder, a key a file. The type comes from the first content and stays."
shows "" 'mkdir defaults/com.example.app'
shows "" 'echo 11 > defaults/com.example.app/volume'
shows 11 'cat defaults/com.example.app/volume'
shows integer 'getfattr --only-values -n user.keyhole.type defaults/com.example.app/volume'
shows "failed" '(echo loud > defaults/com.example.app/volume) 2> /dev/null || echo failed'
shows 11 'cat defaults/com.example.app/volume'

echo "# Arrays and dictionaries are JSON."
shows "" 'echo '\''["de","en"]'\'' > defaults/com.example.app/languages'
shows $'[\n  "de",\n  "en"\n]' 'cat defaults/com.example.app/languages'

echo "# It is the property list that UserDefaults(suiteName:) reads."
shows '<integer>11</integer>' 'grep -o "<integer>.*" ~/.config/com.example.app.plist'

echo "# An item is a folder: service, account, and the secret in value, without the line's end."
# A secret that is typed after echo would be in the history of the shell. On a terminal `keyhole set` asks for it.
shows "" 'keyhole set keychain/generic/my.service/peter/value < ~/password.txt'
shows hunter2 'cat keychain/generic/my.service/peter/value'
shows 7 'stat -c %s keychain/generic/my.service/peter/value'
shows "" 'setfattr -n user.comment -v "the spare one" keychain/generic/my.service/peter'
shows "the spare one" 'getfattr --only-values -n user.comment keychain/generic/my.service/peter'

echo "# At rest, neither the secret nor the names are to be found."
shows "nothing" 'grep -rqaE "hunter2|my.service|the spare one" ~/.local/share/keyhole || echo nothing'

echo "# All of it is there after the next mount, and without one."
cd ~
shows "" 'keyhole unmount ~/Keyhole'
shows 11 'keyhole get defaults/com.example.app/volume'
shows "" 'keyhole mount ~/Keyhole'
shows hunter2 'cat ~/Keyhole/keychain/generic/my.service/peter/value'
shows "" 'rm -r ~/Keyhole/keychain/generic/my.service/peter ~/Keyhole/defaults/com.example.app'
shows "" 'ls ~/Keyhole/defaults'
shows "" 'keyhole unmount ~/Keyhole'
