// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "ft-property-wrappers-example",
  dependencies: [.package(name: "keyhole", path: "../..")],
  targets: [
    .executableTarget(
      name: "ft-property-wrappers", dependencies: [.product(name: "FTPropertyWrappers", package: "keyhole")],
      swiftSettings: [.swiftLanguageMode(.v5)])
  ]
)
