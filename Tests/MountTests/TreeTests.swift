import Testing

@Suite(.timeLimit(.minutes(1))) struct TreeTests {
  @Test func topHoldsDefaultsAndKeychain() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("ls -A", prints: "defaults\nkeychain\n")
    }
  }
}
