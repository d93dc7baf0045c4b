// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "keychain-storage-example",
  dependencies: [.package(name: "keyhole", path: "../..")],
  targets: [
    .executableTarget(
      name: "keychain-storage", dependencies: [.product(name: "KeychainStorage", package: "keyhole")],
      swiftSettings: [.swiftLanguageMode(.v5)])
  ]
)
