// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "user-default-example",
  dependencies: [.package(name: "keyhole", path: "../..")],
  targets: [
    .executableTarget(
      name: "user-default", dependencies: [.product(name: "UserDefault", package: "keyhole")],
      swiftSettings: [.swiftLanguageMode(.v5)])
  ]
)
