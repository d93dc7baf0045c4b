import KeyringHarness
import Testing

/// The collections of `keyhole service`, their labels and aliases.
@Suite(.serialized, .timeLimit(.minutes(3)), .enabled(if: canServeItems, "needs dbus-daemon and secret-tool"))
struct ServiceCollectionTests: ServiceTesting {
  let bus: PrivateBus

  init() throws { bus = try PrivateBus() }

  /// The label of `login` is sealed in the vault, as those of all collections are.
  @Test func labelOfLoginIsInTheVault() async throws {
    try await withService { world in
      let properties = "\(Self.call) \(Self.root)/collection/login -m org.freedesktop.DBus.Properties"
      let get = "\(properties).Get org.freedesktop.Secret.Collection Label"
      let set = "\(properties).Set org.freedesktop.Secret.Collection Label"
      let early = try world.sh("\(set) \"<'Early'>\"")
      #expect(early.error.contains("IsLocked"), "\(early)")
      try world.check(
        "echo horse | keyhole unlock; \(set) \"<'My own'>\"; \(get)", prints: "()\n(<'My own'>,)\n")
      try world.check("grep -rl 'My own' \"$XDG_STATE_HOME\" \"$XDG_DATA_HOME\" | wc -l", prints: "0\n")
      try world.check("keyhole lock")
      let locked = try world.sh("\(set) \"<'Other'>\"")
      #expect(locked.error.contains("IsLocked"), "\(locked)")
      try Self.end(world)
      try Self.start(world)
      try world.check("\(get); echo horse | keyhole unlock; \(get)", prints: "(<'Login'>,)\n(<'My own'>,)\n")
    }
  }

  /// One that was set before labels were sealed is not lost: the vault takes it over when it is unlocked.
  @Test func formerLabelOfLoginIsTakenOver() async throws {
    try await withService { world in
      let get =
        "\(Self.call) \(Self.root)/collection/login -m org.freedesktop.DBus.Properties.Get org.freedesktop.Secret.Collection Label"
      let file = "\"$XDG_STATE_HOME/keyhole/collection-label\""
      try world.check("printf Former > \(file); \(get)", prints: "(<'Former'>,)\n")
      try world.check("echo horse | keyhole unlock; \(get)", prints: "(<'Former'>,)\n")
      #expect(try holds { try world.sh("test ! -e \(file)").status == 0 })
      try world.check(get, prints: "(<'Former'>,)\n")
      try Self.end(world)
      try Self.start(world)
      try world.check("echo horse | keyhole unlock; \(get)", prints: "(<'Former'>,)\n")
    }
  }

  /// Those without items too.
  @Test func exportKeepsCollections() async throws {
    try await withService { world in
      try world.check("echo horse | keyhole unlock; \(Self.create("My work", "work"))")
      let store =
        "printf s3cret | secret-tool store --collection=\(Self.root)/collection/My_work --label=l service s account a"
      try world.check(store)
      try world.check("keyhole export --plain -o $OUT/exported")
      let delete =
        "\(Self.call) \(Self.root)/collection/My_work -m org.freedesktop.Secret.Collection.Delete > /dev/null"
      let readAlias = "\(Self.call) \(Self.root) -m org.freedesktop.Secret.Service.ReadAlias work"
      try world.check("\(delete); \(readAlias)", prints: "(objectpath '/',)\n")
      try world.check("keyhole import $OUT/exported > /dev/null")
      let all = "\(Self.label(of: "My_work")); \(readAlias)"
      let kept = "(<'My work'>,)\n(objectpath '\(Self.root)/collection/My_work',)\n"
      #expect(try holds { try world.sh(all).text == kept })
      // An import of the same changes nothing.
      try world.check("keyhole import --keep $OUT/exported > /dev/null; \(all)", prints: kept)
      // An empty one, in an export without items.
      try world.check("keyhole rm -f s/a; keyhole export --plain keychain > $OUT/empty; \(delete)")
      try world.check("keyhole import $OUT/empty")
      #expect(try holds { try world.sh(all).text == kept })
    }
  }

  /// The collection of a client is in the items, so a copy of the items has it too.
  @Test func collectionsOutliveTheServiceAndAnExport() async throws {
    try await withService { world in
      try world.check("echo horse | keyhole unlock")
      try world.check(
        "\(Self.call) \(Self.root) -m org.freedesktop.Secret.Service.CreateCollection "
          + "\"{'org.freedesktop.Secret.Collection.Label': <'My work'>}\" work",
        prints: "(objectpath '\(Self.root)/collection/My_work', objectpath '/')\n")
      try world.check(
        "printf s3cret | secret-tool store --collection=\(Self.root)/collection/My_work --label=l service s account a"
      )
      let attribute = "keyhole attr s/a keyhole.collection"
      try world.check(attribute, prints: "My_work\n")
      try world.check("keyhole history", prints: "")
      let setDefault = "\(Self.call) \(Self.root) -m org.freedesktop.Secret.Service.SetAlias default"
      try world.check("\(setDefault) \(Self.root)/collection/My_work", prints: "()\n")
      try Self.end(world)
      try Self.start(world)
      // Also before the vault is unlocked.
      let readDefault = "\(Self.call) \(Self.root) -m org.freedesktop.Secret.Service.ReadAlias default"
      try world.check(readDefault, prints: "(objectpath '\(Self.root)/collection/My_work',)\n")
      try world.check("echo horse | keyhole unlock")
      try world.check(
        "printf s3cret | secret-tool store --label=l service s account b; keyhole attr s/b keyhole.collection",
        prints: "My_work\n")
      try world.check(
        "\(Self.call) \(Self.root) -m org.freedesktop.Secret.Service.ReadAlias work",
        prints: "(objectpath '\(Self.root)/collection/My_work',)\n")
      let label =
        "\(Self.call) \(Self.root)/aliases/work -m org.freedesktop.DBus.Properties.Get org.freedesktop.Secret.Collection Label"
      try world.check(label, prints: "(<'My work'>,)\n")
      try world.check("keyhole export --plain keychain > $OUT/exported 2> /dev/null; keyhole rm -f s/a")
      try world.check(
        "\(Self.call) \(Self.root)/collection/My_work -m org.freedesktop.Secret.Collection.Delete",
        prints: "(objectpath '/',)\n")
      try world.check("keyhole ls keychain/generic", prints: "")
      try world.check(readDefault, prints: "(objectpath '\(Self.root)/collection/login',)\n")
      // The history has what was in it.
      try world.check("keyhole undo keychain/generic/s/b > /dev/null 2>&1; keyhole get s/b", prints: "s3cret")
      try world.check(
        "keyhole import $OUT/exported 2> /dev/null > /dev/null; \(attribute)", prints: "My_work\n")
      // With the whole keychain its label came, too.
      let kept = label.replacing("aliases/work", with: "collection/My_work")
      #expect(try holds { try world.sh(kept).text == "(<'My work'>,)\n" })
    }
  }
}
