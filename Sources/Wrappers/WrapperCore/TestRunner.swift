import Platform

/// Whether this process runs tests, so that wrappers keep away from the user's settings and secrets.
package enum TestRunner {
  /// KEYHOLE_STORE is how a person or a test says which store it is to be: `user` or `memory`.
  package static let usesMemory: Bool = {
    switch variable("KEYHOLE_STORE") {
    case "user": false
    case "memory": true
    default: isRunning
    }
  }()

  /// The names of swift-testing's and XCTest's runners, and the variables that they set.
  private static var isRunning: Bool {
    let program = CommandLine.arguments.first ?? ""
    return program.hasSuffix(".xctest") || program.hasSuffix("/swiftpm-testing-helper")
      || CommandLine.arguments.contains("--testing-library")
      || variable("XCTestConfigurationFilePath") != nil || variable("SWIFT_TESTING_ENABLED") != nil
  }

  private static func variable(_ name: String) -> String? {
    Environment.value(name)
  }
}
