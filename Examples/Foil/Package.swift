// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "foil-example",
  dependencies: [.package(name: "keyhole", path: "../..")],
  targets: [
    .executableTarget(
      name: "foil", dependencies: [.product(name: "Foil", package: "keyhole")],
      swiftSettings: [.swiftLanguageMode(.v5)])
  ]
)
