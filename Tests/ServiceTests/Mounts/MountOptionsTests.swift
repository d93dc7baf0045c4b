import KeychainSelection
import Store
import Testing

@testable import Service

@Suite struct MountOptionsTests {
  @Test func withoutOptionsThereAreTheDefaults() throws {
    let options = try MountOptions([])
    #expect(!options.isReadOnly && options.keychain.choice == .automatic && options.settings.isEmpty)
    let settings = Configuration(options: options.settings)
    #expect(settings.number(.authTimeout) == 60 && settings.number(.authReuse) == 10)
    #expect(settings.number(.autoLock) == 0 && settings.isOn(.echo) && settings.isOn(.askUnlock))
    #expect(options.sessionOptions == ["fsname=keyhole", "subtype=keyhole", "nosuid", "nodev", "noexec"])
  }

  @Test func listsAreReadInTheirOrder() throws {
    let options = try MountOptions(["ro,,rw", "ro", "keychain=vault,vault=/v,auto-lock=300"])
    #expect(options.isReadOnly && options.keychain.choice == .vault && options.keychain.vault == "/v")
    #expect(Configuration(options: options.settings).number(.autoLock) == 300)
  }

  @Test func eachOptionIsTaken() throws {
    let options = try MountOptions([
      "eol=exact,uid=anna,gid=100,folder=user,fsname=a=b,plain-session,echo=off,auth-timeout=5,auth-reuse=0"
    ])
    let settings = Configuration(options: options.settings)
    #expect(settings.text(.eol) == "exact" && options.user == "anna" && options.group == "100")
    #expect(options.takesUsersFolderOnly && options.source == "a=b" && options.keychain.plainSession == true)
    #expect(!settings.isOn(.echo) && settings.number(.authTimeout) == 5 && settings.number(.authReuse) == 0)
    #expect(settings[.authReuse].origin == .option && settings[.autoLock].origin == .fallback)
  }

  /// A question that may wait for no second could not be answered.
  @Test func timeOfAQuestionIsASecondAtLeast() throws {
    let options = try MountOptions(["auth-timeout=0"])
    #expect(Configuration(options: options.settings).number(.authTimeout) == 1)
  }

  @Test(arguments: [
    ("nonsense", "unknown mount option `nonsense`"), ("ro=1", "unknown mount option `ro=1`"),
    ("eol=crlf", "unknown mount option `eol=crlf`"), ("fsname=", "unknown mount option `fsname=`"),
    ("keychain=kde", "mount option `keychain=kde`: it is one of auto, secret-service, vault, cluster, none"),
    ("vault=relative", "mount option `vault=relative`: it takes a path that begins with `/`"),
    ("auto-lock=-1", "mount option `auto-lock=-1`: it takes a number of seconds"),
    ("auth-reuse=65536", "mount option `auth-reuse=65536`: it takes a number of seconds"),
    ("auth-timeout=", "mount option `auth-timeout=`: it takes a number of seconds"),
    ("allow_other,allow_root", "mount options `allow_other` and `allow_root`: it is one or the other"),
  ])
  func otherOptionIsNamed(list: String, message: String) {
    let error = #expect(throws: UsageError.self) { try MountOptions([list]) }
    #expect(error?.message == message)
  }

  @Test func programThatIsNotThereIsRefused() {
    #expect(throws: UsageError.self) { try MountOptions(["auth-command=/nowhere/program"]) }
    #expect(throws: UsageError.self) { try MountOptions(["auth-command=true"]) }
  }

  @Test func longOptionIsAbbreviated() {
    let error = #expect(throws: UsageError.self) {
      try MountOptions([String(repeating: "x", count: 5_000)])
    }
    #expect((error?.message.count ?? .max) < 1_000)
  }

  /// mount(8) passes what stands in fstab(5).
  @Test func optionsOfMountAreIgnoredOrPassedOn() throws {
    let options = try MountOptions([
      "defaults,noauto,users,_netdev,nofail,x-systemd.automount,comment=x,user=anna,noatime,nosuid,sync"
    ])
    #expect(options.forKernel == ["noatime", "nosuid", "sync"])
    #expect(options.sessionOptions.filter { $0 == "nosuid" }.count == 1)
    #expect(options.sessionOptions.contains("noatime"))
  }

  /// Without default_permissions, users that are let in could read the secrets.
  @Test(arguments: ["allow_other", "allow_root"])
  func othersAreLetInOnlyAsFarAsTheModesSay(option: String) throws {
    #expect(try MountOptions([option]).sessionOptions.contains("default_permissions"))
  }
}
