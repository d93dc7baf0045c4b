#!/usr/bin/env bash
# The five libraries for Swift programs: the example package of each, and the shell on the same store.
# WRAPPERS names the folder of the built examples.
# shellcheck disable=SC2016  # `shows` runs the commands
set -euo pipefail
wrappers=${WRAPPERS:?build the packages in Examples with one --scratch-path and name the folder of the programs}
wrappers=$(realpath -- "$wrappers")
# shellcheck source=Examples/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
PATH=$wrappers:$PATH

echo "# Foil: a publisher and an observer are notified of each change, and the shell reads the new value."
shows $'average: none\ncount: 0 -> 1\naverage: 0.5\nin the suite: foil' foil
shows $'1\n0.5\nfalse' 'for key in totalCount average flagEnabled; do keyhole get defaults/foil/$key; done'

echo "# UserDefault: nil that was set is something else than what was never set."
shows $'false 42 untitled\ntrue nil main\nwindow: main\nwindow: closed' user-default
shows $'{\n  "title": "closed",\n  "width": 640\n}' 'keyhole get defaults/user-default/window'
shows "" 'keyhole rm defaults/user-default/count; keyhole set defaults/user-default/count 7'
shows 'true 7 closed' 'user-default | head -n 1'

echo "# PropertyKit: a property is watched through all that it reads."
shows $'untitled, light -> letter, light\nletter, light -> letter, dark\nremoved: 1' property-kit
shows dark 'keyhole get defaults/property-kit/theme'

echo "# The compiler sees to it that no key is used twice."
cat >"$HOME/twice.swift" <<'END'
import PropertyKit
protocol MyDefaultsKeysUsingInA: PropertyDefaults { var noThisIsMyKeyNotYours: Int? { get } }
extension Defaults: MyDefaultsKeysUsingInA {
  var noThisIsMyKeyNotYours: Int? { set { set(newValue) } get { return get() } }
}
protocol MyDefaultsKeysUsingInB: PropertyDefaults { var noThisIsMyKeyNotYours: Int? { get } }
extension Defaults: MyDefaultsKeysUsingInB {
  var noThisIsMyKeyNotYours: Int? { set { set(newValue) } get { return get() } }
}
END
# shellcheck disable=SC2034  # `shows` uses it
modules=(-I "$wrappers/Modules" -Xcc "-fmodule-map-file=$wrappers/CSystem.build/module.modulemap")
shows "twice.swift:8:7: error: invalid redeclaration of 'noThisIsMyKeyNotYours'" \
  'swiftc -typecheck "${modules[@]}" ~/twice.swift 2>&1 | grep -o "twice.swift:.*error: invalid redecl.*"'

echo "# KeychainStorage and FTPropertyWrappers: secrets."
shows $'open: false\nopen: true\nopen: false' keychain-storage
shows $'Peter Parker - the name of a hero\nThe Valley Wind\nnil nil' ft-property-wrappers
shows "" 'keyhole ls keychain/generic'

echo "# All of them in Swift 6 mode."
shows $'a task reads 1\ny dark\nen\nz 2\nthe count changes' strict
shows en 'keyhole get defaults/strict/language'

echo "# Who uses settings only links no keychain and no file system."
shows "" 'ldd "$wrappers/foil" | grep -E "libfuse|libsecret|libsqlite|libgio" || true'
shows 0 'grep -cE "sqlite3_open|4GRDB|fuse_session|secret_service" "$wrappers/foil" || true'
