import ArgumentParser
import Service
import Store

extension CompletionKind {
  /// A path of the tree: names only, whatever it leads to is never opened.
  static var treePath: CompletionKind {
    .custom { _, _, prefix in Completion.paths(prefix) }
  }

  /// The same without short names, for what removes and makes.
  static var fullPath: CompletionKind {
    .custom { _, _, prefix in Completion.paths(prefix, shortNames: false) }
  }

  /// A path to copy may be a short name, a path to move may not.
  static var movedPath: CompletionKind {
    .custom { words, _, prefix in Completion.paths(prefix, shortNames: !words.prefix(2).contains("mv")) }
  }

  /// The same before the `--` of a command that is run; behind it nothing.
  static var treePathBeforeCommand: CompletionKind {
    .custom { words, index, prefix in
      words.prefix(max(0, index)).contains("--") ? [] : Completion.paths(prefix)
    }
  }

  /// The attributes of the path before it.
  static var attributeName: CompletionKind {
    .custom { words, index, _ in Completion.attributes(ofPathBefore: index, in: words) }
  }

  /// Access flags, joined by |.
  static var accessFlags: CompletionKind {
    .custom { _, _, prefix in Completion.accessFlags(prefix) }
  }

  /// Mount options, joined by commas.
  static var mountOptions: CompletionKind {
    .custom { _, _, prefix in Completion.mountOptions(prefix) }
  }

  /// The mount points of this user's mounts.
  static var mountPoint: CompletionKind {
    .custom { _, _, prefix in Completion.mountPoints(prefix) }
  }

  /// A setting of Keyhole's own.
  static var configurationKey: CompletionKind { .list(ConfigurationKey.allCases.map(\.rawValue)) }

  /// The words that a setting of Keyhole's own can have.
  static var configurationValue: CompletionKind {
    .custom { words, index, _ in Completion.values(ofSettingBefore: index, in: words) }
  }

  /// The words that an attribute can have.
  static var attributeValue: CompletionKind {
    .custom { words, index, _ in Completion.values(ofAttributeBefore: index, in: words) }
  }
}
