import Foundation
import Store
import Testing

@testable import Service

/// The pages that are not made of the command's definitions, and the help that the others are made of.
@Suite struct ManualPageTests {
  private static let project = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../..").standardizedFileURL

  private func text(_ path: String) throws -> String {
    try String(contentsOf: Self.project.appending(path: path), encoding: .utf8)
  }

  /// As roff has it.
  private func roff(_ text: String) -> String {
    text.replacing("-", with: "\\-").replacing(/`([^`]*)`/) { "\\fB\($0.1)\\fR" }
  }

  /// The table of keyhole(5) says of each setting what the definition says.
  @Test(arguments: ConfigurationKey.allCases)
  func settingIsInTheTable(key: ConfigurationKey) throws {
    let restriction = key.restriction.map { "; \($0)" } ?? ""
    let entry = """
      .TP
      .B \(roff(key.rawValue))
      \(roff(key.definition.summary))
      (\(roff(key.values)); default \(ConfigurationKey.text(of: key.fallback))\(restriction))

      """
    #expect(try text("Documentation/manual/keyhole.5").contains(entry), "\(entry)")
  }

  /// The options that `MountOptions` takes besides the settings, by its own cases.
  @Test func everyMountOptionIsInTheHelpAndSoInItsPage() throws {
    let source = try text("Sources/Service/Mounting/MountOptions.swift")
    let options = source.matches(of: /case \("([a-z_-]+)"/).map { String($0.1) }
    #expect(options.contains("vault") && options.count >= 10)
    let help = try text("Sources/keyhole/Commands/Mounts/MountCommand.swift")
    for option in Set(options) {
      #expect(help.contains(try Regex("[ ,]\(option)(=|\\[=| |,|\n)")), "\(option)")
    }
  }
}
