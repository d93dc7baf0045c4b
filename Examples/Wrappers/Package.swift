// swift-tools-version: 6.2
import PackageDescription

// A program for each of the five libraries, in Swift 5 mode, one that uses all of them in Swift 6 mode with every
// upcoming feature on, and the examples of the originals' READMEs in Swift 5 mode.

func product(_ name: String) -> Target.Dependency { .product(name: name, package: "keyhole") }

func example(_ name: String, of module: String) -> Target {
  .executableTarget(
    name: name, dependencies: [product(module)], swiftSettings: [.swiftLanguageMode(.v5)])
}

let libraries = ["Foil", "UserDefault", "PropertyKit", "KeychainStorage", "FTPropertyWrappers"].map(product)

let package = Package(
  name: "wrappers",
  dependencies: [.package(name: "keyhole", path: "../..")],
  targets: [
    example("foil", of: "Foil"),
    example("user-default", of: "UserDefault"),
    example("property-kit", of: "PropertyKit"),
    example("keychain-storage", of: "KeychainStorage"),
    example("ft-property-wrappers", of: "FTPropertyWrappers"),
    .executableTarget(
      name: "strict",
      dependencies: libraries,
      swiftSettings: [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InferIsolatedConformances"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .enableUpcomingFeature("ImmutableWeakCaptures"),
        .strictMemorySafety(),
        .treatAllWarnings(as: .error),
      ]),
    .testTarget(
      name: "ReadmeTests", dependencies: libraries, swiftSettings: [.swiftLanguageMode(.v5)]),
  ]
)
