import Model
import Testing

@Suite struct AccessFlagsTests {
  @Test(
    arguments: [
      ("userPresence", [.userPresence]),
      ("devicePasscode|or|biometryAny", [.devicePasscode, .or, .biometryAny]),
      ("biometryCurrentSet|devicePasscode|and", [.biometryCurrentSet, .devicePasscode, .and]),
      ("applicationPassword", [.applicationPassword]),
      ("biometryAny|devicePasscode", [.biometryAny, .devicePasscode]),
    ] as [(String, [AccessFlags.Flag])])
  func flagsKeepTheirOrder(text: String, flags: [AccessFlags.Flag]) {
    #expect(AccessFlags(text: text)?.flags == flags)
    #expect(AccessFlags(flags).text == text)
  }

  @Test(arguments: [
    "", "|", "userPresence|", "UserPresence", "userPresence | or", "fingers", "or", "and", "userPresence|or",
    "userPresence|applicationPassword|and", "userPresence|userPresence", "biometryAny|devicePasscode|or|and",
    "biometryAny|or|devicePasscode|or", "userPresence\n",
  ])
  func whatMakesNoSenseIsRefused(text: String) {
    #expect(AccessFlags(text: text) == nil)
  }
}
