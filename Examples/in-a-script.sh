#!/usr/bin/env bash
# Keyhole in a script, with no mount: settings by name, and a secret that no process list shows.
set -euo pipefail
# shellcheck source=Examples/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

shows "" 'keyhole set defaults/com.example.deploy/retries 3'
shows 3 'keyhole get defaults/com.example.deploy/retries'

echo "# A secret comes from standard input; as an argument it is refused."
echo s3cret >~/token.txt
shows "" 'keyhole set keychain/internet/db.example.com/deploy/value < ~/token.txt'
shows 2 'keyhole set keychain/internet/db.example.com/deploy/value s3cret 2> /dev/null; echo $?'
shows s3cret 'keyhole get keychain/internet/db.example.com/deploy/value'

echo "# Attributes are the item's own."
shows "" 'keyhole attr keychain/internet/db.example.com/deploy comment "rotated in spring"'
shows "rotated in spring" 'keyhole attr keychain/internet/db.example.com/deploy comment'

echo "# Names one a line, and an exit code that a script can use."
shows deploy 'keyhole ls keychain/internet/db.example.com'
shows 3 'keyhole get defaults/com.example.deploy/missing 2> /dev/null; echo $?'
shows "" 'keyhole rm -r keychain/internet/db.example.com/deploy'
