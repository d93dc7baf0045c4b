import Testing

/// The link that a file becomes, and the programs that write through it or replace it.
extension AdoptionTests {
  /// Before the question: what becomes of the link.
  @Test(arguments: [
    (".env", "A=abcdefgh12345678", "set_key of python-dotenv"),
    (".npmrc", "//r/:_authToken=npm_abcdefgh12345678", "`npm config set` saves through the link"),
    (".docker/config.json", #"{"auths":{"r":{"auth":"Ym9iOnNlY3JldDEyMzQ1"}}}"#, "`docker logout`"),
    (".aws/credentials", "[default]\naws_secret_access_key = abcdefgh12345678", "`aws configure`"),
    (".netrc", "machine h login u password abcdefgh12345678", "a program that saves by renaming"),
  ])
  func programsThatReplaceTheLinkAreNamed(file: String, text: String, words: String) async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check("mkdir -p ~/.docker ~/.aws; cat > ~/\(file)", sending: Array((text + "\n").utf8))
      let output = try world.sh("keyhole adopt ~/\(file)")
      #expect(output.status == 5 && output.error.contains(words), "\(output)")
      #expect(output.error.hasPrefix("While nothing is mounted, programs find no file there. "), "\(output)")
    }
  }

  /// While nothing is mounted, what was written into the view can't be taken back, and is not forgotten.
  @Test func aHelperIsNotForgottenWhileNothingIsMounted() async throws {
    try await Self.withHome { keyhole in
      let file = "~/.docker/config.json"
      try keyhole.world.checkHelpers(
        """
        mkdir ~/.docker; printf '{"auths":{"r":{"auth":"Ym9iOnNlY3JldDEyMzQ1"}}}' > \(file)
        keyhole credential install docker > /dev/null; keyhole adopt --yes --erase \(file) > /dev/null; keyhole unmount $MOUNT
        keyhole credential uninstall docker 2>&1 | grep -c 'a symbolic link that leads nowhere; `keyhole mount`'
        keyhole mount -q -o keychain=vault $MOUNT
        keyhole credential uninstall docker | grep -c 'taken back'; jq -c . \(file)
        """, prints: "1\n1\n{\"auths\":{\"r\":{\"auth\":\"Ym9iOnNlY3JldDEyMzQ1\"}}}\n")
    }
  }

  /// The configuration of a tool may be a view by now.
  @Test func aHelperIsInstalledThroughTheLink() async throws {
    try await Self.withHome { keyhole in
      let file = "~/.docker/config.json"
      try keyhole.world.checkHelpers(
        """
        mkdir ~/.docker; printf '{"auths":{"r":{"auth":"Ym9iOnNlY3JldDEyMzQ1"}}}' > \(file); cp \(file) "$OUT/before"
        keyhole adopt --yes --erase \(file) > /dev/null
        keyhole credential install docker > /dev/null; jq -c . \(file); [ -L \(file) ] && echo link
        keyhole credential uninstall docker | grep -c 'taken back'; cmp \(file) "$OUT/before"; [ -L \(file) ] && echo link
        """,
        prints: """
          {"credsStore":"keyhole","auths":{"r":{"auth":"Ym9iOnNlY3JldDEyMzQ1"}}}
          link
          1
          link

          """)
    }
  }
}
