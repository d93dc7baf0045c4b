// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "property-kit-example",
  dependencies: [.package(name: "keyhole", path: "../..")],
  targets: [
    .executableTarget(
      name: "property-kit", dependencies: [.product(name: "PropertyKit", package: "keyhole")],
      swiftSettings: [.swiftLanguageMode(.v5)])
  ]
)
