// swift-tools-version: 6.2
import PackageDescription

// Clients of all five libraries: a program in Swift 6 mode with every upcoming feature on, and the examples of the
// originals' READMEs in Swift 5 mode. A package for each library is in a folder of its name beside this one.

let libraries: [Target.Dependency] = [
  "Foil", "UserDefault", "PropertyKit", "KeychainStorage", "FTPropertyWrappers",
].map { .product(name: $0, package: "keyhole") }

let package = Package(
  name: "wrappers",
  dependencies: [.package(name: "keyhole", path: "../..")],
  targets: [
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
