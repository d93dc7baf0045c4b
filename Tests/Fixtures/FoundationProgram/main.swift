// An ordinary program: Foundation's UserDefaults and nothing of Keyhole.
//
//   FoundationProgram write SUITE                   sets one value of each kind and synchronizes
//   FoundationProgram read SUITE KEY                prints kind and value of a key, or “missing”
//   FoundationProgram keys SUITE                    prints how many keys Foundation finds in the suite's own file
//   FoundationProgram set SUITE KEY TYPE VALUE      sets one value and synchronizes
//   FoundationProgram remove SUITE KEY              removes one and synchronizes
//   FoundationProgram count SUITE KEY N             adds one to an integer N times, and synchronizes each time
//   FoundationProgram parse                         reads a property list from standard input, prints it as `read` does
//   FoundationProgram serialize FORMAT              writes the values of `write` as xml or binary to standard output
//
// The behaviour of Foundation on Linux (Swift 6.3), as the tests of Suites find it:
//  - The folder is $XDG_CONFIG_HOME where that is absolute, else ~/.config of $HOME. It is made where missing.
//  - The file is rewritten in place, without a lock and without a temporary one: others can see half of it.
//  - A suite whose last key is removed loses its file.
//  - Values are stored at synchronize() only, and those that others store are seen at the start and at synchronize().
//  - -0.0 is written as 0.0. Dates lose their fractions. Carriage returns and control characters are written
//    as they are, which strict readers of XML turn into line feeds, or refuse.
//  - One `<data/>`, one empty number or more than 512 levels, and the whole file counts as empty.
import Foundation

let samples: [String: Any] = [
  "string": "hello", "emoji": "e\u{301} é 😀\u{200D}👍🏽", "lines": "a\r\nb\rc\n", "markup": "<&>\"']]>",
  "empty": "",
  "control": "\u{1}\u{1B}[0m", "blank": "  x\t", "": "the empty key", "key <&>": "odd key",
  "int": 42, "minInt": Int.min, "maxInt": Int.max, "maxUInt": UInt.max, "minusOne": -1, "zero": 0,
  "double": 0.1, "three": 3.0, "large": 1e22, "tiny": Double.leastNonzeroMagnitude, "inf": Double.infinity,
  "minusInf": -Double.infinity,
  "nan": Double.nan, "float": Float(0.1), "true": true, "false": false,
  "date": Date(timeIntervalSince1970: 1_795_247_580), "fraction": Date(timeIntervalSince1970: 1.75),
  "past": Date(timeIntervalSince1970: -1.75), "ancient": Date(timeIntervalSince1970: -10_000_000_000),
  "future": Date(timeIntervalSince1970: 10_000_000_000),
  "data": Data(0...255), "noData": Data(), "array": [1, "two", [3.5, true]] as [Any], "noArray": [Any](),
  "dict": ["a": ["b": Data([1, 2])], "c": Date(timeIntervalSince1970: 0)] as [String: Any],
  "noDict": [String: Any](),
]

func describe(_ value: Any) -> String {
  switch value {
  case let text as String:
    "string " + text.unicodeScalars.map { String($0.value, radix: 16) }.joined(separator: " ")
  case let date as Date: "date \(Int(date.timeIntervalSince1970.rounded(.down)))"
  case let data as Data: "data " + data.map { String($0, radix: 16) }.joined(separator: " ")
  case let array as [Any]: "array [" + array.map(describe).joined(separator: ", ") + "]"
  case let entries as [String: Any]:
    "dict {"
      + entries.sorted { $0.key.unicodeScalars.lexicographicallyPrecedes($1.key.unicodeScalars) }
      .map { describe($0.key) + ": " + describe($0.value) }.joined(separator: ", ") + "}"
  case let number as NSNumber: describe(number)
  case let flag as Bool: "bool \(flag)"
  default: "uid"
  }
}

/// NSNumber is bridged to whatever is asked for: its own type tells what was stored.
func describe(_ number: NSNumber) -> String {
  switch CFGetTypeName(number) {
  case "bool": "bool \(number.boolValue)"
  case "real": "real \(number.doubleValue.description)"
  default: "integer \(number.stringValue)"
  }
}

func CFGetTypeName(_ number: NSNumber) -> String {
  if type(of: number) != NSNumber.self { return "bool" }
  switch UInt8(bitPattern: number.objCType.pointee) {
  case UInt8(ascii: "d"), UInt8(ascii: "f"): return "real"
  case UInt8(ascii: "c"), UInt8(ascii: "B"):
    return number === kBooleanTrue || number === kBooleanFalse ? "bool" : "integer"
  default: return "integer"
  }
}

let kBooleanTrue = NSNumber(value: true)
let kBooleanFalse = NSNumber(value: false)

func value(_ type: String, _ text: String) -> Any? {
  switch type {
  case "string": text
  case "integer": Int(text)
  case "real": Double(text)
  case "bool": text == "true"
  case "date": Double(text).map { Date(timeIntervalSince1970: $0) }
  case "data": Data(text.utf8)
  default: nil
  }
}

func fail(_ message: String) -> Never {
  FileHandle.standardError.write(Data("FoundationProgram: \(message)\n".utf8))
  exit(2)
}

let arguments = Array(CommandLine.arguments.dropFirst())

func argument(_ index: Int) -> String {
  guard index < arguments.count else { fail("an argument is missing") }
  return arguments[index]
}

func suite() -> UserDefaults {
  guard let defaults = UserDefaults(suiteName: argument(1)) else { fail("no such suite") }
  return defaults
}

switch argument(0) {
case "write":
  let defaults = suite()
  for (key, value) in samples { defaults.set(value, forKey: key) }
  exit(defaults.synchronize() ? 0 : 1)
case "read":
  print(suite().object(forKey: argument(2)).map(describe) ?? "missing")
case "keys":
  print(suite().persistentDomain(forName: argument(1))?.count ?? 0)
case "set":
  guard let value = value(argument(3), argument(4)) else { fail("no such value") }
  let defaults = suite()
  defaults.set(value, forKey: argument(2))
  exit(defaults.synchronize() ? 0 : 1)
case "remove":
  let defaults = suite()
  defaults.removeObject(forKey: argument(2))
  exit(defaults.synchronize() ? 0 : 1)
case "count":
  let defaults = suite()
  for _ in 0..<(Int(argument(3)) ?? 0) {
    defaults.set(defaults.integer(forKey: argument(2)) + 1, forKey: argument(2))
    guard defaults.synchronize() else { exit(1) }
  }
case "parse":
  do {
    let input = FileHandle.standardInput.readDataToEndOfFile()
    print(describe(try PropertyListSerialization.propertyList(from: input, options: [], format: nil)))
  } catch { print("unreadable") }
case "serialize":
  let format: PropertyListSerialization.PropertyListFormat = argument(1) == "xml" ? .xml : .binary
  do {
    FileHandle.standardOutput.write(
      try PropertyListSerialization.data(fromPropertyList: samples, format: format, options: 0))
  } catch { fail("\(error)") }
default: fail("no such verb")
}
