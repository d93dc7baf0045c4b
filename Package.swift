// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  // Spans as properties: `SecretBytes.span`.
  .enableExperimentalFeature("Lifetimes"),
  .strictMemorySafety(),
  .treatAllWarnings(as: .error),
]

/// A module of Keyhole. Its dependencies are the arrows of Documentation/ARCHITECTURE.md: they point down.
func module(_ name: String, _ dependencies: [Target.Dependency] = [], path: String? = nil) -> Target {
  .target(name: name, dependencies: dependencies, path: path, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .testTarget(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: strict)
}

/// A module of the wrappers, which lie in a folder of their own.
func wrappers(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  module(name, dependencies, path: "Sources/Wrappers/\(name)")
}

/// For a program of the benchmark that contains no library of Keyhole's.
let linkedAsCommand: [LinkerSetting] = [
  .unsafeFlags(
    [
      "-L.build/release-libraries", "-use-ld=lld", "-Xlinker", "-z", "-Xlinker", "now", "-Xlinker", "-z",
      "-Xlinker", "pack-relative-relocs",
    ],
    .when(configuration: .release))
]

/// An engine: a store of settings or secrets behind a protocol of `Store`.
func engine(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  module(name, dependencies, path: "Sources/Engines/\(name)")
}

let openCombine = Target.Dependency.product(name: "OpenCombine", package: "OpenCombine")

let package = Package(
  name: "keyhole",
  products: [
    .executable(name: "keyhole", targets: ["keyhole"]),
    // The five wrappers for Swift programs.
    .library(name: "FTPropertyWrappers", targets: ["FTPropertyWrappers"]),
    .library(name: "KeychainStorage", targets: ["KeychainStorage"]),
    .library(name: "UserDefault", targets: ["UserDefault"]),
    .library(name: "PropertyKit", targets: ["PropertyKit"]),
    .library(name: "Foil", targets: ["Foil"]),
  ],
  dependencies: [
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/OpenCombine/OpenCombine", from: "0.14.0"),
  ],
  targets: [
    // C headers behind small shims. libplist is a second opinion for the tests of Suites only.
    .systemLibrary(
      name: "CFuse", path: "Sources/C/CFuse", pkgConfig: "fuse3", providers: [.apt(["libfuse3-dev"])]),
    .systemLibrary(
      name: "CPlist", path: "Sources/C/CPlist", pkgConfig: "libplist-2.0", providers: [.apt(["libplist-dev"])]
    ),
    .systemLibrary(
      name: "CSecret", path: "Sources/C/CSecret", pkgConfig: "libsecret-1",
      providers: [.apt(["libsecret-1-dev"])]),
    .target(name: "CSecretLoader", path: "Sources/C/CSecretLoader"),
    // Headers only: no pkg-config, so that no library is linked. CServiceLoader and CCurlLoader load them.
    .systemLibrary(name: "CSystemdBus", path: "Sources/C/CSystemdBus", providers: [.apt(["libsystemd-dev"])]),
    .systemLibrary(name: "CGcrypt", path: "Sources/C/CGcrypt", providers: [.apt(["libgcrypt20-dev"])]),
    .target(name: "CServiceLoader", path: "Sources/C/CServiceLoader"),
    .systemLibrary(name: "CCurl", path: "Sources/C/CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .target(name: "CCurlLoader", path: "Sources/C/CCurlLoader"),
    .target(name: "CSystem", path: "Sources/C/CSystem"),
    .target(name: "CWordList", path: "Sources/C/CWordList", exclude: ["eff-long.txt"]),

    // 0: the one door to Linux: descriptors, files, clocks, users, and processes as proc(5) shows them.
    module("Platform", ["CSystem"]),
    // Plain values, and memory for secrets.
    module("Model", ["Platform"]),
    module("SecretMemory", ["CSystem"]),

    // 1: the shared store, its engines, and what the system tells.
    module("Store", ["Model", "Platform", "SecretMemory"]),
    // RFC 6238 and 4226, for the process that has the keychain.
    module(
      "OneTimeCodes",
      ["Store", "Model", "SecretMemory", .product(name: "Crypto", package: "swift-crypto")]),
    engine("Suites", ["Store", "Model", "Platform"]),
    // The vault: its format and keys, its file, and the engine over both.
    engine(
      "VaultRecords",
      [
        "Store", "Model", "Platform", "SecretMemory",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
      ]),
    engine(
      "VaultDatabase",
      [
        "VaultRecords", "Store", "Model", "Platform", "SecretMemory",
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "Crypto", package: "swift-crypto"),
      ]),
    engine(
      "Vault",
      [
        "VaultDatabase", "VaultRecords", "Store", "Model", "Platform", "SecretMemory",
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "Crypto", package: "swift-crypto"),
      ]),
    // A store in a cluster: its format and keys, and the engines over it.
    engine(
      "ClusterRecords",
      [
        "VaultRecords", "Model", "Platform", "SecretMemory",
        .product(name: "Crypto", package: "swift-crypto"),
      ]),
    engine(
      "Cluster",
      [
        "ClusterRecords", "EtcdClient", "VaultRecords", "Store", "Model", "Platform", "SecretMemory",
        .product(name: "Crypto", package: "swift-crypto"),
      ]),
    // Suites that are made of those of other engines, one above the other.
    engine("Layers", ["Store", "Model"]),
    // A store in a cluster as the process of a mount, and `keyhole cluster`, open it.
    module(
      "ClusterAccess",
      [
        "Cluster", "ClusterRecords", "EtcdClient", "Model", "Platform", "SecretMemory", "Store",
        "VaultRecords",
      ]),
    engine("SecretService", ["Store", "Model", "Platform", "SecretMemory", "CSecret", "CSecretLoader"]),
    // A keychain of another program, of which the vault seals items.
    engine("Sealing", ["Store", "Model", "Platform", "SecretMemory", "Vault", "VaultRecords"]),
    // A connection to a bus that serves objects, without a meaning for them.
    module("BusServer", ["CServiceLoader", "CSystemdBus", "Platform", "SecretMemory"]),
    // The Secret Service API as values: objects, sessions, errors. It opens nothing.
    module(
      "SecretServiceProtocol",
      ["CGcrypt", "CServiceLoader", "SecretMemory", .product(name: "Crypto", package: "swift-crypto")]),
    // A cluster of etcd over the network, for the process of a mount.
    module("EtcdClient", ["CCurl", "CCurlLoader", "Platform", "SecretMemory"]),
    // All that tells of changes, as far as it needs neither the tree nor the kernel's session.
    module("Notifier", ["Model", "Platform"]),
    module("LoginSessions", ["Platform"]),
    // Which keychain is the user's: the command's and the wrappers' alike.
    module(
      "KeychainSelection",
      [
        "Control", "Platform", "Model", "Sealing", "SecretMemory", "SecretService", "Store", "Vault",
      ]),
    // Engines in memory, for programs under test and for Keyhole's own tests.
    engine("InMemory", ["Store", "Model", "SecretMemory"]),
    // The way to the process of a mount, which decides who gets a secret.
    module("Control", ["Platform", "Store", "Model", "SecretMemory", "Notifier"]),

    // 2: files of other programs' formats, made of items and settings.
    module("Views", ["ViewFormats", "Store", "Model", "Platform", "SecretMemory"]),

    // 2: the tree without a kernel; the kernel without a tree.
    module(
      "Tree",
      ["Notifier", "OneTimeCodes", "Store", "Model", "Platform", "SecretMemory", "ViewFormats", "Views"]),
    module("Fuse", ["CFuse", "Platform"]),

    // 3: the tree for the kernel.
    module("Mount", ["Tree", "Fuse", "Notifier", "Store", "Model", "Platform", "SecretMemory"]),

    // Bytes to values and back, for import and export: no file is opened here.
    module(
      "Formats",
      [
        "Model", "Platform", "SecretMemory", .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
      ]),

    // 4: what other programs ask of a credential helper, as bytes to values and back. It opens no file.
    module("CredentialProtocols", ["Formats", "Model", "Platform", "SecretMemory"]),

    // Views: files of other programs as text and values, and back. No file is opened here.
    // Its tests give it some hundred thousand files: without optimization they take twice as long.
    .target(
      name: "ViewFormats", dependencies: ["Model", "Platform", "SecretMemory"],
      swiftSettings: strict + [.unsafeFlags(["-O"], .when(configuration: .debug))]),

    // 3: settings and secrets taken over from other programs and written for them.
    module("ImportExport", ["Formats", "Tree", "Platform", "Model", "Store", "SecretMemory", "CSystem"]),

    // 3: all settings and the vault in one sealed file, and back.
    module(
      "Backup", ["CSystem", "Formats", "Platform", "Model", "SecretMemory", "Store", "Suites", "Vault"]),

    // 3: the store for Swift programs. `WrapperCore` is what the five share; the two `Default…` bring the engines,
    // so that who uses settings only links no keychain.
    wrappers("WrapperCore", ["Store", "Model", "Platform"]),
    wrappers("KeyPathObservation", ["WrapperCore"]),
    wrappers(
      "DefaultSuites",
      ["Control", "WrapperCore", "Platform", "InMemory", "Store", "Suites", "Notifier", "Model"]),
    wrappers(
      "DefaultKeychain",
      [
        "Control", "WrapperCore", "Platform", "PromptHelper", "KeychainSelection", "InMemory", "Store",
        "SecretMemory", "Suites", "Vault", "Notifier", "Model",
      ]),
    wrappers("FTPropertyWrappers", ["DefaultKeychain", "WrapperCore", "Model"]),
    wrappers("KeychainStorage", ["DefaultKeychain", "WrapperCore", "Model"]),
    wrappers("UserDefault", ["DefaultSuites", "WrapperCore", "Model"]),
    wrappers("PropertyKit", ["DefaultSuites", "KeyPathObservation", "WrapperCore", "Model"]),
    wrappers("Foil", ["DefaultSuites", "KeyPathObservation", "WrapperCore", "Model", openCombine]),

    // The process that asks a person, as it is started by other ones: no dialog and no PAM is linked for it.
    module("PromptHelper", ["KeychainSelection", "Platform", "Model", "SecretMemory", "Store"]),

    // 4: ways to ask a person: dialogs, PAM, the terminal.
    module(
      "Prompting",
      [
        "CSystem", "ClusterRecords", "KeychainSelection", "LoginSessions", "Platform", "PromptHelper",
        "Model",
        "SecretMemory", "Store", "Vault",
      ]),

    // 2: a program that is started with secrets, on the user's terminal.
    module("ProgramRunning", ["Platform", "SecretMemory"]),

    // 5: what a process of Keyhole's does, whether it serves a mount or runs one command.
    module(
      "Service",
      [
        "Backup", "BusServer", "CSystem", "CWordList", "Cluster", "ClusterAccess", "ClusterRecords",
        "Control", "EtcdClient", "CredentialProtocols", "Formats", "Fuse",
        "ImportExport",
        "KeychainSelection", "Layers", "LoginSessions",
        "Model", "Mount", "Notifier", "OneTimeCodes", "Platform", "ProgramRunning", "PromptHelper",
        "Prompting", "SecretMemory", "SecretServiceProtocol", "Store", "Suites", "Tree",
        "Vault", "VaultRecords", "ViewFormats", "Views",
      ]),

    // 6: the command: arguments and printing.
    .executableTarget(
      name: "keyhole",
      dependencies: [
        "ClusterAccess", "Service", "ProgramRunning", "Prompting", "Tree", "Formats", "ImportExport",
        "Backup", "Control",
        "CredentialProtocols", "Platform", "Store", "ViewFormats", "Views",
        "Suites", "Vault", "VaultRecords", "KeychainSelection", "Notifier", "Model", "SecretMemory",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict,
      // Bound lazily, a function's first call saves the vector registers on the stack, and after a copy
      // they hold pieces of a secret.
      linkerSettings: [
        .unsafeFlags(["-Xlinker", "-z", "-Xlinker", "now"]),
        // Packed relative relocations: a command starts in three quarters of the time.
        .unsafeFlags(
          ["-use-ld=lld", "-Xlinker", "-z", "-Xlinker", "pack-relative-relocs"],
          .when(configuration: .release)),
      ]),

    // The programs of mount-helpers/benchmark.
    .executableTarget(
      name: "keyhole-benchmark",
      dependencies: ["EtcdClient", .product(name: "GRDB", package: "GRDB.swift")],
      path: "Benchmarks/keyhole-benchmark", swiftSettings: strict),
    // Linked as `keyhole` is, with the libraries that mount-helpers/setup.sh puts there.
    .executableTarget(
      name: "read-file-benchmark", path: "Benchmarks/read-file", swiftSettings: strict,
      linkerSettings: linkedAsCommand),
    .executableTarget(
      name: "foundation-benchmark", dependencies: ["CFuse", .product(name: "GRDB", package: "GRDB.swift")],
      path: "Benchmarks/foundation", swiftSettings: strict, linkerSettings: linkedAsCommand),

    .executableTarget(
      name: "wrappers-benchmark", dependencies: ["Foil", "UserDefault"], path: "Benchmarks/wrappers-benchmark"
    ),

    // Tests, and what they share.
    module("TestSupport", path: "Tests/TestSupport"),
    module(
      "StoreConformance", ["InMemory", "Store", "Model", "SecretMemory"], path: "Tests/StoreConformance"),
    .executableTarget(name: "FoundationProgram", path: "Tests/Fixtures/FoundationProgram"),
    tests("ModelTests", ["Model", "Platform", "TestSupport"]),
    tests("SecretMemoryTests", ["SecretMemory"]),
    tests("PlatformTests", ["Platform", "Model"]),
    tests("StoreTests", ["Store", "InMemory", "Platform", "StoreConformance", "Model", "SecretMemory"]),
    tests(
      "SuitesTests",
      ["Suites", "Store", "StoreConformance", "Model", "CPlist", "FoundationProgram", "TestSupport"]),
    tests(
      "VaultRecordsTests",
      [
        "VaultRecords", "Model", "Platform", "SecretMemory", "StoreConformance",
        .product(name: "Crypto", package: "swift-crypto"),
      ]),
    tests(
      "VaultTests",
      [
        "Vault", "VaultDatabase", "VaultRecords", "Platform", "Store", "StoreConformance", "Model",
        "SecretMemory",
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
      ],
      // A vault of the first format, which every later version opens.
      exclude: ["Fixtures"]),
    // A cluster in memory, with faults.
    module("ClusterInMemory", ["EtcdClient"], path: "Tests/ClusterInMemory"),
    tests(
      "ClusterTests",
      [
        "Cluster", "ClusterInMemory", "ClusterRecords", "EtcdClient", "EtcdHarness", "Layers", "Model",
        "SecretMemory", "Store",
        "StoreConformance", "Suites", "VaultRecords",
        .product(name: "Crypto", package: "swift-crypto"),
      ]),
    tests("LayersTests", ["Layers", "Model", "Store", "StoreConformance"]),
    // A session bus and a real keyring for a test.
    .target(
      name: "KeyringHarness", path: "Tests/KeyringHarness", exclude: ["stand-in.py"], swiftSettings: strict),
    tests(
      "SecretServiceTests",
      [
        "KeychainSelection", "KeyringHarness", "Model", "Sealing", "SecretMemory", "SecretService", "Store",
        "StoreConformance", "Vault", "VaultRecords", "InMemory",
      ]),
    tests(
      "KeychainSelectionTests",
      ["KeychainSelection", "InMemory", "Model", "SecretMemory", "Store", "StoreConformance"]),
    tests(
      "ControlTests",
      [
        "Control", "Platform", "InMemory", "Store", "StoreConformance", "Model", "SecretMemory", "Vault",
        "VaultRecords", "TestSupport",
      ]),
    tests(
      "CredentialProtocolsTests",
      ["CredentialProtocols", "Formats", "Model", "SecretMemory"]),
    tests("BusServerTests", ["BusServer", "KeyringHarness", "SecretMemory"]),
    tests(
      "SecretServiceProtocolTests",
      ["SecretServiceProtocol", "SecretMemory", .product(name: "Crypto", package: "swift-crypto")]),
    // A cluster of etcd servers for a test, and faults of it.
    module("EtcdHarness", ["Platform"], path: "Tests/EtcdHarness"),
    tests("EtcdClientTests", ["EtcdClient", "EtcdHarness", "Platform", "SecretMemory", "TestSupport"]),
    tests("NotifierTests", ["Notifier", "Model"]),
    tests(
      "TreeTests",
      [
        "Tree", "Layers", "Notifier", "Platform", "Store", "StoreConformance", "Model", "SecretMemory",
        "TestSupport",
      ]),
    tests("FuseTests", ["Fuse", "Platform"]),
    tests("ProgramRunningTests", ["ProgramRunning", "SecretMemory", "TestSupport"]),
    tests(
      "OneTimeCodesTests", ["OneTimeCodes", "InMemory", "Model", "SecretMemory", "Store", "StoreConformance"]),
    tests(
      "FormatsTests",
      [
        "Backup", "Control", "Formats", "ImportExport", "InMemory", "Model", "Platform", "SecretMemory",
        "Store", "Suites", "TestSupport", "Tree", "Vault", "VaultRecords", "LoginSessions", "ViewFormats",
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "Crypto", package: "swift-crypto"),
      ],
      // Input for the parsers, and mutations of it.
      exclude: ["Corpus"]),
    tests(
      "ViewFormatsTests", ["ViewFormats", "Model", "Platform", "SecretMemory", "TestSupport"],
      // The programs themselves, and recordings of those that no package has.
      exclude: ["Loaders"]),
    tests(
      "BackupTests",
      [
        "Backup", "Formats", "Model", "SecretMemory", "Store", "StoreConformance", "Suites", "Vault",
        "VaultRecords",
      ]),
    tests(
      "MountTests",
      ["Fuse", "Model", "Mount", "Platform", "SecretMemory", "Store", "StoreConformance", "Tree"]),
    tests(
      "PromptingTests",
      ["Prompting", "PromptHelper", "LoginSessions", "Model", "Platform", "SecretMemory", "Store"]),
    tests(
      "ServiceTests",
      [
        "Control", "Formats", "ImportExport", "InMemory", "KeychainSelection", "KeyringHarness", "Model",
        "Notifier", "Platform",
        "SecretMemory", "Service", "Store", "Suites", "TestSupport", "Tree", "ViewFormats", "Views",
      ]),
    .executableTarget(
      name: "WrapperProgram", dependencies: ["FTPropertyWrappers", "Foil", "UserDefault"],
      path: "Tests/Wrappers/Fixtures/WrapperProgram"),
    .testTarget(
      name: "WrapperCoreTests",
      dependencies: [
        "FTPropertyWrappers", "Foil", "KeychainStorage", "PropertyKit", "UserDefault", "DefaultKeychain",
        "DefaultSuites", "KeyPathObservation", "KeyringHarness", "WrapperCore", "InMemory", "Model",
        "SecretService",
        "Store", "WrapperProgram", "keyhole",
      ],
      path: "Tests/Wrappers/WrapperCoreTests", swiftSettings: strict),
    // The examples of the five READMEs, in Swift 5 mode as most of their users write.
    .testTarget(
      name: "ReadmeTests",
      dependencies: ["FTPropertyWrappers", "Foil", "KeychainStorage", "PropertyKit", "UserDefault"],
      path: "Tests/Wrappers/ReadmeTests", swiftSettings: [.swiftLanguageMode(.v5)]),
    tests(
      "EndToEndTests",
      [
        "keyhole", "FoundationProgram", "WrapperProgram", "Foil", "FTPropertyWrappers",
        "KeychainStorage",
        "PropertyKit", "UserDefault", "EtcdHarness", "KeyringHarness", "SecretMemory", "TestSupport",
        "ViewFormats",
        .product(name: "Crypto", package: "swift-crypto"),
      ]),
    // A disk that loses what was not synchronised, and what has to outlive that.
    module("LossyFileSystem", ["Fuse", "Platform", "TestSupport"], path: "Tests/LossyFileSystem/Disk"),
    .executableTarget(
      name: "PowerLossProgram",
      dependencies: [
        "LossyFileSystem", "TestSupport", "Suites", "Vault", "VaultRecords", "Store", "Model", "SecretMemory",
      ],
      path: "Tests/LossyFileSystem/Program", swiftSettings: strict),
    tests(
      "PowerLossTests",
      [
        "LossyFileSystem", "PowerLossProgram", "keyhole", "Suites", "Vault", "Store", "Model", "SecretMemory",
      ]),
  ],
  swiftLanguageModes: [.v6]
)
