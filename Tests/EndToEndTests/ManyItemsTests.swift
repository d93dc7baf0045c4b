import Glibc
import Testing

/// A vault of 10,000 items, which a mount reads while it serves.
@Suite(.timeLimit(.minutes(5))) struct ManyItemsTests {
  private static let service = "keychain/generic/svc"

  private func withItems(_ body: (MountedKeyhole) throws -> Void) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        seq 10000 | sed 's/.*/KEY_&=value-&/' > "$OUT/items.env"
        keyhole import --to \(Self.service) "$OUT/items.env" > /dev/null
        """)
      try keyhole.remount()
      try body(keyhole)
    }
  }

  @Test func mountServesThemFromItsBeginningOn() async throws {
    try await withItems { keyhole in
      try keyhole.check(
        """
        cat \(Self.service)/KEY_7/value; echo; printf new > \(Self.service)/KEY_8/value; cat \(Self.service)/KEY_8/value; echo
        mkdir -p \(Self.service)/added keychain/generic/other/added; printf 1 > \(Self.service)/added/value
        cat \(Self.service)/missing/value 2> /dev/null || echo none; stat keychain/generic/nowhere 2> /dev/null || echo none
        rm -r \(Self.service)/KEY_9; ls \(Self.service) | wc -l; ls keychain/generic; jq -c .keychainTrust .keyhole/status
        """, prints: "value-7\nnew\nnone\nnone\n10000\nother\nsvc\n{}\n")
      // A lock while they are read changes nothing of that.
      try keyhole.remount()
      try keyhole.check(
        "keyhole lock; ls \(Self.service) | wc -l; keyhole unlock; cat \(Self.service)/KEY_7/value",
        prints: "10000\nvalue-7")
    }
  }

  @Test func changesOfOthersAreSeenAndAnEditIsFound() async throws {
    try await withItems { keyhole in
      try keyhole.check("ls \(Self.service) | wc -l", prints: "10000\n")
      try keyhole.world.check(
        """
        printf longer-value | keyhole set \(Self.service)/KEY_7/value; keyhole rm -r \(Self.service)/KEY_8
        printf 1 | keyhole set \(Self.service)/added/value
        """)
      #expect(
        try holds {
          try keyhole.sh(
            "stat -c %s \(Self.service)/KEY_7/value; ls \(Self.service) | grep -cx 'KEY_8\\|added'"
          ).text == "12\n1\n"
        })
      let trust = "jq -c '.keychainTrust | keys' .keyhole/status"
      try keyhole.check(trust, prints: "[]\n")
      // The change is refused where the edit was found before it.
      try keyhole.world.check(
        """
        sqlite3 "$DATA/keyhole/vault.db" 'DELETE FROM item WHERE uuid = (SELECT max(uuid) FROM item)'
        printf 2 | keyhole set \(Self.service)/added/value 2> /dev/null || true
        """)
      #expect(try holds { try keyhole.sh(trust).text == "[\"distrusted\"]\n" })
      #expect(try keyhole.sh("printf 1 > \(Self.service)/KEY_7/value").status != 0)
    }
  }
}
