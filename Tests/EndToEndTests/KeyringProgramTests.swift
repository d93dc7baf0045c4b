import Glibc
import KeyringHarness
import Testing

/// Items of other programs in the desktop's keyring: where the tree shows them, and that they find what Keyhole stores.
@Suite(.serialized, .timeLimit(.minutes(5))) struct KeyringProgramTests {
  let bus: PrivateBus

  init() throws {
    bus = try PrivateBus()
    try bus.startKeyring()
  }

  private func withKeyring(_ body: (MountedKeyhole) throws -> Void) async throws {
    try await withKeyhole(
      "keychain=secret-service", environment: ["DBUS_SESSION_BUS_ADDRESS=\(bus.address)"], body: body)
  }

  /// The attributes of go-keyring, which gh stores its tokens with.
  @Test func goKeyring() async throws {
    try bus.run("secret-tool store --label=l service gh:github.com username peter", input: Array("tok".utf8))
    try bus.run("secret-tool store --label=l service gh:github.com username ''", input: Array("active".utf8))
    try await withKeyring { keyhole in
      try keyhole.check(
        "ls keychain/generic/gh:github.com; cat keychain/generic/gh:github.com/peter/value; ls keychain/other",
        prints: "%\npeter\ntok")
      try keyhole.check("keyhole get keychain/generic/gh:github.com/%/value", prints: "active")
      try keyhole.check("printf new | keyhole set keychain/generic/gh:example.com/eve/value")
      #expect(try bus.run("secret-tool lookup service gh:example.com username eve") == "new")
      #expect(try bus.run("secret-tool lookup service gh:example.com account eve") == "new")
      // The item is changed, not joined by another one.
      try keyhole.check("printf other | keyhole set keychain/generic/gh:github.com/peter/value")
      try keyhole.check("setfattr -n user.comment -v x keychain/generic/gh:github.com/peter")
      #expect(try bus.run("secret-tool lookup service gh:github.com username peter") == "other")
      try keyhole.check("mv keychain/generic/gh:github.com/peter keychain/generic/gh:github.com/paul")
      #expect(try bus.run("secret-tool lookup service gh:github.com username paul") == "other")
      #expect(try bus.run("secret-tool lookup service gh:github.com username peter || true").isEmpty)
    }
  }

  /// python3-keyring of Debian, with its backend for the Secret Service.
  @Test func pythonsKeyring() async throws {
    let python = """
      python3 -c 'import keyring, sys
      from keyring.backends import SecretService
      keyring.set_keyring(SecretService.Keyring())
      if sys.argv[1] == "set": keyring.set_password(sys.argv[2], sys.argv[3], sys.argv[4])
      else: sys.stdout.write(str(keyring.get_password(sys.argv[2], sys.argv[3])))'
      """
    try bus.run("\(python) set web peter s3cret")
    try await withKeyring { keyhole in
      try keyhole.check(
        "ls keychain/generic/web; cat keychain/generic/web/peter/value; keyhole attr keychain/generic/web/peter application",
        prints: "peter\ns3cretPython keyring library\n")
      try keyhole.check("printf new | keyhole set keychain/generic/web/peter/value")
      #expect(try bus.run("\(python) get web peter") == "new")
      try keyhole.check("printf own | keyhole set keychain/generic/web/eve/value")
      #expect(try bus.run("\(python) get web eve") == "own")
      // It makes a second item, as it looks for its `application` too; nothing is lost of either.
      try bus.run("\(python) set web eve its")
      try keyhole.check(
        "cat keychain/generic/web/eve/value; cat keychain/generic/web/eve%~*/value", prints: "ownits")
    }
  }

  /// git-credential-libsecret, built from what Debian's git has of it.
  @Test(.enabled(if: Self.hasHelper, "git's contrib/credential/libsecret is not installed"))
  func gitsHelper() async throws {
    let helper = "$0/git-credential-libsecret"
    try bus.run(
      "gcc -o \(helper) \(Self.source) $(pkg-config --cflags --libs libsecret-1 glib-2.0) > $0/gcc.log 2>&1")
    let asked = "protocol=https\\nhost=example.com:8443\\npath=a/b.git\\nusername=peter\\n"
    try bus.run("printf '\(asked)password=s3cret\\n' | \(helper) store")
    try await withKeyring { keyhole in
      let item = "'keychain/internet/example.com/peter;protocol=https;port=8443;path=a%2Fb.git'"
      try keyhole.check("cat \(item)/value; ls keychain/other", prints: "s3cret")
      try keyhole.check("printf new | keyhole set \(item)/value")
      #expect(try bus.run("printf '\(asked)' | \(helper) get").contains("password=new\n"))
      try keyhole.check("printf own | keyhole set 'keychain/internet/git.example/eve;protocol=https/value'")
      let own = try bus.run("printf 'protocol=https\\nhost=git.example\\n' | \(helper) get")
      #expect(own.contains("username=eve\n") && own.contains("password=own\n"), "\(own)")
      // `keyhole credential git` and git's own helper have the same items, whichever stored them.
      try keyhole.check(
        "printf '\(asked)' | keyhole credential git get", prints: "username=peter\npassword=new\n")
      try keyhole.check(
        "printf '\(asked)password=third\n' | keyhole credential git store; ls keychain/internet/example.com | wc -l",
        prints: "1\n")
      #expect(try bus.run("printf '\(asked)' | \(helper) get").contains("password=third\n"))
      try keyhole.check(
        "printf 'protocol=http\nhost=h.example\nusername=u\npassword=p\n' | keyhole credential git store")
      #expect(
        try bus.run("printf 'protocol=http\nhost=h.example\n' | \(helper) get").contains(
          "username=u\npassword=p\n"))
      try bus.run("printf 'protocol=http\nhost=h.example\nusername=u\npassword=p\n' | \(helper) erase")
      try keyhole.check("printf 'protocol=http\nhost=h.example\n' | keyhole credential git get")
    }
  }

  /// Programs that can't run here, by the attributes that they store.
  @Test func programsBySchema() async throws {
    for (label, attributes) in [
      ("git", "xdg:schema org.git.Password server h user u protocol https"),
      ("docker", "xdg:schema io.docker.Credentials server https://d/v1/ username u docker_cli 1 label x"),
      ("Chrome Safe Storage", "xdg:schema chrome_libsecret_os_crypt_password_v2 application chrome"),
      (
        "wifi",
        "xdg:schema org.freedesktop.NetworkManager.Connection connection-uuid c0 setting-name vpn setting-key psk"
      ), ("note", "xdg:schema org.gnome.keyring.Note"),
      ("token", "xdg:schema org.rust-lang.cargo.registry url sparse+https://r/"),
    ] {
      try bus.run("secret-tool store --label='\(label)' \(attributes)", input: Array(label.utf8))
    }
    try await withKeyring { keyhole in
      try keyhole.check(
        """
        for i in 'internet/h/u;protocol=https' 'internet/https:%2F%2Fd%2Fv1%2F/u' \\
          generic/chrome_libsecret_os_crypt_password_v2/chrome generic/c0/vpn.psk other/note
        do cat "keychain/$i/value"; echo; done; ls keychain/other
        """, prints: "git\ndocker\nChrome Safe Storage\nwifi\nnote\nnote\n")
      // The helpers of Keyhole find what those programs' own helpers stored, and the other way round.
      try keyhole.check(
        #"""
        echo https://d/v1/ | keyhole credential docker get; keyhole credential docker list
        printf '{"ServerURL":"d.example","Username":"v","Secret":"two"}' | keyhole credential docker store
        echo '{"v":1,"registry":{"index-url":"sparse+https://r/"},"kind":"get"}' | keyhole credential cargo
        """#,
        prints: #"""
          {"ServerURL":"https://d/v1/","Username":"u","Secret":"docker"}
          {"https://d/v1/":"u"}
          {"v":[1]}
          {"Ok":{"kind":"get","token":"token","cache":"session","operation_independent":true}}

          """#)
      #expect(
        try bus.run(
          "secret-tool lookup xdg:schema io.docker.Credentials server d.example username v docker_cli 1")
          == "two")
      try keyhole.check(
        """
        mkdir -p keychain/internet/https:%2F%2Fe%2Fv1%2F/w; cd keychain/internet/https:%2F%2Fe%2Fv1%2F/w
        setfattr -n user.xdg:schema -v io.docker.Credentials .; echo pass > value
        item=keychain/internet/https:%2F%2Ff%2Fv1%2F/w
        echo later | keyhole set $item && keyhole attr $item xdg:schema io.docker.Credentials
        """)
      #expect(
        try bus.run("secret-tool lookup xdg:schema io.docker.Credentials server https://f/v1/ docker_cli 1")
          == "later")
      #expect(
        try bus.run(
          "secret-tool lookup xdg:schema io.docker.Credentials server https://e/v1/ username w docker_cli 1")
          == "pass")
      let moved = try keyhole.sh("keyhole migrate --from secret-service --to vault")
      #expect(moved.status == 0, "\(moved)")
      let back = try keyhole.sh("keyhole migrate --from vault --to secret-service")
      #expect(back.status == 0, "\(back)")
      #expect(try bus.run("secret-tool lookup connection-uuid c0 setting-name vpn setting-key psk") == "wifi")
      #expect(try bus.run("secret-tool lookup server https://e/v1/ docker_cli 1") == "pass")
    }
  }

  private static let source = "/usr/share/doc/git/contrib/credential/libsecret/git-credential-libsecret.c"
  private static let hasHelper = unsafe access(source, R_OK) == 0
}
